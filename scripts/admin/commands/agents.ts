import { canonicalJson } from '../../../src/lib/canonical-json.ts'
import type { Outcome } from '../command.ts'
import { AdminError, usageError } from '../errors.ts'
import { fileOption, fileText } from '../file-option.ts'
import type { Item } from '../gateway.ts'
import { type Naming, one, type TableCall } from '../table.ts'

// Agents as files: a definition is exported, reviewed and applied; and their runs.

/** Creates the agent of a file, or makes its next version if its definition is another one. */
async function apply(call: TableCall): Promise<Outcome> {
  const { gateway, options } = call
  const { yamlObject } = await import('../yaml-file.ts')
  const { path: file, text } = await fileText(call)
  // Without aliases, which can make a small file a very large definition.
  const definition = yamlObject(file, text, 0)
  const agentId = await existing(call, definition)
  if (agentId === null) return create(call, definition)
  const path = { ...(await call.path()), agentId }
  const current = await gateway.call('agents.show', { path })
  const { version, definition: stored } = current
  const expected = options.number('version')
  if (expected !== undefined && expected !== version) {
    throw new AdminError(`the agent has version ${version}, not ${expected}: look at it again`)
  }
  if (await isSame(definition, stored)) {
    call.note('The agent has this definition already: nothing was changed.')
    return one(current)
  }
  return one(await gateway.send('agents.change', { path, body: { version, definition } }))
}

/** The id of the agent that an option or the definition names; null where there is none of the definition's name. */
async function existing(call: TableCall, { name }: Item): Promise<string | null> {
  const agent = call.options.text('agent')
  if (agent !== undefined) return call.find('agent', agent)
  return call.find('agent', String(name ?? '')).catch((error) => {
    if (error instanceof AdminError && error.status === undefined && error.exitCode === 1) return null
    throw error
  })
}

/** Whether a definition is the stored one, with the defaults of what it leaves out. */
async function isSame(definition: Item, stored: unknown): Promise<boolean> {
  const { agentDefinition } = await import('../../../src/wire/agents.ts')
  const parsed = agentDefinition.safeParse(definition)
  return parsed.success && canonicalJson(parsed.data) === canonicalJson(stored)
}

async function create(call: TableCall, definition: Item): Promise<Outcome> {
  const creator = call.options.text('creator')
  if (creator === undefined) throw usageError('a new agent needs --creator <address or id>')
  const body = { created_by: await call.find('user', creator), definition }
  return one(await call.gateway.send('agents.create', { path: await call.path(), body }))
}

/** The definition of an agent, as a file that `apply` takes. */
async function exportDefinition(call: TableCall): Promise<Outcome> {
  const version = call.options.number('version')
  const path = await call.path()
  const { definition } =
    version === undefined
      ? await call.gateway.call('agents.show', { path })
      : await call.gateway.call('agents.version', { path: { ...path, version } })
  if (call.options.text('format') === 'json' || call.options.flag('json')) {
    call.print(JSON.stringify(definition, null, 2))
  } else {
    const { stringify } = await import('yaml')
    call.print(stringify(definition).trimEnd())
  }
  return { kind: 'printed' }
}

export const AGENTS: Record<string, Naming> = {
  'agents list': { columns: ['name', 'version', 'visibility', 'id', 'updated_at'] },
  'agents show': {},
  'agents apply': {
    endpoint: 'agents.create',
    summary: 'Create the agent of a file, or make its next version',
    takes: [],
    options: {
      ...fileOption('definition in YAML or JSON (- for standard input)', true),
      agent: { value: 'agent', describe: 'name or id of the agent, where the file changes its name' },
      version: { value: 'number', describe: 'refuse if the agent has another version' },
      creator: { value: 'user', describe: 'of a new agent: the user with whose rights its triggers run' },
    },
    run: apply,
  },
  'agents export': {
    endpoint: 'agents.show',
    summary: 'Print the definition of an agent, as apply takes it',
    options: {
      version: { value: 'number', describe: 'an earlier version' },
      format: { value: 'name', describe: 'yaml (as without it) or json', choices: ['yaml', 'json'] },
    },
    run: exportDefinition,
  },
  'agents remove': {},
  'agents versions': { columns: ['version', 'author', 'created_at'] },
  'agents version': {},
  'agents webhook-secret': {
    endpoint: 'agents.renew-secret',
    summary: 'Renew the secret of a webhook, and show it once',
  },
  'agents runs': {
    endpoint: 'runs.list',
    columns: ['id', 'status', 'step', 'attempt', 'origin', 'cost', 'created_at', 'ended_at'],
  },
  'agents run': { endpoint: 'runs.show' },
  'agents cancel': { endpoint: 'runs.cancel' },
  'agents rerun': {
    endpoint: 'runs.rerun',
    remark: ({ warning }) => (typeof warning === 'string' ? warning : undefined),
  },
}
