import { beforeAll, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { settledCredits } from '../harness/records.ts'
import { createTenant, type Tenant } from '../harness/tenant.ts'
import { recordOf } from './support/dlp.ts'
import { assembled, FORMS, postTo, requestOf, SURFACES } from './support/vendor-calls.ts'
import { CLASS_PRICES, createVendorModel, namedVendors, type Vendor } from './support/vendor-kinds.ts'

// Records and charges of calls on every vendor: attempts, usage by class, credits.

let tenant: Tenant
beforeAll(async () => {
  tenant = await createTenant(gateway())
})

/**
 * The usage of the script `usage-full` in each wire: 550 tokens of input, of which 400 were read from the cache and 50 written
 * to it; 50 of output, of which 15 are reasoning. Gemini does not count what it writes to its cache, nor Converse reasoning.
 */
const USAGES: Record<Vendor['wire'], Record<string, number>> = {
  messages: {
    input: 100,
    cacheRead: 400,
    cacheWrite5Minutes: 20,
    cacheWrite1Hour: 30,
    output: 50,
    reasoning: 15,
  },
  converse: {
    input: 100,
    cacheRead: 400,
    cacheWrite5Minutes: 20,
    cacheWrite1Hour: 30,
    output: 50,
    reasoning: 0,
  },
  gemini: {
    input: 150,
    cacheRead: 400,
    cacheWrite5Minutes: 0,
    cacheWrite1Hour: 0,
    output: 50,
    reasoning: 15,
  },
  chat: {
    input: 100,
    cacheRead: 400,
    cacheWrite5Minutes: 50,
    cacheWrite1Hour: 0,
    output: 50,
    reasoning: 15,
  },
}

const usageScript = (vendor: Vendor): string => `script:${vendor.usageScript ?? 'usage-full'}`

const PRICE_OF: Record<string, number> = {
  input: CLASS_PRICES.input,
  cacheRead: CLASS_PRICES.cache_read,
  cacheWrite5Minutes: CLASS_PRICES.cache_write_5_minutes,
  cacheWrite1Hour: CLASS_PRICES.cache_write_1_hour,
  output: CLASS_PRICES.output,
  // A part of the output.
  reasoning: 0,
}

/** Micro-credits of a usage, as an invoice would add them up. */
const priceOf = (usage: Record<string, number>): number =>
  Math.ceil(
    Object.entries(usage).reduce((sum, [name, count]) => sum + count * (PRICE_OF[name] ?? Number.NaN), 0) /
      1_000_000,
  )

describe.each(namedVendors)('the record of a call on %s', (_, vendor) => {
  let made: Awaited<ReturnType<typeof createVendorModel>>
  beforeAll(async () => {
    made = await createVendorModel(vendor)
  })

  it.each(FORMS)('has its attempt, usage and cost: %s', async (_form, { surface, stream }) => {
    const request = requestOf(surface, made.model, usageScript(vendor), { stream })
    const answer = await postTo(surface, tenant, request)
    expect(assembled(surface, stream, answer).text).not.toBe('')
    const { entry, record, request: sent, response } = await recordOf(tenant, answer)
    const usage = USAGES[vendor.wire]
    expect(record).toMatchObject({
      status: 200,
      errorCode: null,
      modelId: made.model,
      provider: made.provider,
      provenance: 'reported',
      usage,
      cost: priceOf(usage),
      flags: [],
      dlp: { findings: {}, policyVersion: 'none' },
    })
    expect(entry).toMatchObject({
      model: made.model,
      credits_settled: priceOf(usage),
      user_id: tenant.userId,
    })
    expect(record.attempts).toEqual([
      {
        provider: made.provider,
        upstreamModel: vendor.upstreamModel,
        status: 200,
        failure: null,
        durationMilliseconds: expect.any(Number),
      },
    ])
    for (const counts of [sent, response]) {
      expect(counts && counts.inspected + counts.uninspected).toBe(
        counts && counts.released + counts.withheld,
      )
    }
    expect(sent?.released).toBeGreaterThan(0)
  })

  it.each(SURFACES)('says that its usage is estimated where the vendor reports none: %s', async (surface) => {
    // A stream that ends after its first events costs what came.
    const request = requestOf(surface, made.model, 'script:mid-stream-cut', { stream: true })
    const answer = await postTo(surface, tenant, request)
    const { record } = await recordOf(tenant, answer)
    expect(record.provenance).toBe('estimated')
    const usage = record.usage as Record<string, number>
    expect(usage.input).toBeGreaterThan(0)
    expect(record.cost).toBe(priceOf(usage))
  })

  it.each(SURFACES)('of a call that the vendor refuses costs nothing: %s', async (surface) => {
    const answer = await postTo(surface, tenant, requestOf(surface, made.model, 'script:error-400'))
    const { record } = await recordOf(tenant, answer)
    expect(record).toMatchObject({ provider: made.provider, usage: null, cost: 0 })
    expect(record.attempts).toMatchObject([{ provider: made.provider, status: 400 }])
  })
})

it('the charges of all calls are what left the balance', async () => {
  const owner = await createTenant(gateway(), { credits: 1_000_000 })
  const costs: number[] = []
  for (const [, vendor] of namedVendors) {
    const { model } = await createVendorModel(vendor)
    for (const [, { surface, stream }] of FORMS) {
      const answer = await postTo(surface, owner, requestOf(surface, model, usageScript(vendor), { stream }))
      costs.push(Number((await recordOf(owner, answer)).entry.credits_settled))
    }
  }
  const { balance } = await settledCredits(gateway(), owner)
  expect(balance).toBe(1_000_000 - costs.reduce((sum, cost) => sum + cost, 0))
})
