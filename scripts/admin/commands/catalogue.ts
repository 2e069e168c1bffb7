import { type Call, given, type Option, type Outcome } from '../command.ts'
import { AdminError, usageError } from '../errors.ts'
import type { Item } from '../gateway.ts'
import { type Naming, one, type TableCall } from '../table.ts'
import { switchOf } from './people.ts'

// Providers and models, which belong to the whole deployment.

/** Credentials come from where no shell history and no process list shows them. */
const CREDENTIAL: Record<string, Option> = {
  'credential-stdin': { describe: 'read the credential from standard input (or set PROVIDER_CREDENTIAL)' },
  'credential-parts': { describe: 'it is a JSON object of named parts, such as {"secret":"..."}' },
}

const ALLOWED: Record<string, Option> = {
  'allow-member': {
    value: 'name',
    describe: 'member that may select models there, or refer to files and containers; or none',
    multiple: true,
  },
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

function allowsUnpriced({ options }: Call): boolean | undefined {
  const text = options.text('unpriced')
  if (text === undefined) return undefined
  if (text !== 'allow' && text !== 'refuse') throw usageError('--unpriced takes allow or refuse')
  return text === 'allow'
}

const settingsOf = async (call: Call): Promise<Item> =>
  given({
    credential: await credentialOf(call),
    allowed_members: call.options.texts('allow-member')?.filter((name) => name !== 'none'),
    allow_unpriced: allowsUnpriced(call),
  })

async function settingsOfNew(call: Call): Promise<Item> {
  const settings = await settingsOf(call)
  if (settings.credential === undefined) {
    throw usageError('give --credential-stdin, or set PROVIDER_CREDENTIAL')
  }
  return settings
}

const price = (what: string): Option => ({
  value: 'number',
  describe: `micro-credits per million tokens of ${what}`,
})

const PRICES: Record<string, Option> = {
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
}

const pricesOf = ({ options }: Call): Item =>
  given({
    input: options.number('price-input'),
    output: options.number('price-output'),
    cache_read: options.number('price-cache-read'),
    cache_write_5_minutes: options.number('price-cache-write-5-minutes'),
    cache_write_1_hour: options.number('price-cache-write-1-hour'),
    units: namedNumbers(options.texts('price-unit')),
    classes: namedNumbers(options.texts('price-class')),
  })

/** Values of an option as `name=number`, by name; the name may hold an equals sign. */
const namedNumbers = (texts: string[] | undefined) => texts && Object.fromEntries(texts.map(namedNumber))

function namedNumber(text: string): [name: string, value: number] {
  const [, name = '', value = ''] = /^(.+)=(\d+)$/.exec(text) ?? []
  if (name === '') throw usageError(`a price is a name, an equals sign and a whole number, not "${text}"`)
  return [name, Number(value)]
}

async function routesOf(call: TableCall): Promise<Item[] | undefined> {
  const texts = call.options.texts('route')
  if (texts === undefined) return undefined
  const percents = namedNumbers(call.options.texts('route-percent')) ?? {}
  const routes: Item[] = []
  for (const text of texts) {
    const [provider = '', ...model] = text.split('=')
    if (provider === '' || model.join('=') === '') {
      throw usageError(`--route takes provider=model, not "${text}"`)
    }
    const { [provider]: percent = 100 } = percents
    routes.push({
      provider_id: await call.find('provider', provider),
      upstream_model: model.join('='),
      price_percent: percent,
    })
  }
  return routes
}

/** The model as a PUT would write it, or null if there is none. */
async function storedModel(call: TableCall): Promise<Item | null> {
  const request = { path: await call.path() }
  const model = await call.gateway.call('models.show', request).catch((error: unknown) => {
    if (error instanceof AdminError && error.status === 404) return null
    throw error
  })
  if (model === null) return null
  const { id: _id, created_at: _created, disabled_at: disabledAt, routes, ...rest } = model
  return {
    ...rest,
    disabled: disabledAt !== null,
    routes: routes.map(({ provider: _, ...route }) => route),
  }
}

async function setModel(call: TableCall): Promise<Outcome> {
  const stored = await storedModel(call)
  const prices = pricesOf(call)
  const { path, body: members } = await call.request()
  const body = {
    ...stored,
    ...members,
    ...given({ routes: await routesOf(call) }),
    prices: { ...(stored?.prices as Item | undefined), ...prices },
  }
  return one(await call.gateway.send('models.replace', { path, body }))
}

/** A PUT replaces the whole model. */
const modelSwitch = (disabled: boolean): Naming => ({
  endpoint: 'models.replace',
  takes: [],
  run: async (call) => {
    const stored = await storedModel(call)
    if (stored === null) throw new AdminError(`there is no model "${call.positionals[0]}"`)
    const request = { path: await call.path(), body: { ...stored, disabled } }
    return one(await call.gateway.send('models.replace', request))
  },
})

export const CATALOGUE: Record<string, Naming> = {
  'providers list': { columns: ['name', 'kind', 'base_url', 'id', 'disabled_at'] },
  'providers show': {},
  'providers create': {
    arguments: ['name'],
    takes: ['kind', 'base_url', 'organization_id'],
    options: { ...ALLOWED, ...CREDENTIAL },
    body: settingsOfNew,
  },
  'providers update': {
    endpoint: 'providers.change',
    takes: ['name', 'base_url'],
    options: {
      ...ALLOWED,
      unpriced: { value: 'allow|refuse', describe: 'calls that use what has no price' },
      ...CREDENTIAL,
    },
    body: settingsOf,
  },
  'providers disable': { ...switchOf('providers.change', true), summary: 'Send no call to a provider' },
  'providers enable': {
    ...switchOf('providers.change', false),
    summary: 'Send calls to a provider again',
  },
  'models list': {
    columns: ['id', 'owned_by', 'context_window', 'max_output_tokens', 'routes', 'disabled_at'],
  },
  'models show': {},
  'models set': {
    endpoint: 'models.replace',
    summary: 'Create a model or change it; what is not given stays',
    partial: true,
    options: {
      ...PRICES,
      route: { value: 'provider=model', describe: 'where calls go, best first', multiple: true },
      'route-percent': {
        value: 'provider=percent',
        describe: 'percent of the token prices over a --route, such as 110 for a region',
        multiple: true,
      },
    },
    run: setModel,
  },
  'models disable': { ...modelSwitch(true), summary: 'Take a model out of use' },
  'models enable': { ...modelSwitch(false), summary: 'Take a model into use again' },
}
