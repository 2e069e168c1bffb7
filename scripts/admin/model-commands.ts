import { type Call, type Command, given, listed, listOptions, type Option, one } from './command.ts'
import { AdminError, type Item, usageError } from './gateway-client.ts'
import { organizationId, providerId } from './ids-by-name.ts'

// Providers and models, which belong to the whole deployment.

/** Credentials come from where no shell history and no process list shows them. */
const credentialOptions: Record<string, Option> = {
  'credential-stdin': { describe: 'read the credential from standard input (or set PROVIDER_CREDENTIAL)' },
  'credential-parts': { describe: 'it is a JSON object of named parts, such as {"secret":"..."}' },
}

const memberOptions: Record<string, Option> = {
  'allow-member': {
    value: 'name',
    describe: 'member that may select models there, or refer to files and containers; or none',
    multiple: true,
  },
}

function allowedMembers({ options }: Call): string[] | undefined {
  return options.texts('allow-member')?.filter((name) => name !== 'none')
}

async function credentialOf(call: Call): Promise<string | Item | undefined> {
  const text = await credentialText(call)
  if (!call.options.flag('credential-parts')) return text
  if (text === undefined) throw usageError('--credential-parts needs a credential')
  return credentialParts(text)
}

async function credentialText({ options, environment, readInput }: Call): Promise<string | undefined> {
  if (!options.flag('credential-stdin')) return environment.PROVIDER_CREDENTIAL || undefined
  const text = (await readInput()).trim()
  if (text === '') throw usageError('there was no credential on standard input')
  return text
}

/** The parser's own error would quote the text. */
function credentialParts(text: string): Item {
  let parts: unknown = null
  try {
    parts = JSON.parse(text)
  } catch {}
  if (typeof parts !== 'object' || parts === null || Array.isArray(parts)) {
    throw usageError('the credential is not a JSON object of named parts')
  }
  return parts as Item
}

const namedProvider = async (call: Call) => `/providers/${await providerId(call, call.positionals[0] ?? '')}`

function allowsUnpriced({ options }: Call): boolean | undefined {
  const text = options.text('unpriced')
  if (text === undefined) return undefined
  if (text !== 'allow' && text !== 'refuse') throw usageError('--unpriced takes allow or refuse')
  return text === 'allow'
}

const providerCommands: Command[] = [
  {
    group: 'providers',
    verb: 'list',
    summary: 'List providers',
    options: listOptions,
    run: (call) => listed(call, '/providers', ['name', 'kind', 'base_url', 'id', 'disabled_at']),
  },
  {
    group: 'providers',
    verb: 'show',
    summary: 'Show a provider, by name or id',
    positionals: ['provider'],
    run: async (call) => one(call.gateway.request('GET', await namedProvider(call))),
  },
  {
    group: 'providers',
    verb: 'create',
    summary: 'Register a provider',
    positionals: ['name'],
    options: {
      kind: { value: 'kind', describe: 'openai-compatible or anthropic', required: true },
      'base-url': { value: 'url', describe: 'where it answers', required: true },
      'for-organization': { value: 'organization', describe: 'slug or id of the only one it serves (all)' },
      ...memberOptions,
      ...credentialOptions,
    },
    run: async (call) => {
      const credential = await credentialOf(call)
      if (credential === undefined) throw usageError('give --credential-stdin, or set PROVIDER_CREDENTIAL')
      const { options } = call
      const owner = options.text('for-organization')
      const body = {
        ...{ kind: options.text('kind'), base_url: options.text('base-url'), credential },
        ...given({
          organization_id: owner === undefined ? undefined : await organizationId(call, owner),
          allowed_members: allowedMembers(call),
        }),
      }
      return one(call.gateway.request('POST', '/providers', { name: call.positionals[0], ...body }))
    },
  },
  {
    group: 'providers',
    verb: 'update',
    summary: 'Change name, address, credential or allowed members of a provider',
    positionals: ['provider'],
    options: {
      name: { value: 'name', describe: 'its name' },
      'base-url': { value: 'url', describe: 'where it answers' },
      ...memberOptions,
      unpriced: { value: 'allow|refuse', describe: 'calls that use what has no price' },
      ...credentialOptions,
    },
    run: async (call) => {
      const changes = given({
        name: call.options.text('name'),
        base_url: call.options.text('base-url'),
        allow_unpriced: allowsUnpriced(call),
        credential: await credentialOf(call),
        allowed_members: allowedMembers(call),
      })
      return one(call.gateway.request('PUT', await namedProvider(call), changes))
    },
  },
  ...[true, false].map(
    (disabled): Command => ({
      group: 'providers',
      verb: disabled ? 'disable' : 'enable',
      summary: disabled ? 'Send no call to a provider' : 'Send calls to a provider again',
      positionals: ['provider'],
      run: async (call) => one(call.gateway.request('PUT', await namedProvider(call), { disabled })),
    }),
  ),
]

