import { describe, expect, it } from 'vitest'
import { CATALOGUE } from '../../../scripts/model-catalogue/catalogue.ts'
import {
  type Dollars,
  MISSING_MODELS,
  WRONG_PRICES,
  WRONG_PROFILES,
} from '../../../scripts/model-catalogue/corrections.ts'
import { findEntry } from '../../../scripts/model-catalogue/find-entry.ts'
import { dollarsOf, entriesOf, listedPrices, takenFor } from '../../../scripts/model-catalogue/price-list.ts'
import {
  isMissing,
  isWrongPrice,
  isWrongProfile,
} from '../../../scripts/model-catalogue/stale-corrections.ts'

// Mistakes of the price list, each by its name. A test that says "the list has repaired it" asks for the correction to be
// deleted.

const REPAIRED = 'the list has repaired it: delete the correction'

/** The members of prices that a correction sets, in micro-credits. */
function expected({ input, output, cacheRead, longContext }: Partial<Dollars>) {
  const micro = (dollars: number) => Math.round(dollars * 1_000_000)
  return {
    ...(input !== undefined && { input: micro(input) }),
    ...(output !== undefined && { output: micro(output) }),
    ...(cacheRead !== undefined && { cacheRead: micro(cacheRead) }),
    ...(longContext && { longContext: expect.objectContaining({ above: longContext.above }) }),
  }
}

const entry = (vendor: string, id: string) =>
  CATALOGUE.models.find((model) => model.vendor === vendor && model.id === id)

describe('prices that the list has wrong', () => {
  it.each(WRONG_PRICES)('$vendor $id: $mistake', (correction) => {
    expect(isWrongPrice(correction), REPAIRED).toBe(true)
    const { vendor, id, prices, source } = correction
    expect(source).toMatch(/^https:/)
    expect(entry(vendor, id)?.prices).toMatchObject(expected(prices))
    if (prices.longContext === null) expect(entry(vendor, id)?.prices).not.toHaveProperty('longContext')
  })

  it('deepseek: cheaper hours of the day, of which the dearest counts', () => {
    const model = entriesOf('deepseek').find(({ id }) => id === 'deepseek-v4-pro')
    const hours = Array.isArray(model?.prices)
      ? model.prices.filter(({ constraint }) => constraint?.type === 'time_of_date')
      : []
    expect(hours.length, REPAIRED).toBeGreaterThan(0)
    expect(entry('deepseek', 'deepseek-v4-pro')?.prices).toMatchObject({
      input: 1_320_000,
      output: 3_960_000,
      cacheRead: 44_000,
    })
  })

  it('google: prices of 2027 as the last of the list, which do not count before', () => {
    const found = entry('google', 'gemini-3.8-flash')
    expect(found?.prices).toMatchObject({ input: 750_000, output: 3_750_000 })
    expect(found?.later).toMatchObject({
      from: '2027-01-01',
      prices: { input: 1_500_000, output: 7_500_000, cacheRead: 150_000 },
    })
  })

  it('openrouter: writes to the cache of Gemini at the price of storage, below that of input', () => {
    const model = entriesOf('openrouter').find(({ id }) => id === 'google/gemini-3.5-flash')
    const { cacheWrite = 0, input } = dollarsOf('', listedPrices(model as never).now)
    expect(cacheWrite, REPAIRED).toBeLessThan(input)
    for (const { id, prices } of CATALOGUE.models) {
      expect(prices.cacheWrite5Minutes, id).toBeGreaterThanOrEqual(prices.input)
      expect(prices.cacheWrite1Hour, id).toBeGreaterThanOrEqual(prices.cacheWrite5Minutes)
      expect(prices.cacheRead, id).toBeLessThanOrEqual(prices.input)
    }
  })
})

describe('models that the list lacks', () => {
  it.each(MISSING_MODELS)('$vendor $id, taken for $takenFor', (correction) => {
    expect(isMissing(correction), REPAIRED).toBe(true)
    const { vendor, id, prices, contextWindow } = correction
    expect(entry(vendor, id)).toMatchObject({ contextWindow, prices: expected(prices) })
  })

  it('claude-sonnet-5-5 costs half of what claude-sonnet-5 does for cached input, on every profile', () => {
    expect(takenFor('aws', 'global.anthropic.claude-sonnet-5-5'), REPAIRED).toBe(
      'global.anthropic.claude-sonnet-5-v1:0',
    )
    expect(findEntry('aws', 'global.anthropic.claude-sonnet-5-5')?.prices.cacheRead).toBe(100_000)
    expect(findEntry('aws', 'global.anthropic.claude-sonnet-5')?.prices.cacheRead).toBe(200_000)
  })
})

describe('inference profiles of Bedrock', () => {
  it.each(WRONG_PROFILES)('$profile.$model, taken for $takenFor', (correction) => {
    expect(isWrongProfile(correction), REPAIRED).toBe(true)
    const { model, profile, percent } = correction
    expect(entry('aws', model)?.regions).toMatchObject({ [profile]: percent })
  })

  it('cost what the list has for each of them: ten percent above the global ones', () => {
    const regional = entriesOf('aws').filter(({ id }) => id.startsWith('regional.'))
    const compared = regional.flatMap((model) => {
      const id = model.id.replace(/^regional\./, '')
      const found = findEntry('aws', id)
      return found?.regions ? [{ id, found, dollars: dollarsOf(id, listedPrices(model).now) }] : []
    })
    expect(compared.length).toBeGreaterThan(12)
    for (const { id, found, dollars } of compared) {
      const percent = found.regions?.['*'] ?? 100
      expect(Math.round((found.prices.input * percent) / 100), id).toBe(Math.round(dollars.input * 1_000_000))
      expect(Math.round((found.prices.output * percent) / 100), id).toBe(
        Math.round(dollars.output * 1_000_000),
      )
    }
  })
})
