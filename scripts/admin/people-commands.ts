import { type Command, given, listed, listOptions, type Option, one } from './command.ts'
import { groupId, organizationId, organizationPath, userId } from './ids-by-name.ts'

// Organizations, and who belongs to them.

const rate = (whose: string): Option => ({ value: 'number', describe: `calls a minute ${whose}, or none` })

const shards: Option = { value: 'number', describe: 'objects that share its ledger, 1 to 16' }

const organizationColumns = ['slug', 'name', 'id', 'rate_limit_per_minute', 'disabled_at']
const userColumns = ['email', 'name', 'role', 'id', 'entitlements', 'disabled_at']

const organizationCommands: Command[] = [
  {
    group: 'organizations',
    verb: 'list',
    summary: 'List organizations',
    options: listOptions,
    run: (call) => listed(call, '/organizations', organizationColumns),
  },
  {
    group: 'organizations',
    verb: 'show',
    summary: 'Show an organization',
    positionals: ['organization'],
    run: async (call) => one(call.gateway.request('GET', await namedOrganization(call))),
  },
  {
    group: 'organizations',
    verb: 'create',
    summary: 'Create an organization',
    positionals: ['slug'],
    options: {
      name: { value: 'text', describe: 'its name', required: true },
      'rate-limit': rate('for all of it'),
      'user-rate-limit': rate('for each user'),
      'ledger-shards': shards,
    },
    run: ({ gateway, options, positionals: [slug] }) =>
      one(
        gateway.request(
          'POST',
          '/organizations',
          given({
            slug,
            name: options.text('name'),
            rate_limit_per_minute: options.limit('rate-limit'),
            user_rate_limit_per_minute: options.limit('user-rate-limit'),
            ledger_shards: options.number('ledger-shards'),
          }),
        ),
      ),
  },
  {
    group: 'organizations',
    verb: 'update',
    summary: 'Change name, limits or ledger shards of an organization',
    positionals: ['organization'],
    options: {
      name: { value: 'text', describe: 'its name' },
      'rate-limit': rate('for all of it'),
      'user-rate-limit': rate('for each user'),
      'ledger-shards': shards,
    },
    run: async (call) => {
      const changes = given({
        name: call.options.text('name'),
        rate_limit_per_minute: call.options.limit('rate-limit'),
        user_rate_limit_per_minute: call.options.limit('user-rate-limit'),
        ledger_shards: call.options.number('ledger-shards'),
      })
      return one(call.gateway.request('PUT', await namedOrganization(call), changes))
    },
  },
  ...[true, false].map(
    (disabled): Command => ({
      group: 'organizations',
      verb: disabled ? 'disable' : 'enable',
      summary: disabled ? 'Refuse every key of an organization' : 'Let an organization in again',
      positionals: ['organization'],
      run: async (call) => one(call.gateway.request('PUT', await namedOrganization(call), { disabled })),
    }),
  ),
]

const namedOrganization = async (call: Parameters<Command['run']>[0]) =>
  `/organizations/${await organizationId(call, call.positionals[0] ?? '')}`

/** Path of the user that the first argument names. */
async function namedUser(call: Parameters<Command['run']>[0]): Promise<string> {
  const organization = await organizationPath(call)
  return `${organization}/users/${await userId(call, organization, call.positionals[0] ?? '')}`
}

