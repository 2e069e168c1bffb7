import { type Call, type Command, given, listed, listOptions, type Option, one } from './command.ts'
import { fileOption, membersOf } from './file-option.ts'
import { AdminError, type Item, usageError } from './gateway-client.ts'
import { groupId, organizationPath, policyId, userId } from './ids-by-name.ts'

// Policies of data-loss prevention: what they are, and what they would do.

const scopeOptions: Record<string, Option> = {
  group: { value: 'group', describe: 'only for its members', multiple: true },
  user: { value: 'user', describe: 'only for this user', multiple: true },
  model: { value: 'id', describe: 'only for calls of this model', multiple: true },
  integration: { value: 'id', describe: 'only for tools of this integration', multiple: true },
}

/** `<organization>/dlp/policies/<id>` of the policy that the command line names. */
async function namedPolicy(call: Call): Promise<string> {
  const organization = await organizationPath(call)
  return `${organization}/dlp/policies/${await policyId(call, organization, call.positionals[0] ?? '')}`
}

/** The scope that the options name, or undefined when they name none. */
async function scopeOf(call: Call): Promise<Item | undefined> {
  const { options } = call
  const names = ['group', 'user', 'model', 'integration'].filter((name) => options.texts(name) !== undefined)
  if (names.length === 0) return undefined
  const organization = await organizationPath(call)
  const idsOf = async (
    name: string,
    find: (call: Call, organization: string, name: string) => Promise<string>,
  ) => {
    const texts = options.texts(name)
    return texts && Promise.all(texts.map((text) => find(call, organization, text)))
  }
  return given({
    group_ids: await idsOf('group', groupId),
    user_ids: await idsOf('user', userId),
    model_ids: options.texts('model'),
    integration_ids: options.texts('integration'),
  })
}

/** Changes the current version of a policy. The API refuses it if there was another change in between. */
async function change(call: Call, members: Item): Promise<Item> {
  const path = await namedPolicy(call)
  const { version } = await call.gateway.request('GET', path)
  return call.gateway.request('PUT', path, { version, ...members })
}

const policyCommands: Command[] = [
  {
    group: 'dlp-policies',
    verb: 'list',
    summary: 'List DLP policies',
    inOrganization: true,
    options: listOptions,
    run: async (call) => {
      const columns = ['name', 'enabled', 'version', 'directions', 'scope', 'id', 'updated_at']
      return listed(call, `${await organizationPath(call)}/dlp/policies`, columns)
    },
  },
  {
    group: 'dlp-policies',
    verb: 'show',
    summary: 'Show a DLP policy, by name or id',
    positionals: ['policy'],
    inOrganization: true,
    run: async (call) => one(call.gateway.request('GET', await namedPolicy(call))),
  },
  {
    group: 'dlp-policies',
    verb: 'create',
    summary: 'Create a DLP policy; it holds from the next call on',
    positionals: ['name'],
    inOrganization: true,
    options: {
      ...fileOption('JSON with directions, rules, patterns, dictionaries (- for standard input)', true),
      ...scopeOptions,
      disabled: { describe: 'create it without enabling it' },
    },
    run: async (call) => {
      const body = {
        ...(await membersOf(call)),
        ...given({ name: call.positionals[0], scope: await scopeOf(call) }),
        ...(call.options.flag('disabled') && { enabled: false }),
      }
      return one(call.gateway.request('POST', `${await organizationPath(call)}/dlp/policies`, body))
    },
  },
  {
    group: 'dlp-policies',
    verb: 'update',
    summary: 'Make the next version of a DLP policy; what is not given stays',
    positionals: ['policy'],
    inOrganization: true,
    options: {
      ...fileOption('JSON with the members to change (- for standard input)'),
      ...scopeOptions,
      everybody: { describe: 'for all calls of the organization' },
      name: { value: 'text', describe: 'another name' },
    },
    run: async (call) => {
      const scope = await scopeOf(call)
      if (scope !== undefined && call.options.flag('everybody')) {
        throw usageError('--everybody goes with none of --group, --user, --model and --integration')
      }
      const members = {
        ...(await membersOf(call)),
        ...given({
          name: call.options.text('name'),
          scope: call.options.flag('everybody') ? {} : scope,
        }),
      }
      return one(change(call, members))
    },
  },
  ...[true, false].map(
    (enabled): Command => ({
      group: 'dlp-policies',
      verb: enabled ? 'enable' : 'disable',
      summary: enabled ? 'Let a DLP policy hold again' : 'Let a DLP policy rest',
      positionals: ['policy'],
      inOrganization: true,
      run: async (call) => one(change(call, { enabled })),
    }),
  ),
  {
    group: 'dlp-policies',
    verb: 'delete',
    summary: 'Delete a DLP policy; its versions stay readable by its id',
    positionals: ['policy'],
    inOrganization: true,
    run: async (call) => one(call.gateway.request('DELETE', await namedPolicy(call))),
  },
  {
    group: 'dlp-policies',
    verb: 'versions',
    summary: 'List the versions of a DLP policy',
    positionals: ['policy'],
    inOrganization: true,
    options: listOptions,
    run: async (call) => {
      const columns = ['version', 'name', 'enabled', 'author', 'created_at']
      return listed(call, `${await namedPolicy(call)}/versions`, columns)
    },
  },
  {
    group: 'dlp-policies',
    verb: 'version',
    summary: 'Show one version of a DLP policy',
    positionals: ['policy', 'number'],
    inOrganization: true,
    run: async (call) => {
      const version = encodeURIComponent(call.positionals[1] ?? '')
      return one(call.gateway.request('GET', `${await namedPolicy(call)}/versions/${version}`))
    },
  },
]

