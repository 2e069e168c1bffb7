import { setTimeout as delay } from 'node:timers/promises'
import { type Call, given, type Option, type Outcome } from '../command.ts'
import { usageError } from '../errors.ts'
import { patiently } from '../gateway.ts'
import { type Naming, one, type TableCall } from '../table.ts'

// Connections of integrations, and the keys of the vault that seals their credentials.

/** Secrets come from where no shell history and no process list shows them. */
const SECRET: Record<string, Option> = {
  'credential-stdin': { describe: 'read the secret from standard input (or set CONNECTION_CREDENTIAL)' },
  username: {
    value: 'text',
    describe: 'user name, where the integration takes one; the secret is its password',
  },
}

async function credentialOf({ options, environment, readInput }: Call) {
  const isRead = options.flag('credential-stdin')
  const secret = isRead ? (await readInput()).trim() : environment.CONNECTION_CREDENTIAL || undefined
  if (secret === '') throw usageError('there was no credential on standard input')
  const username = options.text('username')
  if (secret === undefined) {
    if (username === undefined) return {}
    throw usageError('--username needs a password: --credential-stdin, or CONNECTION_CREDENTIAL')
  }
  return { credential: username === undefined ? { secret } : { username, password: secret } }
}

const POLL_MS = 2_000

/** Waits until the person has finished, or the link has expired. */
async function connect(call: TableCall): Promise<Outcome> {
  const { gateway, options, print, note, progress } = call
  const started = await gateway.send('connections.connect', await call.request())
  if (options.flag('no-wait')) return one(started)
  // Standard output has one JSON document.
  const show = options.flag('json') ? note : print
  show(String(started.url))
  note(`Waiting until the account is connected; the link expires at ${started.expires_at}.`)
  const path = await call.path()
  const since = Date.now()
  for (;;) {
    const item = await patiently(() => gateway.call('connections.show', { path }))
    if (item.connect?.status !== 'pending') return ended(item)
    progress(`waiting for ${Math.round((Date.now() - since) / 1000)} s`)
    await delay(POLL_MS)
  }
}

function ended(item: { connect: { status: string; failure: string | null } | null }): Outcome {
  const { status, failure } = item.connect ?? {}
  const isConnected = status === 'completed'
  const lines = [isConnected ? 'The account is connected.' : `Not connected: ${failure ?? status}.`]
  return { kind: 'report', lines, item, exitCode: isConnected ? 0 : 1 }
}

/** Pages until the end. What does not open is counted; its key has to come back into VAULT_KEYS. */
async function rotate({ gateway, progress }: Call): Promise<Outcome> {
  const counts: Record<string, number> = {
    connections: 0,
    client_secrets: 0,
    providers: 0,
    webhook_secrets: 0,
    run_inputs: 0,
    identity_providers: 0,
    failed: 0,
  }
  let [cursor, keyId]: [string | null, string | null] = [null, null]
  do {
    const body = given({ cursor: cursor ?? undefined })
    const page = await patiently(() => gateway.call('vault.rotate', { body }))
    counts[page.kind] = (counts[page.kind] ?? 0) + page.resealed
    counts.failed = (counts.failed ?? 0) + page.failed
    keyId = page.key_id
    cursor = page.next_cursor
    progress(`${page.kind}: ${counts[page.kind]} sealed`)
  } while (cursor !== null)
  const item = { key_id: keyId, ...counts }
  const lines = Object.entries(item).map(([name, value]) => `${name.padEnd(18)}  ${value}`)
  if (counts.failed)
    lines.push('What failed is sealed under a key that VAULT_KEYS does not have, or was altered.')
  return { kind: 'report', lines, item, exitCode: counts.failed ? 1 : 0 }
}

export const CONNECTIONS: Record<string, Naming> = {
  'connections list': {
    columns: ['display_name', 'integration', 'status', 'user_id', 'owner_disabled', 'broker', 'hint', 'id'],
  },
  'connections show': {},
  'connections add': {
    endpoint: 'connections.create',
    arguments: ['integration'],
    options: SECRET,
    body: credentialOf,
  },
  'connections update': {
    endpoint: 'connections.change',
    takes: ['display_name', 'user_id'],
    options: SECRET,
    body: credentialOf,
  },
  'connections status': {
    endpoint: 'connections.change',
    summary: 'Set a connection to active, needs_reauth or revoked, which erases its credential',
    arguments: ['connectionId', 'status'],
    takes: [],
  },
  'connections connect': {
    summary: 'Print a link by which a person connects the account, and wait until that is done',
    options: { 'no-wait': { describe: 'do not wait' } },
    run: connect,
  },
  'connections share': { arguments: ['connectionId'] },
  'connections unshare': { arguments: ['connectionId'] },
  'connections remove': {},
  'vault rotate': {
    summary: 'Seal every stored credential under the current key of VAULT_KEYS',
    takes: [],
    run: rotate,
  },
}
