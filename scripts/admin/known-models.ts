import type { ModelPrices } from '../../schema/models.ts'
import { CATALOGUE, type CatalogueEntry } from '../model-catalogue/catalogue.ts'
import {
  entriesAt,
  findEntry,
  type NamedRoute,
  percentOfPrices,
  pricesOn,
  regionPercent,
  vendorOf,
} from '../model-catalogue/find-entry.ts'
import { type Call, given, type Outcome } from './command.ts'
import { usageError } from './errors.ts'
import type { Item } from './gateway.ts'

// Limits, prices and capabilities of models that the maintained catalogue has.

/** The entry of each route, in its order; undefined where the catalogue has none. */
export type Entries = ReadonlyArray<CatalogueEntry | undefined>

const today = () => new Date().toISOString().slice(0, 10)

/** Kinds whose models have names that their owner has given: the id of the model here says which one it is. */
const OWN_NAMES = new Set(['azure-openai', 'foundry'])

/**
 * @param id of the model for callers. @param named by the administrator in place of the routes' own names.
 * @throws AdminError for a name that no vendor of the routes has.
 */
export function entriesOfRoutes(id: string, routes: readonly NamedRoute[], named?: string): Entries {
  const entries = routes.map(({ kind, baseUrl, upstreamModel }) => {
    const vendor = vendorOf(kind, baseUrl)
    if (vendor === null) return undefined
    if (named !== undefined) return findEntry(vendor, named)
    return findEntry(vendor, upstreamModel) ?? (OWN_NAMES.has(kind) ? findEntry(vendor, id) : undefined)
  })
  if (named !== undefined && entries.every((entry) => entry === undefined)) {
    throw usageError(`no vendor of these routes has a model "${named}": models known <kind> lists them`)
  }
  return entries
}

/** The members of a model that the catalogue knows: those of the first route that it has. Empty for none. */
export function knownMembers(entries: Entries): Item {
  const entry = entries.find((each) => each !== undefined)
  if (entry === undefined) return {}
  return {
    owned_by: entry.ownedBy,
    context_window: entry.contextWindow,
    max_output_tokens: entry.maxOutputTokens,
    prices: pricesInAnswer(pricesOn(entry, today())),
    capabilities: entry.capabilities,
  }
}

/** What each route costs of the prices of `knownMembers`; 100 where the catalogue does not know. */
export function knownPercents(entries: Entries, routes: readonly NamedRoute[]): number[] {
  const base = entries.find((each) => each !== undefined)
  return routes.map((route, index) => {
    const entry = entries[index]
    if (entry === undefined || base === undefined) return 100
    const prices = pricesOn(entry, today())
    return percentOfPrices(prices, regionPercent(entry, route), pricesOn(base, today()))
  })
}

/** A line about what was taken from the catalogue. */
export function remarkOf(entries: Entries): string | undefined {
  const entry = entries.find((each) => each !== undefined)
  if (entry === undefined) return undefined
  const { vendor, id, later } = entry
  const change = later && later.from > today() ? `; the vendor changes them on ${later.from}` : ''
  return `Limits and prices are those of ${id} (${vendor}) in ${CATALOGUE.source} with its corrections${change}.`
}

function pricesInAnswer({ longContext, ...prices }: ModelPrices): Item {
  return given({
    input: prices.input,
    output: prices.output,
    cache_read: prices.cacheRead,
    cache_write_5_minutes: prices.cacheWrite5Minutes,
    cache_write_1_hour: prices.cacheWrite1Hour,
    units: prices.units,
    classes: prices.classes,
    long_context: longContext && {
      above: longContext.above,
      input_percent: longContext.inputPercent,
      output_percent: longContext.outputPercent,
    },
  })
}

const COLUMNS = ['id', 'owned_by', 'context_window', 'max_output_tokens', 'input', 'output', 'capabilities']

/** Lists the models of a kind of provider. @throws AdminError for a kind whose models the catalogue does not have. */
export async function listKnownModels({ positionals: [kind = ''] }: Call): Promise<Outcome> {
  const vendor = vendorOf(kind, 'https://api.openai.com/v1')
  if (vendor === null) throw usageError(`the catalogue has no models of the kind "${kind}"`)
  const items = entriesAt(vendor).map((entry) => {
    const { prices, ...known } = knownMembers([entry])
    const { input, output } = prices as Item
    return { id: entry.id, ...known, input, output, prices, regions: entry.regions ?? {} }
  })
  return { kind: 'list', items, columns: COLUMNS, more: false }
}
