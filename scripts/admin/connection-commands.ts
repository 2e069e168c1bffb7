import { type Call, type Command, given, listed, listOptions, type Option, one } from './command.ts'
import { type Item, usageError } from './gateway-client.ts'
import { groupId, organizationPath, userId } from './ids-by-name.ts'

// Connections of integrations, and the keys of the vault that seals their credentials.

const columns = ['display_name', 'integration', 'status', 'user_id', 'owner_disabled', 'broker', 'hint', 'id']

/** Secrets come from where no shell history and no process list shows them. */
const secretOptions: Record<string, Option> = {
  'credential-stdin': { describe: 'read the secret from standard input (or set CONNECTION_CREDENTIAL)' },
  username: {
    value: 'text',
    describe: 'user name, where the integration takes one; the secret is its password',
  },
}

async function credentialOf({ options, environment, readInput }: Call): Promise<Item | undefined> {
  const isRead = options.flag('credential-stdin')
  const secret = isRead ? (await readInput()).trim() : environment.CONNECTION_CREDENTIAL || undefined
  if (secret === '') throw usageError('there was no credential on standard input')
  const username = options.text('username')
  if (secret === undefined) {
    if (username === undefined) return undefined
    throw usageError('--username needs a password: --credential-stdin, or CONNECTION_CREDENTIAL')
  }
  return username === undefined ? { secret } : { username, password: secret }
}

const connectionPath = async (call: Call) =>
  `${await organizationPath(call)}/connections/${encodeURIComponent(call.positionals[0] ?? '')}`

async function ownerOf(call: Call): Promise<string | null | undefined> {
  const name = call.options.text('user')
  if (name === undefined || name === 'none') return name === 'none' ? null : undefined
  return userId(call, await organizationPath(call), name)
}

async function groupOf(call: Call): Promise<string> {
  return groupId(call, await organizationPath(call), call.options.text('group') ?? '')
}

const groupOption: Option = { value: 'group', describe: 'name or id of the group', required: true }

const POLL_MS = 2_000

