import type { MatchLogic, ModelInfo } from '@pydantic/genai-prices'
import type { ModelPrices } from '../../schema/models.ts'
import { capabilitiesOf } from './capabilities.ts'
import type { Catalogue, CatalogueEntry } from './catalogue.ts'
import { type Dollars, MISSING_MODELS, WRONG_PRICES, WRONG_PROFILES } from './corrections.ts'
import { contextWindow, outputLimit } from './limits.ts'
import { OFFERS } from './offers.ts'
import { classesOf, unitsOf } from './price-classes.ts'
import { dollarsOf, entriesOf, listedPrices, priceListVersion } from './price-list.ts'
import { makerOf, makersName, type Vendor } from './vendors.ts'

/** Where a percentage for calls over an endpoint or profile of a region is due: ten percent (see docs/providers.md). */
const REGIONAL: Partial<Record<Vendor, RegExp>> = {
  aws: /^(claude-(haiku-|sonnet-5|sonnet-4-[5-9]|opus-4-[5-9]|opus-5|fable)|gpt-\d|grok-|kimi-k3)/,
  google:
    /^(claude-(haiku-|sonnet-5|sonnet-4-[5-9]|opus-4-[5-9]|opus-5|fable)|gemini-(3\.[5-9]|4)|gemini-3\.1-flash-lite)/,
}
const REGIONAL_PERCENT = 110

/** The catalogue for the installed price list. It depends on nothing else: the same list gives the same catalogue. */
export function buildCatalogue(): Catalogue {
  const vendors = Object.keys(OFFERS) as Vendor[]
  const models = vendors.flatMap((vendor) => withoutForeignNames(entriesOfVendor(vendor)))
  return { source: priceListVersion(), models }
}

function entriesOfVendor(vendor: Vendor): CatalogueEntry[] {
  const { listed, filed = {}, resold = [] } = OFFERS[vendor]
  // Where no window is known, the entry is an old one.
  const named = entriesOf(vendor).filter(
    ({ id, context_window: window, deprecated }) =>
      listed?.test(id) === true && !deprecated && contextWindow(makersName(vendor, id), window) !== undefined,
  )
  const own = [
    ...named.map((model) => listedEntry(vendor, model.id, model)),
    ...Object.entries(filed).map(([id, record]) => listedEntry(vendor, id, entryNamed(vendor, record))),
    ...MISSING_MODELS.filter((model) => model.vendor === vendor).map(missingEntry),
  ]
  const others = resold.flatMap((other) => entriesOfVendor(other).map((entry) => resoldEntry(vendor, entry)))
  const known = new Set(own.map(({ id }) => id))
  return [...own, ...others.filter(({ id }) => !known.has(id))].sort((left, right) =>
    left.id < right.id ? -1 : 1,
  )
}

function entryNamed(vendor: Vendor, record: string): ModelInfo {
  const found = entriesOf(vendor).find(({ id }) => id === record)
  if (found === undefined) throw new Error(`the price list has no entry ${record} of ${vendor}`)
  return found
}

function listedEntry(vendor: Vendor, id: string, model: ModelInfo): CatalogueEntry {
  const { now, later } = listedPrices(model)
  const correction = WRONG_PRICES.find((wrong) => wrong.vendor === vendor && wrong.id === id)
  const dollars = { ...dollarsOf(id, now), ...correction?.prices }
  const searches = now.web_searches_kcount
  const units = unitsOf(vendor, id, typeof searches === 'number' ? searches : undefined)
  const names = model.id === id && correction === undefined ? equalNames(model.match, id) : []
  return {
    ...entryOf(vendor, id, dollars, units, model.context_window),
    ...(names.length > 0 && { names }),
    ...(later && {
      later: { from: later.from, prices: pricesOf(vendor, id, dollarsOf(id, later.prices), units) },
    }),
  }
}

function missingEntry({ vendor, id, prices, contextWindow: window }: (typeof MISSING_MODELS)[number]) {
  const searches = makersName(vendor, id).startsWith('claude') || vendor === 'openai' ? 10 : undefined
  return entryOf(vendor, id, prices, unitsOf(vendor, id, searches), window)
}

