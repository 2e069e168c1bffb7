import { subjectOf, subjectOptions } from './access-commands.ts'
import { type Call, type Command, given, listed, listOptions, type Option, one } from './command.ts'
import { fileOption, fileText } from './file-option.ts'
import { type Item, usageError } from './gateway-client.ts'
import { integrationId, organizationPath } from './ids-by-name.ts'
import { yamlObject } from './yaml-file.ts'

// Integrations, their tools, and who may use them.

const settings: Record<string, Option> = {
  name: { value: 'text', describe: 'the name that people see' },
  description: { value: 'text', describe: 'what it is for' },
  auth: { value: 'method', describe: 'none (default), bearer, basic, oauth, or header:<name>' },
  'client-id': {
    value: 'id',
    describe: 'of the OAuth client; its secret is read from standard input with --client-secret',
  },
  'client-secret': { describe: 'read the secret of the OAuth client from standard input' },
  scope: { value: 'scope', describe: 'a scope of OAuth', multiple: true },
  approval: {
    value: 'policy',
    describe: 'first (default), automatic or manual: which definitions need no approval',
  },
  price: { value: 'micro-credits', describe: 'of an executed call' },
}

/** The members of an integration, from the options. */
async function settingsOf(call: Call): Promise<Item> {
  const { options } = call
  return given({
    url: options.text('url'),
    display_name: options.text('name'),
    description: options.text('description'),
    approval: options.text('approval'),
    price: options.number('price'),
    authorization: await authorizationOf(call),
    document: options.text('file') === undefined ? undefined : await documentOf(call),
  })
}

async function authorizationOf(call: Call): Promise<Item | undefined> {
  const method = call.options.text('auth')
  const clientId = call.options.text('client-id')
  const scopes = call.options.texts('scope')
  const hasSecret = call.options.flag('client-secret')
  if (method !== 'oauth' && (clientId !== undefined || scopes !== undefined || hasSecret)) {
    throw usageError('--client-id, --client-secret and --scope go with --auth oauth')
  }
  if (method === undefined) return undefined
  if (method.startsWith('header:')) return { kind: 'header', header: method.slice('header:'.length) }
  const secret = hasSecret ? (await call.readInput()).trim() : undefined
  return given({ kind: method, client_id: clientId, client_secret: secret, scopes })
}

/** How often a document may repeat its anchors. */
const MOST_ALIASES = 100

/** The document of an API. YAML is read here: the gateway takes JSON. */
async function documentOf(call: Call): Promise<Item> {
  const { path, text } = await fileText(call)
  return yamlObject(path, text, MOST_ALIASES)
}

async function namedIntegration(call: Call): Promise<string> {
  const organization = await organizationPath(call)
  return `${organization}/integrations/${await integrationId(call, organization, call.positionals[0] ?? '')}`
}

const toolOption: Record<string, Option> = {
  tool: { value: 'name', describe: 'a tool, by the name that the upstream has', multiple: true },
}

const CATALOGUE_COLUMNS = [
  'connection_id',
  'kind',
  'tools',
  'added',
  'changed',
  'removed',
  'pending',
  'error',
]

async function refresh(call: Call, path: string, body: Item) {
  const { catalogues } = await call.gateway.request('POST', `${path}/refresh`, body)
  return { kind: 'list' as const, items: catalogues as Item[], columns: CATALOGUE_COLUMNS, more: false }
}

const integrationChanges: Command[] = [
  {
    group: 'integrations',
    verb: 'add',
    summary: 'Add an MCP server (--url) or an API (--file with its OpenAPI document), and list its tools',
    positionals: ['slug'],
    inOrganization: true,
    options: {
      url: { value: 'address', describe: 'of the MCP server, or of the API where its document names none' },
      ...fileOption('OpenAPI document of an API, as YAML or JSON (- for standard input)'),
      ...settings,
    },
    run: async (call) => {
      const organization = await organizationPath(call)
      const members = await settingsOf(call)
      const kind = members.document === undefined ? 'mcp' : 'openapi'
      if (kind === 'mcp' && members.url === undefined) throw usageError('which one? --url or --file')
      const body = { kind, slug: call.positionals[0], ...members }
      const item = await call.gateway.request('POST', `${organization}/integrations`, body)
      const path = `${organization}/integrations/${item.id}`
      if (isForAll(item)) await refresh(call, path, {})
      else call.note('Its tools are listed once there is a connection.')
      return one(call.gateway.request('GET', path))
    },
  },
  {
    group: 'integrations',
    verb: 'update',
    summary: 'Change an integration; what is not given stays',
    positionals: ['integration'],
    inOrganization: true,
    options: {
      url: { value: 'address', describe: 'another address' },
      ...fileOption('another OpenAPI document, as YAML or JSON (- for standard input)'),
      ...settings,
    },
    run: async (call) =>
      one(call.gateway.request('PUT', await namedIntegration(call), await settingsOf(call))),
  },
  {
    group: 'integrations',
    verb: 'remove',
    summary: 'Delete an integration with its connections and grants',
    positionals: ['integration'],
    inOrganization: true,
    run: async (call) => one(call.gateway.request('DELETE', await namedIntegration(call))),
  },
]

