import { stringify } from 'yaml'
import { canonicalJson } from '../../src/lib/canonical-json.ts'
import { agentDefinition } from '../../src/wire/agents.ts'
import { type Call, type Command, listed, listOptions, one } from './command.ts'
import { fileText } from './file-option.ts'
import { AdminError, type Item, usageError } from './gateway-client.ts'
import { agentId, organizationPath, userId } from './ids-by-name.ts'
import { yamlObject } from './yaml-file.ts'

// Agents as files: a definition is exported, reviewed and applied; and their runs.

/** `<organization>/agents/<id>` of the agent that the command line names. */
async function namedAgent(call: Call): Promise<string> {
  const organization = await organizationPath(call)
  return `${organization}/agents/${await agentId(call, organization, call.positionals[0] ?? '')}`
}

const runPath = async (call: Call, action = ''): Promise<string> => {
  const run = encodeURIComponent(call.positionals[0] ?? '')
  return `${await organizationPath(call)}/runs/${run}${action}`
}

/** A definition from a file; YAML 1.2, of which JSON is a part. */
async function definitionOf(call: Call): Promise<Item> {
  const { path, text } = await fileText(call)
  // Without aliases, which can make a small file a very large definition.
  return yamlObject(path, text, 0)
}

/**
 * Creates the agent of a file, or makes its next version if its definition is another one.
 * @returns the agent.
 */
async function apply(call: Call): Promise<Item> {
  const organization = await organizationPath(call)
  const { gateway, options } = call
  const definition = await definitionOf(call)
  const name = options.text('agent') ?? String(definition.name ?? '')
  const existing = await agentId(call, organization, name).catch((error) => {
    if (error instanceof AdminError && error.status === undefined && !options.text('agent')) return null
    throw error
  })
  if (existing === null) return create(call, organization, definition)
  const path = `${organization}/agents/${existing}`
  const current = await gateway.request('GET', path)
  const { version, definition: stored } = current
  const expected = options.number('version')
  if (expected !== undefined && expected !== version) {
    throw new AdminError(`the agent has version ${version}, not ${expected}: look at it again`)
  }
  if (isSame(definition, stored)) {
    call.note('The agent has this definition already: nothing was changed.')
    return current
  }
  return gateway.request('PUT', path, { version, definition })
}

/** Whether a definition is the stored one, with the defaults of what it leaves out. */
function isSame(definition: Item, stored: unknown): boolean {
  const parsed = agentDefinition.safeParse(definition)
  return parsed.success && canonicalJson(parsed.data) === canonicalJson(stored)
}

async function create(call: Call, organization: string, definition: Item): Promise<Item> {
  const creator = call.options.text('creator')
  if (creator === undefined) throw usageError('a new agent needs --creator <address or id>')
  const created_by = await userId(call, organization, creator)
  return call.gateway.request('POST', `${organization}/agents`, { created_by, definition })
}

/** The definition of an agent, as a file that `apply` takes. */
async function exportDefinition(call: Call): Promise<void> {
  const version = call.options.number('version')
  const path = await namedAgent(call)
  const source = version === undefined ? path : `${path}/versions/${version}`
  const { definition } = await call.gateway.request('GET', source)
  const isJson = call.options.text('format') === 'json'
  call.print(isJson ? JSON.stringify(definition, null, 2) : stringify(definition).trimEnd())
}

const runColumns = ['id', 'status', 'step', 'attempt', 'origin', 'cost', 'created_at', 'ended_at']

export const agentCommands: Command[] = [
  {
    group: 'agents',
    verb: 'list',
    summary: 'List agents',
    inOrganization: true,
    options: listOptions,
    run: async (call) => {
      const columns = ['name', 'version', 'visibility', 'id', 'updated_at']
      return listed(call, `${await organizationPath(call)}/agents`, columns)
    },
  },
  {
    group: 'agents',
    verb: 'show',
    summary: 'Show an agent, by name or id',
    positionals: ['agent'],
    inOrganization: true,
    run: async (call) => one(call.gateway.request('GET', await namedAgent(call))),
  },
  {
    group: 'agents',
    verb: 'apply',
    summary: 'Create the agent of a file, or make its next version',
    inOrganization: true,
    options: {
      file: { value: 'path', describe: 'definition in YAML or JSON (- for standard input)', required: true },
      agent: { value: 'agent', describe: 'name or id of the agent, where the file changes its name' },
      version: { value: 'number', describe: 'refuse if the agent has another version' },
      creator: { value: 'user', describe: 'of a new agent: the user with whose rights its triggers run' },
    },
    run: async (call) => one(apply(call)),
  },
  {
    group: 'agents',
    verb: 'export',
    summary: 'Print the definition of an agent, as apply takes it',
    positionals: ['agent'],
    inOrganization: true,
    options: {
      version: { value: 'number', describe: 'an earlier version' },
      format: { value: 'name', describe: 'yaml (as without it) or json' },
    },
    run: async (call) => {
      await exportDefinition(call)
      return { kind: 'printed' }
    },
  },
  {
    group: 'agents',
    verb: 'remove',
    summary: 'Delete an agent; its runs stay readable',
    positionals: ['agent'],
    inOrganization: true,
    run: async (call) => one(call.gateway.request('DELETE', await namedAgent(call))),
  },
  {
    group: 'agents',
    verb: 'versions',
    summary: 'List the versions of an agent',
    positionals: ['agent'],
    inOrganization: true,
    options: listOptions,
    run: async (call) =>
      listed(call, `${await namedAgent(call)}/versions`, ['version', 'author', 'created_at']),
  },
  {
    group: 'agents',
    verb: 'webhook-secret',
    summary: 'Renew the secret of a webhook, and show it once',
    positionals: ['agent', 'trigger'],
    inOrganization: true,
    run: async (call) => {
      const trigger = encodeURIComponent(call.positionals[1] ?? '')
      return one(call.gateway.request('POST', `${await namedAgent(call)}/triggers/${trigger}/secret`))
    },
  },
  {
    group: 'agents',
    verb: 'runs',
    summary: 'List the runs of an agent',
    positionals: ['agent'],
    inOrganization: true,
    options: {
      ...listOptions,
      status: { value: 'name', describe: 'in_progress, success, failure or cancelled' },
    },
    run: async (call) =>
      listed(call, `${await namedAgent(call)}/runs`, runColumns, { status: call.options.text('status') }),
  },
  {
    group: 'agents',
    verb: 'run',
    summary: 'Show a run with its attempts and verdicts',
    positionals: ['run'],
    inOrganization: true,
    run: async (call) => one(call.gateway.request('GET', await runPath(call))),
  },
  {
    group: 'agents',
    verb: 'cancel',
    summary: 'Cancel a run',
    positionals: ['run'],
    inOrganization: true,
    run: async (call) => one(call.gateway.request('POST', await runPath(call, '/cancel'))),
  },
  {
    group: 'agents',
    verb: 'rerun',
    summary: 'Repeat the failed step of a run',
    positionals: ['run'],
    inOrganization: true,
    run: async (call) => {
      const run = await call.gateway.request('POST', await runPath(call, '/rerun'))
      if (typeof run.warning === 'string') call.note(run.warning)
      return { kind: 'item', item: run }
    },
  },
]
