import { type Call, type Command, given, listed, listOptions, type Option, one } from './command.ts'
import { type Item, usageError } from './gateway-client.ts'
import { groupId, organizationPath, userId } from './ids-by-name.ts'

// Keys, and which models may be used.

/** Words of the header `x-headgate-compatibility`; the API has an underscore. */
const compatibilityOption: Option = {
  value: 'form',
  describe: 'form of its responses: headgate or open-responses',
}

const compatibilityOf = ({ options }: Call) => options.text('compatibility')?.replaceAll('-', '_')

const keyCommands: Command[] = [
  {
    group: 'keys',
    verb: 'list',
    summary: 'List API keys',
    inOrganization: true,
    options: { ...listOptions, user: { value: 'user', describe: 'only of this user' } },
    run: async (call) => {
      const organization = await organizationPath(call)
      const user = call.options.text('user')
      const columns = ['id', 'label', 'user_id', 'scopes', 'compatibility', 'expires_at', 'revoked_at']
      return listed(call, `${organization}/keys`, columns, {
        user_id: user === undefined ? undefined : await userId(call, organization, user),
      })
    },
  },
  {
    group: 'keys',
    verb: 'show',
    summary: 'Show an API key, without the key itself',
    positionals: ['key-id'],
    inOrganization: true,
    run: async (call) => one(call.gateway.request('GET', await namedKey(call))),
  },
  {
    group: 'keys',
    verb: 'create',
    summary: 'Create an API key for a user, and show it once',
    positionals: ['user'],
    inOrganization: true,
    options: {
      label: { value: 'text', describe: 'what it is for', required: true },
      scope: { value: 'scope', describe: 'models, agents or mcp (all of them)', multiple: true },
      compatibility: compatibilityOption,
      'expires-at': { value: 'time', describe: 'when it ends, as 2027-01-31 or an ISO 8601 time' },
    },
    run: async (call) => {
      const organization = await organizationPath(call)
      const body = given({
        user_id: await userId(call, organization, call.positionals[0] ?? ''),
        label: call.options.text('label'),
        scopes: call.options.texts('scope'),
        compatibility: compatibilityOf(call),
        expires_at: call.options.text('expires-at'),
      })
      const item = await call.gateway.request('POST', `${organization}/keys`, body)
      call.note('The key is shown this once and cannot be found again.')
      return { kind: 'item', item }
    },
  },
  {
    group: 'keys',
    verb: 'update',
    summary: 'Change the form of the responses to an API key',
    positionals: ['key-id'],
    inOrganization: true,
    options: { compatibility: { ...compatibilityOption, required: true } },
    run: async (call) => {
      const changes = { compatibility: compatibilityOf(call) }
      return one(call.gateway.request('PUT', await namedKey(call), changes))
    },
  },
  {
    group: 'keys',
    verb: 'revoke',
    summary: 'Revoke an API key: its next call fails',
    positionals: ['key-id'],
    inOrganization: true,
    run: async (call) => one(call.gateway.request('DELETE', await namedKey(call))),
  },
]

async function namedKey(call: Call): Promise<string> {
  return `${await organizationPath(call)}/keys/${encodeURIComponent(call.positionals[0] ?? '')}`
}

/** Who gets a grant: one of them. */
export const subjectOptions: Record<string, Option> = {
  everybody: { describe: 'the whole organization' },
  group: { value: 'group', describe: 'the members of a group' },
  role: { value: 'role', describe: 'everybody of a role' },
  user: { value: 'user', describe: 'one user' },
}

const grantCommands: Command[] = [
  {
    group: 'grants',
    verb: 'list',
    summary: 'List who may use which model',
    inOrganization: true,
    options: { ...listOptions, model: { value: 'id', describe: 'only on this model' } },
    run: async (call) => {
      const columns = ['model_id', 'subject_type', 'subject_id', 'id', 'created_at']
      return listed(call, `${await organizationPath(call)}/grants`, columns, {
        model_id: call.options.text('model'),
      })
    },
  },
  {
    group: 'grants',
    verb: 'create',
    summary: "Let somebody use a model ('*' for all)",
    positionals: ['model'],
    inOrganization: true,
    options: subjectOptions,
    run: async (call) => {
      const organization = await organizationPath(call)
      const body = { ...(await subjectOf(call, organization)), model_id: call.positionals[0] }
      return one(call.gateway.request('POST', `${organization}/grants`, body))
    },
  },
  {
    group: 'grants',
    verb: 'delete',
    summary: 'Take a grant back',
    positionals: ['grant-id'],
    inOrganization: true,
    run: async (call) => {
      const grant = encodeURIComponent(call.positionals[0] ?? '')
      return one(call.gateway.request('DELETE', `${await organizationPath(call)}/grants/${grant}`))
    },
  },
]

/** The subject of a grant, from the options that name it. */
export async function subjectOf(call: Call, organization: string): Promise<Item> {
  const { options } = call
  const [user, group, role] = [options.text('user'), options.text('group'), options.text('role')]
  const chosen = [user, group, role, options.flag('everybody') || undefined]
  if (chosen.filter((subject) => subject !== undefined).length !== 1) {
    throw usageError('to whom? one of --user, --group, --role and --everybody')
  }
  if (user !== undefined) return { subject_type: 'user', subject_id: await userId(call, organization, user) }
  if (group !== undefined)
    return { subject_type: 'group', subject_id: await groupId(call, organization, group) }
  return role === undefined ? { subject_type: 'organization' } : { subject_type: 'role', subject_id: role }
}

export const accessCommands: Command[] = [...keyCommands, ...grantCommands]