const userCommands: Command[] = [
  {
    group: 'users',
    verb: 'list',
    summary: 'List users',
    inOrganization: true,
    options: listOptions,
    run: async (call) => listed(call, `${await organizationPath(call)}/users`, userColumns),
  },
  {
    group: 'users',
    verb: 'show',
    summary: 'Show a user, by address or id',
    positionals: ['user'],
    inOrganization: true,
    run: async (call) => one(call.gateway.request('GET', await namedUser(call))),
  },
  {
    group: 'users',
    verb: 'create',
    summary: 'Add a user',
    positionals: ['email'],
    inOrganization: true,
    options: {
      name: { value: 'text', describe: 'full name', required: true },
      role: { value: 'role', describe: 'owner, admin or member (member)' },
      'rate-limit': rate('of this user'),
    },
    run: async (call) => {
      const body = given({
        email: call.positionals[0],
        name: call.options.text('name'),
        role: call.options.text('role'),
        rate_limit_per_minute: call.options.limit('rate-limit'),
      })
      return one(call.gateway.request('POST', `${await organizationPath(call)}/users`, body))
    },
  },
  {
    group: 'users',
    verb: 'update',
    summary: 'Change name, role or limit of a user',
    positionals: ['user'],
    inOrganization: true,
    options: {
      name: { value: 'text', describe: 'full name' },
      role: { value: 'role', describe: 'owner, admin or member' },
      'rate-limit': rate('of this user'),
    },
    run: async (call) => {
      const changes = given({
        name: call.options.text('name'),
        role: call.options.text('role'),
        rate_limit_per_minute: call.options.limit('rate-limit'),
      })
      return one(call.gateway.request('PUT', await namedUser(call), changes))
    },
  },
  ...[true, false].map(
    (disabled): Command => ({
      group: 'users',
      verb: disabled ? 'disable' : 'enable',
      summary: disabled ? 'Refuse every key of a user' : 'Let a user in again',
      positionals: ['user'],
      inOrganization: true,
      run: async (call) => one(call.gateway.request('PUT', await namedUser(call), { disabled })),
    }),
  ),
  ...(['PUT', 'DELETE'] as const).map(
    (method): Command => ({
      group: 'entitlements',
      verb: method === 'PUT' ? 'grant' : 'revoke',
      summary: `${method === 'PUT' ? 'Give a user' : 'Take from a user'} a right, such as personal_api_key_access`,
      positionals: ['user', 'right'],
      inOrganization: true,
      run: async (call) => {
        const right = encodeURIComponent(call.positionals[1] ?? '')
        return one(call.gateway.request(method, `${await namedUser(call)}/entitlements/${right}`))
      },
    }),
  ),
]

/** Path of the group that the first argument names. */
async function namedGroup(call: Parameters<Command['run']>[0]): Promise<string> {
  const organization = await organizationPath(call)
  return `${organization}/groups/${await groupId(call, organization, call.positionals[0] ?? '')}`
}

const groupCommands: Command[] = [
  {
    group: 'groups',
    verb: 'list',
    summary: 'List groups',
    inOrganization: true,
    options: listOptions,
    run: async (call) =>
      listed(call, `${await organizationPath(call)}/groups`, ['name', 'id', 'members', 'created_at']),
  },
  {
    group: 'groups',
    verb: 'create',
    summary: 'Create a group',
    positionals: ['name'],
    inOrganization: true,
    run: async (call) => {
      const body = { name: call.positionals[0] }
      return one(call.gateway.request('POST', `${await organizationPath(call)}/groups`, body))
    },
  },
  {
    group: 'groups',
    verb: 'delete',
    summary: 'Delete a group with its memberships and grants',
    positionals: ['group'],
    inOrganization: true,
    run: async (call) => one(call.gateway.request('DELETE', await namedGroup(call))),
  },
  {
    group: 'groups',
    verb: 'members',
    summary: 'List the members of a group',
    positionals: ['group'],
    inOrganization: true,
    options: listOptions,
    run: async (call) => listed(call, `${await namedGroup(call)}/members`, userColumns),
  },
  ...(['PUT', 'DELETE'] as const).map(
    (method): Command => ({
      group: 'groups',
      verb: method === 'PUT' ? 'add' : 'remove',
      summary: method === 'PUT' ? 'Add a user to a group' : 'Take a user out of a group',
      positionals: ['group', 'user'],
      inOrganization: true,
      run: async (call) => {
        const group = await namedGroup(call)
        const user = await userId(call, await organizationPath(call), call.positionals[1] ?? '')
        return one(call.gateway.request(method, `${group}/members/${user}`))
      },
    }),
  ),
]

export const peopleCommands: Command[] = [...organizationCommands, ...userCommands, ...groupCommands]