/** Whether its tools are the same for everybody, so that they can be listed without a connection. */
const isForAll = ({ kind, authorization }: Item): boolean =>
  kind === 'openapi' || (authorization as Item).kind === 'none'

const integrationViews: Command[] = [
  {
    group: 'integrations',
    verb: 'list',
    summary: 'List integrations',
    inOrganization: true,
    options: listOptions,
    run: async (call) => {
      const columns = ['slug', 'kind', 'url', 'authorization', 'approval', 'price', 'disabled_at', 'id']
      return listed(call, `${await organizationPath(call)}/integrations`, columns)
    },
  },
  {
    group: 'integrations',
    verb: 'show',
    summary: 'Show an integration with the state of its catalogues',
    positionals: ['integration'],
    inOrganization: true,
    run: async (call) => one(call.gateway.request('GET', await namedIntegration(call))),
  },
  {
    group: 'integrations',
    verb: 'refresh',
    summary: 'List the tools of an integration anew',
    positionals: ['integration'],
    inOrganization: true,
    options: { connection: { value: 'id', describe: 'only for this connection' } },
    run: async (call) =>
      refresh(call, await namedIntegration(call), given({ connection_id: call.options.text('connection') })),
  },
  {
    group: 'integrations',
    verb: 'tools',
    summary: 'List the tools of an integration, and what about them changed',
    positionals: ['integration'],
    inOrganization: true,
    options: { state: { value: 'state', describe: 'only those that are pending, changed, approved, …' } },
    run: async (call) => {
      const { data } = await call.gateway.request('GET', `${await namedIntegration(call)}/tools`)
      const state = call.options.text('state')
      const items = (data as Item[]).filter((item) => state === undefined || item.state === state)
      const columns = ['name', 'state', 'exposed_name', 'changes', 'decided_by', 'hash']
      return { kind: 'list', items, columns, more: false }
    },
  },
]

/** Decisions about definitions. */
const decisions = (['approve', 'reject'] as const).map(
  (verb): Command => ({
    group: 'integrations',
    verb,
    summary:
      verb === 'approve'
        ? 'Approve definitions of tools: all that are pending, or those of --tool'
        : 'Reject definitions of tools: all that are pending, or those of --tool',
    positionals: ['integration'],
    inOrganization: true,
    options: { ...toolOption, hash: { value: 'hash', describe: 'only this definition' } },
    run: async (call) => {
      const body = given({ tools: call.options.texts('tool'), hash: call.options.text('hash') })
      return one(call.gateway.request('POST', `${await namedIntegration(call)}/tools/${verb}`, body))
    },
  }),
)

/** The whole integration, or single tools of it. */
const switches = (['enable', 'disable'] as const).map(
  (verb): Command => ({
    group: 'integrations',
    verb,
    summary:
      verb === 'enable'
        ? 'Let an integration be used again, or tools of it (--tool)'
        : 'Switch an integration off, or tools of it (--tool)',
    positionals: ['integration'],
    inOrganization: true,
    options: toolOption,
    run: async (call) => {
      const path = await namedIntegration(call)
      const tools = call.options.texts('tool')
      return tools === undefined
        ? one(call.gateway.request('PUT', path, { disabled: verb === 'disable' }))
        : one(call.gateway.request('POST', `${path}/tools/${verb}`, { tools }))
    },
  }),
)

const grantCommands: Command[] = [
  {
    group: 'integrations',
    verb: 'grants',
    summary: 'List who may use which integration',
    inOrganization: true,
    options: { ...listOptions, integration: { value: 'slug', describe: 'only on this integration' } },
    run: async (call) => {
      const columns = ['integration', 'tools', 'subject_type', 'subject_id', 'id', 'created_at']
      return listed(call, `${await organizationPath(call)}/integration-grants`, columns, {
        integration: call.options.text('integration'),
      })
    },
  },
  {
    group: 'integrations',
    verb: 'grant',
    summary: "Let somebody use an integration ('*' for all), or some of its tools",
    positionals: ['slug'],
    inOrganization: true,
    options: { ...subjectOptions, ...toolOption },
    run: async (call) => {
      const organization = await organizationPath(call)
      const body = given({
        ...(await subjectOf(call, organization)),
        integration: call.positionals[0],
        tools: call.options.texts('tool'),
      })
      return one(call.gateway.request('POST', `${organization}/integration-grants`, body))
    },
  },
  {
    group: 'integrations',
    verb: 'revoke',
    summary: 'Take a grant on an integration back',
    positionals: ['grant-id'],
    inOrganization: true,
    run: async (call) => {
      const grant = encodeURIComponent(call.positionals[0] ?? '')
      const organization = await organizationPath(call)
      return one(call.gateway.request('DELETE', `${organization}/integration-grants/${grant}`))
    },
  },
]

export const integrationCommands: Command[] = [
  ...integrationViews,
  ...integrationChanges,
  ...decisions,
  ...switches,
  ...grantCommands,
]