const trialOptions: Record<string, Option> = {
  ...fileOption('JSON of a policy that is not stored'),
  policy: { value: 'policy', describe: 'a stored policy, by name or id' },
  direction: { value: 'name', describe: 'request, response, tool_arguments or tool_result (its first)' },
}

/** What is tried: a policy of the organization, or one from a file. */
async function triedPolicy(call: Call, organization: string): Promise<Item> {
  const { options } = call
  const [file, policy] = [options.text('file'), options.text('policy')]
  if ((file === undefined) === (policy === undefined)) throw usageError('which policy? --policy or --file')
  if (file === '-') throw usageError('standard input is for the text: --file takes a path')
  const tried =
    policy === undefined
      ? { policy: await membersOf(call) }
      : { policy_id: await policyId(call, organization, policy) }
  return given({ ...tried, direction: options.text('direction') })
}

const trialCommands: Command[] = [
  {
    group: 'dlp',
    verb: 'detectors',
    summary: 'List what DLP policies can look for',
    run: async (call) => {
      const { data } = await call.gateway.request('GET', '/dlp/detectors')
      const columns = ['id', 'category', 'minimum_score', 'description']
      return { kind: 'list', items: data as Item[], columns, more: false }
    },
  },
  {
    group: 'dlp',
    verb: 'test',
    summary: 'Show what a DLP policy finds in the text on standard input',
    inOrganization: true,
    options: trialOptions,
    run: async (call) => {
      const organization = await organizationPath(call)
      const body = { ...(await triedPolicy(call, organization)), text: await call.readInput() }
      const item = await call.gateway.request('POST', `${organization}/dlp/test`, body)
      if (item.blocked === true) call.note('The call would be refused.')
      const columns = ['start', 'end', 'detector', 'category', 'score', 'action']
      return { kind: 'list', items: item.spans as Item[], columns, more: false }
    },
  },
  {
    group: 'dlp',
    verb: 'dry-run',
    summary: 'Count what a DLP policy finds in the lines on standard input',
    inOrganization: true,
    options: trialOptions,
    run: async (call) => {
      const organization = await organizationPath(call)
      const samples = (await call.readInput()).split(/\r?\n/).filter((line) => line !== '')
      if (samples.length === 0) throw new AdminError('there was no line on standard input')
      const body = { ...(await triedPolicy(call, organization)), samples }
      const item = await call.gateway.request('POST', `${organization}/dlp/dry-run`, body)
      call.note(`${item.with_findings} of ${item.samples} with findings, ${item.blocked} would be blocked`)
      const columns = ['detector', 'category', 'action', 'count']
      return { kind: 'list', items: item.findings as Item[], columns, more: false }
    },
  },
]

export const dlpCommands: Command[] = [...policyCommands, ...trialCommands]
