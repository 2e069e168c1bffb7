import { type Call, given, type Option } from '../command.ts'
import { usageError } from '../errors.ts'
import { fileOption, fileText } from '../file-option.ts'
import type { Item } from '../gateway.ts'
import { type Naming, one, rowsOf, type TableCall } from '../table.ts'
import { SUBJECTS, subjectOf } from './people.ts'

// Integrations, their tools, and who may use them.

const AUTHORIZATION: Record<string, Option> = {
  auth: { value: 'method', describe: 'none (default), bearer, basic, oauth, or header:<name>' },
  'client-id': {
    value: 'id',
    describe: 'of the OAuth client; its secret is read from standard input with --client-secret',
  },
  'client-secret': { describe: 'read the secret of the OAuth client from standard input' },
  scope: { value: 'scope', describe: 'a scope of OAuth', multiple: true },
}

async function authorizationOf({ options, readInput }: Call): Promise<Item | undefined> {
  const method = options.text('auth')
  const clientId = options.text('client-id')
  const scopes = options.texts('scope')
  const hasSecret = options.flag('client-secret')
  if (method !== 'oauth' && (clientId !== undefined || scopes !== undefined || hasSecret)) {
    throw usageError('--client-id, --client-secret and --scope go with --auth oauth')
  }
  if (method === undefined) return undefined
  if (method.startsWith('header:')) return { kind: 'header', header: method.slice('header:'.length) }
  const secret = hasSecret ? (await readInput()).trim() : undefined
  return given({ kind: method, client_id: clientId, client_secret: secret, scopes })
}

/** How often a document may repeat its anchors. */
const MOST_ALIASES = 100

/** The members that no option of their own gives. YAML is read here: the gateway takes JSON. */
async function settingsOf(call: TableCall): Promise<Item> {
  const authorization = await authorizationOf(call)
  if (call.options.text('file') === undefined) return given({ authorization })
  const { yamlObject } = await import('../yaml-file.ts')
  const { path, text } = await fileText(call)
  return given({ authorization, document: yamlObject(path, text, MOST_ALIASES) })
}

async function add(call: TableCall) {
  const { body, path } = await call.request()
  const kind = body.document === undefined ? 'mcp' : 'openapi'
  if (kind === 'mcp' && body.url === undefined) throw usageError('which one? --url or --file')
  const created = await call.gateway.send('integrations.create', { path, body: { kind, ...body } })
  const place = { path: { ...(await call.path()), integrationId: String(created.id) } }
  if (isForAll(created)) await call.gateway.call('integrations.refresh', { ...place, body: {} })
  else call.note('Its tools are listed once there is a connection.')
  return one(await call.gateway.call('integrations.show', place))
}

/** Whether its tools are the same for everybody, so that they can be listed without a connection. */
const isForAll = ({ kind, authorization }: Item): boolean =>
  kind === 'openapi' || (authorization as Item).kind === 'none'

/** The whole integration, or single tools of it. */
const switchOf = (verb: 'enable' | 'disable'): Naming => ({
  endpoint: `integration-tools.${verb}`,
  partial: true,
  run: async (call) => {
    const { path, body } = await call.request()
    if (body.tools !== undefined) return one(await call.gateway.send(call.endpoint, { path, body }))
    return one(
      await call.gateway.send('integrations.change', { path, body: { disabled: verb === 'disable' } }),
    )
  },
})

const CATALOGUE = ['connection_id', 'kind', 'tools', 'added', 'changed', 'removed', 'pending', 'error']
const TOOLS = rowsOf('data', ['name', 'state', 'exposed_name', 'changes', 'decided_by', 'hash'])

export const INTEGRATIONS: Record<string, Naming> = {
  'integrations list': {
    columns: ['slug', 'kind', 'url', 'authorization', 'approval', 'price', 'disabled_at', 'id'],
  },
  'integrations show': {},
  'integrations add': {
    endpoint: 'integrations.create',
    summary: 'Add an MCP server (--url) or an API (--file with its OpenAPI document), and list its tools',
    arguments: ['slug'],
    takes: ['url', 'display_name', 'description', 'approval', 'price'],
    options: {
      ...fileOption('OpenAPI document of an API, as YAML or JSON (- for standard input)'),
      ...AUTHORIZATION,
    },
    body: settingsOf,
    run: add,
  },
  'integrations update': {
    endpoint: 'integrations.change',
    options: {
      ...fileOption('another OpenAPI document, as YAML or JSON (- for standard input)'),
      ...AUTHORIZATION,
    },
    body: settingsOf,
  },
  'integrations remove': {},
  'integrations refresh': { shows: rowsOf('catalogues', CATALOGUE) },
  'integrations tools': {
    endpoint: 'integration-tools.list',
    options: { state: { value: 'state', describe: 'only those that are pending, changed, approved, …' } },
    shows: ({ data }, call) => {
      const state = call.options.text('state')
      return TOOLS({ data: (data as Item[]).filter((item) => state === undefined || item.state === state) })
    },
  },
  'integrations approve': {
    endpoint: 'integration-tools.approve',
    summary: 'Approve definitions of tools: all that are pending, or those of --tool',
  },
  'integrations reject': {
    endpoint: 'integration-tools.reject',
    summary: 'Reject definitions of tools: all that are pending, or those of --tool',
  },
  'integrations enable': {
    ...switchOf('enable'),
    summary: 'Let an integration be used again, or tools of it (--tool)',
  },
  'integrations disable': {
    ...switchOf('disable'),
    summary: 'Switch an integration off, or tools of it (--tool)',
  },

  'integrations grants': {
    endpoint: 'integration-grants.list',
    columns: ['integration', 'tools', 'subject_type', 'subject_id', 'id', 'created_at'],
  },
  'integrations grant': {
    endpoint: 'integration-grants.create',
    arguments: ['integration'],
    takes: ['tools'],
    options: SUBJECTS,
    body: subjectOf,
  },
  'integrations revoke': { endpoint: 'integration-grants.remove' },
}
