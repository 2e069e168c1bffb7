import { given } from '../command.ts'
import { usageError } from '../errors.ts'
import type { Naming } from '../table.ts'

// Organizations, their people, and what these may use.

const USER_COLUMNS = ['email', 'name', 'role', 'id', 'entitlements', 'disabled_at']

/** Commands that set the member `disabled` of what an endpoint changes. */
const switches = (group: string, endpoint: Naming['endpoint'], disable: string, enable: string) => ({
  [`${group} disable`]: { ...switchOf(endpoint, true), summary: disable },
  [`${group} enable`]: { ...switchOf(endpoint, false), summary: enable },
})

export const switchOf = (endpoint: Naming['endpoint'], disabled: boolean): Naming => ({
  ...(endpoint && { endpoint }),
  ...(endpoint === 'organizations.change' && { arguments: ['organizationId'] }),
  takes: [],
  set: { disabled },
})

/** The subject of a grant: one of these. */
export const SUBJECTS: NonNullable<Naming['options']> = {
  everybody: { describe: 'the whole organization' },
  group: { value: 'group', describe: 'the members of a group' },
  role: { value: 'role', describe: 'everybody of a role', choices: ['owner', 'admin', 'member'] },
  user: { value: 'user', describe: 'one user' },
}

/** The subject that the options name. */
export const subjectOf: NonNullable<Naming['body']> = async ({ options, find }) => {
  const names = { user: options.text('user'), group: options.text('group'), role: options.text('role') }
  const [chosen, ...others] = Object.entries(names).filter(([, name]) => name !== undefined)
  if ((chosen === undefined) !== options.flag('everybody') || others.length > 0) {
    throw usageError('to whom? one of --user, --group, --role and --everybody')
  }
  if (chosen === undefined) return { subject_type: 'organization' }
  const [kind, name = ''] = chosen
  return { subject_type: kind, subject_id: kind === 'role' ? name : await find(kind as 'user', name) }
}

/** The secret of the client at the provider. A command line has none: other users of the machine can read it. */
const providerSecret: NonNullable<Naming['body']> = async ({ options, readInput }) => {
  if (!options.flag('client-secret'))
    return given({ client_secret: options.flag('no-secret') ? null : undefined })
  if (options.flag('no-secret')) throw usageError('one of --client-secret and --no-secret')
  const secret = (await readInput()).trim()
  if (secret === '') throw usageError('there was no secret on standard input')
  return { client_secret: secret }
}

export const PEOPLE: Record<string, Naming> = {
  'organizations list': { columns: ['slug', 'name', 'id', 'rate_limit_per_minute', 'disabled_at'] },
  'organizations show': { arguments: ['organizationId'] },
  'organizations create': { arguments: ['slug'] },
  'organizations update': { endpoint: 'organizations.change', arguments: ['organizationId'] },
  ...switches(
    'organizations',
    'organizations.change',
    'Refuse every key of an organization',
    'Let an organization in again',
  ),

  'retention show': {},
  'retention set': { endpoint: 'retention.replace' },

  'identity-provider show': {},
  'identity-provider set': {
    endpoint: 'identity-provider.replace',
    arguments: ['issuer'],
    takes: ['client_id'],
    options: {
      'client-secret': { describe: 'read the secret of the client from standard input' },
      'no-secret': { describe: 'the client has no secret; without either the stored one stays' },
    },
    body: providerSecret,
    remark: ({ redirect_uri: address }) => `The provider has to know this redirect URI: ${address}`,
  },
  'identity-provider remove': {},

  'users list': { columns: USER_COLUMNS },
  'users show': {},
  'users create': { arguments: ['email'] },
  'users update': { endpoint: 'users.change' },
  ...switches('users', 'users.change', 'Refuse every key of a user', 'Let a user in again'),
  'users setup-link': {
    remark: () => 'The token of the link is shown this once. It works once, within 24 hours.',
  },
  'users erase': { endpoint: 'erasures.create' },
  'erasures list': { columns: ['id', 'status', 'step', 'failure', 'created_at', 'finished_at'] },
  'erasures show': {},
  'entitlements grant': { endpoint: 'users.entitle' },
  'entitlements revoke': { endpoint: 'users.withdraw' },

  'groups list': { columns: ['name', 'id', 'members', 'created_at'] },
  'groups show': {},
  'groups create': { arguments: ['name'] },
  'groups delete': { endpoint: 'groups.remove' },
  'groups members': { columns: USER_COLUMNS },
  'groups add': {},
  'groups remove': { endpoint: 'groups.withdraw' },

  'keys list': {
    columns: [
      'id',
      'label',
      'user_id',
      'scopes',
      'compatibility',
      'expires_at',
      'revoked_at',
      'last_used_at',
    ],
  },
  'keys show': {},
  'keys create': {
    arguments: ['user_id'],
    remark: () => 'The key is shown this once and cannot be found again.',
  },
  'keys update': { endpoint: 'keys.change' },
  'keys rotate': {
    remark: () => 'The key is shown this once and cannot be found again.',
  },
  'keys revoke': {},

  'grants list': { columns: ['model_id', 'subject_type', 'subject_id', 'id', 'created_at'] },
  'grants create': { arguments: ['model_id'], takes: [], options: SUBJECTS, body: subjectOf },
  'grants delete': { endpoint: 'grants.remove' },
}
