import { isDeepStrictEqual } from 'node:util'
import {
  type Dollars,
  MISSING_MODELS,
  type MissingModel,
  WRONG_PRICES,
  WRONG_PROFILES,
  type WrongPrice,
  type WrongProfile,
} from './corrections.ts'
import { OFFERS } from './offers.ts'
import { dollarsOf, entriesOf, listedPrices, takenFor } from './price-list.ts'

// A correction whose mistake the price list has repaired is to be deleted: from then on the list is the better source.

/** Whether the list still has the wrong prices. */
export function isWrongPrice({ vendor, id, listed }: WrongPrice): boolean {
  const record = OFFERS[vendor].filed?.[id] ?? id
  const entry = entriesOf(vendor).find((model) => model.id === record)
  if (entry === undefined) return false
  const prices: Dollars = dollarsOf(id, listedPrices(entry).now)
  return Object.entries(listed).every(([name, price]) =>
    isDeepStrictEqual(prices[name as keyof Dollars] ?? undefined, price ?? undefined),
  )
}

/** Whether the list still has no entry of the model, and takes its id for the same other one. */
export const isMissing = ({ vendor, id, takenFor: other }: MissingModel): boolean =>
  takenFor(vendor, id) === other && entriesOf(vendor).every((model) => model.id !== id)

/** Whether the list still takes the profile for another region. */
export const isWrongProfile = ({ model, profile, takenFor: other }: WrongProfile): boolean =>
  takenFor('aws', `${profile}.${model}`) === other

/** The corrections that have to be deleted or renewed, by vendor and model. */
export const staleCorrections = (): string[] => [
  ...WRONG_PRICES.filter((row) => !isWrongPrice(row)).map(({ vendor, id }) => `${vendor} ${id}`),
  ...MISSING_MODELS.filter((row) => !isMissing(row)).map(({ vendor, id }) => `${vendor} ${id}`),
  ...WRONG_PROFILES.filter((row) => !isWrongProfile(row)).map(({ model, profile }) => `${profile}.${model}`),
]