/** Waits until the person has finished, or the link has expired. */
async function connect(call: Call) {
  const { gateway, options, print, note } = call
  const path = await connectionPath(call)
  const person = await ownerOf(call)
  const started = await gateway.request('POST', `${path}/connect`, given({ user_id: person ?? undefined }))
  if (options.flag('no-wait')) return { kind: 'item' as const, item: started }
  print(String(started.url))
  note(`Waiting until the account is connected; the link expires at ${started.expires_at}.`)
  for (;;) {
    const item = await gateway.request('GET', path)
    if ((item.connect as Item | null)?.status !== 'pending') return ended(item)
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
}

function ended(item: Item) {
  const { status, failure } = (item.connect ?? {}) as Item
  const isConnected = status === 'completed'
  const lines = [isConnected ? 'The account is connected.' : `Not connected: ${failure ?? status}.`]
  return { kind: 'report' as const, lines, item, exitCode: isConnected ? 0 : 1 }
}

const connectionCommands: Command[] = [
  {
    group: 'connections',
    verb: 'list',
    summary: 'List connections',
    inOrganization: true,
    options: {
      ...listOptions,
      integration: { value: 'slug', describe: 'only those of an integration' },
      user: { value: 'user', describe: 'only those of a user, by address or id' },
      status: { value: 'status', describe: 'only pending, active, needs_reauth or revoked ones' },
    },
    run: async (call) =>
      listed(call, `${await organizationPath(call)}/connections`, columns, {
        integration: call.options.text('integration'),
        user_id: (await ownerOf(call)) ?? undefined,
        status: call.options.text('status'),
      }),
  },
  {
    group: 'connections',
    verb: 'show',
    summary: 'Show a connection, and how connecting its account went',
    positionals: ['connection'],
    inOrganization: true,
    run: async (call) => one(call.gateway.request('GET', await connectionPath(call))),
  },
  {
    group: 'connections',
    verb: 'add',
    summary: 'Add a connection of an integration',
    positionals: ['integration'],
    inOrganization: true,
    options: {
      name: { value: 'text', describe: 'its name, as people see it', required: true },
      user: { value: 'user', describe: 'the owner, by address or id; the organization without' },
      broker: { value: 'broker', describe: 'local or nango (local)' },
      ...secretOptions,
    },
    run: async (call) =>
      one(
        call.gateway.request(
          'POST',
          `${await organizationPath(call)}/connections`,
          given({
            integration: call.positionals[0],
            display_name: call.options.text('name'),
            user_id: (await ownerOf(call)) ?? undefined,
            broker: call.options.text('broker'),
            credential: await credentialOf(call),
          }),
        ),
      ),
  },
  {
    group: 'connections',
    verb: 'update',
    summary: 'Rename a connection, give it to another owner, or replace its credential',
    positionals: ['connection'],
    inOrganization: true,
    options: {
      name: { value: 'text', describe: 'its name, as people see it' },
      user: { value: 'user', describe: 'the owner, by address or id; none: the organization' },
      ...secretOptions,
    },
    run: async (call) => {
      const changes = given({
        display_name: call.options.text('name'),
        user_id: await ownerOf(call),
        credential: await credentialOf(call),
      })
      return one(call.gateway.request('PUT', await connectionPath(call), changes))
    },
  },
  {
    group: 'connections',
    verb: 'status',
    summary: 'Set a connection to active, needs_reauth or revoked, which erases its credential',
    positionals: ['connection', 'status'],
    inOrganization: true,
    run: async (call) =>
      one(call.gateway.request('PUT', await connectionPath(call), { status: call.positionals[1] })),
  },
  {
    group: 'connections',
    verb: 'connect',
    summary: 'Print a link by which a person connects the account, and wait until that is done',
    positionals: ['connection'],
    inOrganization: true,
    options: {
      user: { value: 'user', describe: 'who connects it, for a connection of the organization' },
      'no-wait': { describe: 'do not wait' },
    },
    run: connect,
  },
  {
    group: 'connections',
    verb: 'share',
    summary: 'Share a connection with a group',
    positionals: ['connection'],
    inOrganization: true,
    options: {
      group: groupOption,
      permission: {
        value: 'permission',
        describe: 'use (default), or manage: also connect again, share and delete',
      },
    },
    run: async (call) =>
      one(
        call.gateway.request(
          'PUT',
          `${await connectionPath(call)}/shares/${await groupOf(call)}`,
          given({ permission: call.options.text('permission') }),
        ),
      ),
  },
  {
    group: 'connections',
    verb: 'unshare',
    summary: 'End the share of a connection with a group',
    positionals: ['connection'],
    inOrganization: true,
    options: { group: groupOption },
    run: async (call) =>
      one(call.gateway.request('DELETE', `${await connectionPath(call)}/shares/${await groupOf(call)}`)),
  },
  {
    group: 'connections',
    verb: 'remove',
    summary: 'Delete a connection with its credential',
    positionals: ['connection'],
    inOrganization: true,
    run: async (call) => one(call.gateway.request('DELETE', await connectionPath(call))),
  },
]

/** Pages until the end. What does not open is counted; its key has to come back into VAULT_KEYS. */
async function rotate({ gateway }: Call) {
  const counts: Record<string, number> = {
    connections: 0,
    client_secrets: 0,
    providers: 0,
    webhook_secrets: 0,
    run_inputs: 0,
    failed: 0,
  }
  let [cursor, keyId]: [string | null, unknown] = [null, null]
  do {
    const page: Item = await gateway.request('POST', '/vault/rotate', given({ cursor: cursor ?? undefined }))
    const kind = String(page.kind)
    counts[kind] = (counts[kind] ?? 0) + Number(page.resealed)
    counts.failed = (counts.failed ?? 0) + Number(page.failed)
    keyId = page.key_id
    cursor = page.next_cursor as string | null
  } while (cursor !== null)
  const item = { key_id: keyId, ...counts }
  const lines = Object.entries(item).map(([name, value]) => `${name.padEnd(15)}  ${value}`)
  if (counts.failed)
    lines.push('What failed is sealed under a key that VAULT_KEYS does not have, or was altered.')
  return { kind: 'report' as const, lines, item, exitCode: counts.failed ? 1 : 0 }
}

const vaultCommands: Command[] = [
  {
    group: 'vault',
    verb: 'rotate',
    summary: 'Seal every stored credential under the current key of VAULT_KEYS',
    run: rotate,
  },
]

export const connectionsAndVault: readonly Command[] = [...connectionCommands, ...vaultCommands]
