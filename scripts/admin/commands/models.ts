import type { NamedRoute } from '../../model-catalogue/find-entry.ts'
import { type Call, type Command, given, type Option, type Outcome } from '../command.ts'
import { AdminError, usageError } from '../errors.ts'
import type { Item } from '../gateway.ts'
import {
  type Entries,
  entriesOfRoutes,
  knownMembers,
  knownPercents,
  listKnownModels,
  remarkOf,
} from '../known-models.ts'
import { type Naming, one, type TableCall } from '../table.ts'

// Models and their routes, which belong to the whole deployment.

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

/** A route of the command line. */
interface GivenRoute extends NamedRoute {
  providerId: string
  /** Of `--route-percent`. */
  percent: number | undefined
}

async function routesOf(call: TableCall): Promise<GivenRoute[] | undefined> {
  const texts = call.options.texts('route')
  if (texts === undefined) return undefined
  const percents = namedNumbers(call.options.texts('route-percent')) ?? {}
  const routes: GivenRoute[] = []
  for (const text of texts) {
    const [provider = '', ...model] = text.split('=')
    const upstreamModel = model.join('=')
    if (provider === '' || upstreamModel === '') {
      throw usageError(`--route takes provider=model, not "${text}"`)
    }
    const providerId = await call.find('provider', provider)
    const shown = await call.gateway.call('providers.show', { path: { providerId } })
    const { kind, base_url: baseUrl } = shown
    routes.push({ providerId, kind, baseUrl, upstreamModel, percent: percents[provider] })
  }
  return routes
}

/** Routes of which no percentage is given cost what the catalogue says. */
function pricedRoutes(routes: readonly GivenRoute[], entries: Entries): Item[] {
  const percents = knownPercents(entries, routes)
  return routes.map(({ providerId, upstreamModel, percent }, index) => ({
    provider_id: providerId,
    upstream_model: upstreamModel,
    price_percent: percent ?? percents[index] ?? 100,
  }))
}

/** The model as a PUT would write it, or null if there is none. */
async function storedModel(call: TableCall): Promise<Item | null> {
  const request = { path: await call.path() }
  const model = await call.gateway.call('models.show', request).catch(missingAsNull)
  if (model === null) return null
  const { id: _id, created_at: _created, disabled_at: disabledAt, routes, ...rest } = model
  return {
    ...rest,
    disabled: disabledAt !== null,
    routes: routes.map(({ provider: _, ...route }) => route),
  }
}

/**
 * Creates or changes a model. A new one has what the catalogue knows of its routes, where no option says otherwise; a stored
 * one keeps what it has, unless the catalogue is asked for.
 */
async function setModel(call: TableCall): Promise<Outcome> {
  const stored = await storedModel(call)
  const named = call.options.text('catalogue')
  const routes = await routesOf(call)
  const [id = ''] = call.positionals
  if (named !== undefined && routes === undefined) throw usageError('--catalogue needs the --route')
  const entries = named === 'none' ? [] : entriesOfRoutes(id, routes ?? [], named)
  const isFilled = stored === null || named !== undefined
  const known: Item = isFilled ? knownMembers(entries) : {}
  const { path, body: members } = await call.request()
  const body = {
    ...stored,
    ...known,
    ...members,
    ...given({ routes: routes && pricedRoutes(routes, entries) }),
    prices: pricesOfSet(stored, known, pricesOf(call)),
  }
  if (stored === null && isIncomplete(body)) noteUnknown(call, routes ?? [])
  const model = one(await call.gateway.send('models.replace', { path, body }))
  if (known.prices !== undefined && body.prices === known.prices) noteSource(call, entries)
  return model
}

/** Prices of the command line stand alone on a new model: the catalogue's may not fit them. */
function pricesOfSet(stored: Item | null, known: Item, prices: Item): Item {
  if (known.prices !== undefined && Object.keys(prices).length === 0) return known.prices as Item
  return { ...(stored?.prices as Item | undefined), ...prices }
}

const NEEDED = ['owned_by', 'context_window', 'max_output_tokens']

function isIncomplete(body: Item): boolean {
  const { input, output } = body.prices as Item
  return NEEDED.some((name) => body[name] === undefined) || input === undefined || output === undefined
}

function noteUnknown(call: Call, routes: readonly GivenRoute[]): void {
  const [route] = routes
  if (route === undefined) return
  call.note(
    `The catalogue has no model "${route.upstreamModel}": give its limits and prices, or --catalogue with one of models known ${route.kind}.`,
  )
}

function noteSource(call: Call, entries: Entries): void {
  const remark = remarkOf(entries)
  if (remark !== undefined) call.note(remark)
}

/**
 * Makes sure that models can be registered under the ids that they have at a provider.
 * @throws AdminError for one that the catalogue has not, and for one that exists.
 */
export async function checkKnownModels(
  call: Call,
  provider: Omit<NamedRoute, 'upstreamModel'>,
  ids: string[],
) {
  for (const id of ids) {
    entriesOfRoutes(id, [{ ...provider, upstreamModel: id }], id)
    const existing = await call.gateway.call('models.show', { path: { modelId: id } }).catch(missingAsNull)
    if (existing !== null) {
      throw new AdminError(`there is a model "${id}" already: give it the route with models set`)
    }
  }
}

/** Registers a model under the id that it has at its provider, with what the catalogue knows about it. */
export async function addKnownModel(call: Call, route: NamedRoute & { providerId: string }): Promise<void> {
  const { upstreamModel: id } = route
  const entries = entriesOfRoutes(id, [route], id)
  const routes = pricedRoutes([{ ...route, percent: undefined }], entries)
  const body = { ...knownMembers(entries), routes }
  await call.gateway.send('models.replace', { path: { modelId: id }, body })
  noteSource(call, entries)
}

function missingAsNull(error: unknown): null {
  if (error instanceof AdminError && error.status === 404) return null
  throw error
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

export const MODELS: Record<string, Naming> = {
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
        describe: 'percent of the token prices over a --route (that of the catalogue)',
        multiple: true,
      },
      catalogue: {
        value: 'model',
        describe: 'take limits, prices and capabilities of this model from the catalogue; or none',
      },
    },
    run: setModel,
  },
  'models disable': { ...modelSwitch(true), summary: 'Take a model out of use' },
  'models enable': { ...modelSwitch(false), summary: 'Take a model into use again' },
}

/** Reads the catalogue, which is a part of this program, and no gateway. */
export const KNOWN_MODELS: Command = {
  group: 'models',
  verb: 'known',
  summary: 'List the models of a kind of provider whose limits and prices are known',
  positionals: ['kind'],
  inOrganization: false,
  options: {},
  run: listKnownModels,
}
