import { type Call, given, type Option } from '../command.ts'
import { AdminError, usageError } from '../errors.ts'
import { fileOption, membersOf } from '../file-option.ts'
import type { Item } from '../gateway.ts'
import { type Naming, rowsOf, type TableCall } from '../table.ts'

// Policies of data-loss prevention: what they are, and what they would do; and the rules for hosted tools.

const SCOPE: Record<string, Option> = {
  group: { value: 'group', describe: 'only for its members', multiple: true },
  user: { value: 'user', describe: 'only for this user', multiple: true },
  model: { value: 'id', describe: 'only for calls of this model', multiple: true },
  integration: { value: 'id', describe: 'only for tools of this integration', multiple: true },
}

/** The scope that the options name; undefined where they name none. */
async function scopeOf({ options, find }: TableCall): Promise<Item | undefined> {
  const idsOf = async (kind: 'group' | 'user') => {
    const names = options.texts(kind)
    return names && Promise.all(names.map((name) => find(kind, name)))
  }
  const scope = given({
    group_ids: await idsOf('group'),
    user_ids: await idsOf('user'),
    model_ids: options.texts('model'),
    integration_ids: options.texts('integration'),
  })
  return Object.keys(scope).length === 0 ? undefined : scope
}

/** The version that is changed. The API refuses the change if there was another one in between. */
async function versionOf(call: TableCall): Promise<Item> {
  const { version } = await call.gateway.call('policies.show', { path: await call.path() })
  return { version }
}

async function changedScope(call: TableCall): Promise<Item> {
  const scope = await scopeOf(call)
  if (scope !== undefined && call.options.flag('everybody')) {
    throw usageError('--everybody goes with none of --group, --user, --model and --integration')
  }
  return given({ scope: call.options.flag('everybody') ? {} : scope })
}

const switchOf = (enabled: boolean): Naming => ({
  endpoint: 'policies.change',
  takes: [],
  set: { enabled },
  body: versionOf,
})

const TRIAL: Record<string, Option> = {
  ...fileOption('JSON of a policy that is not stored'),
  policy: { value: 'policy', describe: 'a stored policy, by name or id' },
}

/** What is tried: a policy of the organization, or one from a file. */
async function triedPolicy(call: TableCall): Promise<Item> {
  const [file, policy] = [call.options.text('file'), call.options.text('policy')]
  if ((file === undefined) === (policy === undefined)) throw usageError('which policy? --policy or --file')
  if (file === '-') throw usageError('standard input is for the text: --file takes a path')
  return policy === undefined
    ? { policy: await membersOf(call) }
    : { policy_id: await call.find('policy', policy) }
}

async function linesOf({ readInput }: Call): Promise<string[]> {
  const samples = (await readInput()).split(/\r?\n/).filter((line) => line !== '')
  if (samples.length === 0) throw new AdminError('there was no line on standard input')
  return samples
}

export const POLICIES: Record<string, Naming> = {
  'dlp-policies list': {
    endpoint: 'policies.list',
    columns: ['name', 'enabled', 'version', 'directions', 'scope', 'id', 'updated_at'],
  },
  'dlp-policies show': { endpoint: 'policies.show' },
  'dlp-policies create': {
    endpoint: 'policies.create',
    arguments: ['name'],
    takes: [],
    options: {
      ...fileOption('JSON with directions, rules, patterns, dictionaries (- for standard input)', true),
      ...SCOPE,
      disabled: { describe: 'create it without enabling it' },
    },
    body: async (call) => ({
      ...(await membersOf(call)),
      ...given({ scope: await scopeOf(call) }),
      ...(call.options.flag('disabled') && { enabled: false }),
    }),
  },
  'dlp-policies update': {
    endpoint: 'policies.change',
    takes: ['name'],
    options: {
      ...fileOption('JSON with the members to change (- for standard input)'),
      ...SCOPE,
      everybody: { describe: 'for all calls of the organization' },
    },
    body: async (call) => {
      const scope = await changedScope(call)
      return { ...(await versionOf(call)), ...(await membersOf(call)), ...scope }
    },
  },
  'dlp-policies enable': { ...switchOf(true), summary: 'Let a DLP policy hold again' },
  'dlp-policies disable': { ...switchOf(false), summary: 'Let a DLP policy rest' },
  'dlp-policies delete': { endpoint: 'policies.remove' },
  'dlp-policies versions': {
    endpoint: 'policies.versions',
    columns: ['version', 'name', 'enabled', 'author', 'created_at'],
  },
  'dlp-policies version': { endpoint: 'policies.version' },

  'dlp detectors': {
    endpoint: 'detectors.list',
    shows: rowsOf('data', ['id', 'category', 'minimum_score', 'description']),
  },
  'dlp test': {
    endpoint: 'policies.test',
    summary: 'Show what a DLP policy finds in the text on standard input',
    takes: ['direction'],
    options: TRIAL,
    body: async (call) => ({ ...(await triedPolicy(call)), text: await call.readInput() }),
    remark: ({ blocked }) => (blocked === true ? 'The call would be refused.' : undefined),
    shows: rowsOf('spans', ['start', 'end', 'detector', 'category', 'score', 'action']),
  },
  'dlp dry-run': {
    endpoint: 'policies.dry-run',
    summary: 'Count what a DLP policy finds in the lines on standard input',
    takes: ['direction'],
    options: TRIAL,
    body: async (call) => {
      const samples = await linesOf(call)
      return { ...(await triedPolicy(call)), samples }
    },
    remark: ({ with_findings: found, samples, blocked }) =>
      `${found} of ${samples} with findings, ${blocked} would be blocked`,
    shows: rowsOf('findings', ['detector', 'category', 'action', 'count']),
  },

  'tools show': {},
  'tools set': {
    endpoint: 'tools.replace',
    takes: [],
    options: fileOption('JSON with off, web, shell (- for standard input)', true),
    body: membersOf,
  },
}