function entryOf(
  vendor: Vendor,
  id: string,
  dollars: Dollars,
  units: Record<string, number>,
  listedWindow: number | undefined,
): CatalogueEntry {
  const name = makersName(vendor, id)
  const window = contextWindow(name, listedWindow)
  if (window === undefined) throw new Error(`no context window for ${vendor} ${id}`)
  const regions = regionsOf(vendor, id, name)
  return {
    vendor,
    id,
    ownedBy: makerOf(vendor, id),
    contextWindow: window,
    maxOutputTokens: Math.min(outputLimit(vendor, name), window),
    prices: pricesOf(vendor, id, dollars, units),
    ...(Object.keys(regions).length > 0 && { regions }),
    capabilities: capabilitiesOf(vendor, name),
  }
}

/** An entry of another vendor. What the vendor itself runs or sells as a class is not sold with it. */
function resoldEntry(vendor: Vendor, entry: CatalogueEntry): CatalogueEntry {
  const { units: _units, classes: _classes, ...prices } = entry.prices
  const name = makersName(vendor, entry.id)
  return {
    ...entry,
    vendor,
    maxOutputTokens: Math.min(outputLimit(vendor, name), entry.contextWindow),
    prices,
    capabilities: capabilitiesOf(vendor, name),
  }
}

function regionsOf(vendor: Vendor, id: string, name: string): Record<string, number> {
  const wrong = WRONG_PROFILES.filter((row) => vendor === 'aws' && row.model === id)
  const corrected = Object.fromEntries(wrong.map(({ profile, percent }) => [profile, percent]))
  const isRegional = REGIONAL[vendor]?.test(name) === true || id.startsWith('amazon.nova-2-')
  return { ...(isRegional && { global: 100, '*': REGIONAL_PERCENT }), ...corrected }
}

/** In whole micro-credits: a credit is a dollar. Claude's writes to the cache cost 1.25 and 2 times the input everywhere. */
function pricesOf(vendor: Vendor, id: string, dollars: Dollars, others: Record<string, number>): ModelPrices {
  const isClaude = makersName(vendor, id).startsWith('claude-')
  const { longContext } = dollars
  const input = micro(dollars.input)
  const listedWrite = micro(dollars.cacheWrite ?? dollars.input * (isClaude ? 1.25 : 1))
  // OpenRouter has the cost of storage alone for Gemini: what is written is read as well.
  const cacheWrite5Minutes = Math.max(input, listedWrite)
  // Others have no lifetimes to choose from: whatever is written costs the same.
  const hour = dollars.cacheWriteHour ?? (isClaude ? dollars.input * 2 : undefined)
  const units = { ...others, ...audioOf(vendor, id, dollars) }
  const classes = classesOf(vendor, id)
  return {
    input,
    output: micro(dollars.output),
    cacheRead: micro(dollars.cacheRead ?? dollars.input),
    cacheWrite5Minutes,
    cacheWrite1Hour: hour === undefined ? cacheWrite5Minutes : micro(hour),
    ...(Object.keys(units).length > 0 && { units }),
    ...(Object.keys(classes).length > 0 && { classes }),
    ...(longContext && {
      longContext: {
        above: longContext.above,
        inputPercent: percent(longContext.input, dollars.input),
        outputPercent: percent(longContext.output, dollars.output),
      },
    }),
  }
}

/** Gemini takes sound, at the price of text where it has none of its own. */
function audioOf(vendor: Vendor, id: string, { audioInput, input }: Dollars): Record<string, number> {
  if (vendor !== 'google' || !id.startsWith('gemini-')) return {}
  return { audio_input: micro(audioInput ?? input) }
}

const micro = (dollars: number): number => Math.round(dollars * 1_000_000)
const percent = (part: number, whole: number): number => Math.ceil(Number(((100 * part) / whole).toFixed(6)))

/** The whole names that the list's matching has for an entry. */
function equalNames(logic: MatchLogic, id: string): string[] {
  const of = (part: MatchLogic): string[] => {
    if ('or' in part) return part.or.flatMap(of)
    return 'equals' in part && part.equals !== id ? [part.equals] : []
  }
  return [...new Set(of(logic))].sort()
}

function withoutForeignNames(entries: CatalogueEntry[]): CatalogueEntry[] {
  const ids = new Set(entries.map(({ id }) => id))
  return entries.map(({ names, ...entry }) => {
    const own = names?.filter((name) => !ids.has(name)) ?? []
    return own.length > 0 ? { ...entry, names: own } : entry
  })
}