/** Model ids may hold slashes, which the API takes as they are. */
const modelPath = (call: Call) =>
  `/models/${(call.positionals[0] ?? '').split('/').map(encodeURIComponent).join('/')}`

const price = (what: string): Option => ({
  value: 'number',
  describe: `micro-credits per million tokens of ${what}`,
})

const modelCommands: Command[] = [
  {
    group: 'models',
    verb: 'list',
    summary: 'List models',
    options: listOptions,
    run: (call) =>
      listed(call, '/models', [
        'id',
        'owned_by',
        'context_window',
        'max_output_tokens',
        'routes',
        'disabled_at',
      ]),
  },
  {
    group: 'models',
    verb: 'show',
    summary: 'Show a model with prices and routes',
    positionals: ['model'],
    run: (call) => one(call.gateway.request('GET', modelPath(call))),
  },
  {
    group: 'models',
    verb: 'set',
    summary: 'Create a model or change it; what is not given stays',
    positionals: ['model'],
    options: {
      'owned-by': { value: 'name', describe: 'who makes it' },
      'context-window': { value: 'tokens', describe: 'longest conversation' },
      'max-output-tokens': { value: 'tokens', describe: 'longest answer' },
      'price-input': price('input'),
      'price-output': price('output'),
      'price-cache-read': price('cached input (as input)'),
      'price-cache-write-5-minutes': price('input cached for 5 minutes (as input)'),
      'price-cache-write-1-hour': price('input cached for an hour (as input)'),
      'price-unit': { value: 'unit=number', describe: 'micro-credits per million units', multiple: true },
      'price-class': {
        value: 'member=value=percent',
        describe: 'percent of the token prices for a selected class',
        multiple: true,
      },
      capability: { value: 'name', describe: 'what it can do', multiple: true },
      route: { value: 'provider=model', describe: 'where calls go, best first', multiple: true },
    },
    run: setModel,
  },
  ...[true, false].map(
    (disabled): Command => ({
      group: 'models',
      verb: disabled ? 'disable' : 'enable',
      summary: disabled ? 'Take a model out of use' : 'Take a model into use again',
      positionals: ['model'],
      run: async (call) => {
        const held = await heldModel(call)
        if (held === null) throw new AdminError(`there is no model "${call.positionals[0]}"`)
        return one(call.gateway.request('PUT', modelPath(call), { ...held, disabled }))
      },
    }),
  ),
]

/** The model as a PUT would write it, or null if there is none. */
async function heldModel(call: Call): Promise<Item | null> {
  const answer = await call.gateway.request('GET', modelPath(call)).catch((error: unknown) => {
    if (error instanceof AdminError && error.status === 404) return null
    throw error
  })
  if (answer === null) return null
  const { id: _id, created_at: _created, disabled_at: disabledAt, routes, ...rest } = answer
  return {
    ...rest,
    disabled: disabledAt !== null,
    routes: (routes as Item[]).map(({ provider_id, upstream_model }) => ({ provider_id, upstream_model })),
  }
}

async function setModel(call: Call) {
  const { options } = call
  const held = await heldModel(call)
  const prices = given({
    input: options.number('price-input'),
    output: options.number('price-output'),
    cache_read: options.number('price-cache-read'),
    cache_write_5_minutes: options.number('price-cache-write-5-minutes'),
    cache_write_1_hour: options.number('price-cache-write-1-hour'),
    units: namedNumbers(call, 'price-unit'),
    classes: namedNumbers(call, 'price-class'),
  })
  const model = {
    ...held,
    ...given({
      owned_by: options.text('owned-by'),
      context_window: options.number('context-window'),
      max_output_tokens: options.number('max-output-tokens'),
      capabilities: options.texts('capability'),
      routes: await routesOf(call),
    }),
    prices: { ...(held?.prices as Item | undefined), ...prices },
  }
  return one(call.gateway.request('PUT', modelPath(call), model))
}

/** Values of an option as `name=number`, by name; the name may hold an equals sign. */
function namedNumbers({ options }: Call, option: string): Record<string, number> | undefined {
  return options.texts(option) && Object.fromEntries((options.texts(option) ?? []).map(namedNumber))
}

function namedNumber(text: string): [name: string, value: number] {
  const [, name = '', value = ''] = /^(.+)=(\d+)$/.exec(text) ?? []
  if (name === '') throw usageError(`a price is a name, an equals sign and a whole number, not "${text}"`)
  return [name, Number(value)]
}

async function routesOf(call: Call): Promise<Item[] | undefined> {
  const texts = call.options.texts('route')
  if (texts === undefined) return undefined
  const routes: Item[] = []
  for (const text of texts) {
    const [provider = '', ...model] = text.split('=')
    if (provider === '' || model.join('=') === '') {
      throw usageError(`--route takes provider=model, not "${text}"`)
    }
    routes.push({ provider_id: await providerId(call, provider), upstream_model: model.join('=') })
  }
  return routes
}

export const catalogueCommands: Command[] = [...providerCommands, ...modelCommands]
