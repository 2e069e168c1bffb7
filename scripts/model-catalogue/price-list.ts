import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { findProvider, type MatchLogic, type ModelInfo, type ModelPrice } from '@pydantic/genai-prices'
import type { Dollars } from './corrections.ts'
import type { Vendor } from './vendors.ts'

// The maintained price list: @pydantic/genai-prices, by the ids of its entries. Its own matching of ids is not used, because
// it takes `claude-sonnet-5-5` for `claude-sonnet-5`.

/** Prices that begin later are future ones. Fixed, so that the same list gives the same catalogue. */
export const AS_OF = '2026-11-29'

/** The name and version of the installed list. */
export function priceListVersion(): string {
  const require = createRequire(import.meta.url)
  const manifest = join(require.resolve('@pydantic/genai-prices'), '../../package.json')
  const { version } = JSON.parse(readFileSync(manifest, 'utf8')) as { version: string }
  return `@pydantic/genai-prices ${version}`
}

/** The entries of a vendor. @throws if the list does not know the vendor. */
export function entriesOf(vendor: Vendor): ModelInfo[] {
  const provider = findProvider({ providerId: vendor })
  // An id that it does not know may find another vendor.
  if (provider?.id !== vendor) throw new Error(`the price list knows no vendor ${vendor}`)
  return provider.models
}

/** The entry that the list's own matching takes an id for; null for none. */
export const takenFor = (vendor: Vendor, id: string): string | null =>
  entriesOf(vendor).find(({ match }) => matches(match, id))?.id ?? null

function matches(logic: MatchLogic, id: string): boolean {
  if ('or' in logic) return logic.or.some((part) => matches(part, id))
  if ('and' in logic) return logic.and.every((part) => matches(part, id))
  if ('equals' in logic) return id === logic.equals
  if ('starts_with' in logic) return id.startsWith(logic.starts_with)
  if ('ends_with' in logic) return id.endsWith(logic.ends_with)
  if ('contains' in logic) return id.includes(logic.contains)
  return new RegExp(logic.regex).test(id)
}

/** Prices of an entry, and those that begin at a later date. */
export interface ListedPrices {
  now: ModelPrice
  later: { from: string; prices: ModelPrice } | null
}

/**
 * Of dated prices, the last that has begun. Prices by the time of the day count at their highest: a call has one price, and a
 * reservation has to cover it.
 * @throws for an entry without prices.
 */
export function listedPrices({ id, prices }: ModelInfo): ListedPrices {
  if (!Array.isArray(prices)) return { now: prices, later: null }
  const dated = prices.flatMap(({ constraint, prices: of }) =>
    constraint === undefined || constraint.type === 'start_date'
      ? [{ from: constraint?.start_date ?? '', prices: of }]
      : [],
  )
  const begun = dated.filter(({ from }) => from <= AS_OF).at(-1)
  if (begun === undefined) throw new Error(`no prices for ${id}`)
  const hourly = prices.flatMap(({ constraint, prices: of }) =>
    constraint?.type === 'time_of_date' ? [of] : [],
  )
  const later = dated.find(({ from }) => from > AS_OF) ?? null
  return { now: [begun.prices, ...hourly].reduce(dearer), later }
}

const dearer = (left: ModelPrice, right: ModelPrice): ModelPrice =>
  Object.fromEntries(
    [...new Set([...Object.keys(left), ...Object.keys(right)])].map((name) => {
      const [one, other] = [left[name], right[name]]
      if (one === undefined || other === undefined) return [name, one ?? other]
      return [name, base(one) >= base(other) ? one : other]
    }),
  )

type Price = Exclude<ModelPrice[string], undefined>

const base = (price: Price): number => (typeof price === 'object' ? price.base : price)

/** Dollars for a million tokens, by the names of this catalogue. @throws where input or output have no price. */
export function dollarsOf(id: string, prices: ModelPrice): Dollars {
  const of = (name: string): number | undefined => {
    const price = prices[name]
    return price === undefined ? undefined : base(price)
  }
  const [input, output] = [of('input_mtok'), of('output_mtok')]
  if (input === undefined || output === undefined) throw new Error(`${id} has no price of tokens`)
  return {
    input,
    output,
    cacheRead: of('cache_read_mtok'),
    cacheWrite: of('cache_write_mtok'),
    cacheWriteHour: of('cache_write_1h_mtok'),
    audioInput: of('input_audio_mtok'),
    longContext: longContextOf(prices, input, output),
  }
}

/** For prices that rise with the length of the prompt: the highest step over all classes of tokens. */
function longContextOf(prices: ModelPrice, input: number, output: number): Dollars['longContext'] {
  const steps = Object.entries(prices).flatMap(([name, price]) => {
    if (typeof price !== 'object' || !('tiers' in price)) return []
    return price.tiers.map((tier) => ({
      isOutput: name.startsWith('output'),
      above: tier.start,
      factor: tier.price / price.base,
    }))
  })
  if (steps.length === 0) return null
  const factorOf = (ofOutput: boolean) =>
    Math.max(1, ...steps.filter(({ isOutput }) => isOutput === ofOutput).map(({ factor }) => factor))
  return {
    above: Math.min(...steps.map((step) => step.above)),
    input: cents(input * factorOf(false)),
    output: cents(output * factorOf(true)),
  }
}

/** Without the error of binary fractions. */
const cents = (dollars: number): number => Number(dollars.toFixed(6))
