import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { type Edge, startEdge } from '../../scripts/local/edge.ts'
import { gateway } from '../harness/gateway.ts'
import { beginRequest, openStream } from '../harness/open-stream.ts'
import { auditEntries, callEntries, settledCredits } from '../harness/records.ts'
import { bearer, createTenant, type Tenant, uniqueName } from '../harness/tenant.ts'
import { marker, seenRequest, seenRequests, standsStill } from '../harness/upstream.ts'
import { MODEL_ROUTES, type ModelRoute } from '../matrices/routes.ts'
import { NATIVE_PAIRS, PAIRS, type TranslatedPair } from './support/translated-pairs.ts'

let tenant: Tenant
let edge: Edge

beforeAll(async () => {
  edge = await startEdge(gateway().baseUrl)
  tenant = await createTenant(gateway())
})
afterAll(() => edge?.close())

/** workerd notices a caller that left only when it writes; the edge before it notices at once. */
const urlOf = ({ route, host }: Way) => (host === 'llm' ? gateway().llmUrl : edge.url) + route.path
const bodyOf = (way: Way, text: string, more = {}) => JSON.stringify(way.request(text, more))

/** The request upstream, once it was broken off. */
const brokenOff = (text: string) =>
  seenRequest(gateway(), text, ({ clientClosedAt }) => clientClosedAt !== null)

type Way = Pick<TranslatedPair, 'name' | 'route' | 'model' | 'request'> & { host: 'base' | 'llm' }
const onBaseHost = [...NATIVE_PAIRS, ...PAIRS].map((pair): Way => ({ ...pair, host: 'base' }))
const completions = MODEL_ROUTES.find(({ name }) => name === 'completions') as ModelRoute
/** Each protocol on models of both protocols; legacy completions on the LLM host. */
const generating: Way[] = [
  ...onBaseHost,
  {
    name: 'completions on the LLM host',
    route: completions,
    model: completions.model,
    request: completions.request,
    host: 'llm',
  },
]

describe.concurrent.each(generating)('a caller of $name that leaves', (way) => {
  it('in the middle of a stream ends the call upstream within a second, and pays for what was used', async () => {
    const owner = await createTenant(gateway())
    const text = marker()
    const body = bodyOf(way, `${text} script:long-stream tokens=5000 delay=20`, { stream: true })
    const stream = await openStream(urlOf(way), bearer(owner.key), body)
    await stream.until((received) => received.split(' word').length > 5)
    const leftAt = stream.leave()
    const seen = await brokenOff(text)
    expect(Number(seen.clientClosedAt) - leftAt).toBeLessThan(1_000)

    const [entry] = await callEntries(gateway(), owner, 1)
    if (entry === undefined) throw new Error('no record')
    expect(entry).toMatchObject({ status: 499, model: way.model, surface: way.route.surface })
    const { record } = entry
    expect(record).toMatchObject({ errorCode: 'client_left', provenance: 'estimated' })
    expect(record.flags).toEqual(['client_left'])
    const usage = record.usage as { input: number; output: number }
    // At least the words that were received, at no more than one for each byte that the upstream has written.
    expect(usage.output).toBeGreaterThanOrEqual(5)
    expect(usage.output).toBeLessThanOrEqual(seen.bytesWritten)
    expect(usage.input).toBeGreaterThan(0)
    expect(entry.credits_settled).toBeGreaterThan(0)
    const { balance } = await settledCredits(gateway(), owner)
    expect(balance).toBe(1_000_000_000 - entry.credits_settled)
  })
})

describe.concurrent.each(generating)('a caller of $name that waits and leaves', (way) => {
  it.each([
    ['a stream has begun', true, 'script:silent-stream'],
    ['a whole answer has come', false, 'script:stall'],
  ])('before %s ends the call upstream as well', async (_when, stream, silent) => {
    const owner = await createTenant(gateway())
    for (const script of [`script:slow-headers signal=${uniqueName('never')}`, silent]) {
      const text = marker()
      const body = bodyOf(way, `${text} ${script}`, stream ? { stream } : {})
      const { leave } = beginRequest(urlOf(way), bearer(owner.key), body)
      await seenRequest(gateway(), text)
      const leftAt = leave()
      expect(Number((await brokenOff(text)).clientClosedAt) - leftAt).toBeLessThan(1_000)
    }
    await expectInputCharged(owner, 2)
  })
})

/** The upstream has read the requests, so their input is charged, by an estimate. */
async function expectInputCharged(owner: Tenant, calls: number): Promise<void> {
  await settledCredits(gateway(), owner)
  const entries = (await auditEntries(gateway(), owner)).filter(({ kind }) => kind === 'call')
  expect(entries).toHaveLength(calls)
  for (const { status, record, credits_settled } of entries) {
    expect(status).toBe(499)
    expect(record).toMatchObject({ errorCode: 'client_left', provenance: 'estimated' })
    expect(record.flags).toEqual(['client_left'])
    expect(credits_settled).toBeGreaterThan(0)
  }
}

// Legacy completions stream through the same code as chat completions.
const notLegacy = onBaseHost

describe.concurrent.each(notLegacy)('a caller of $name that does not read', (way) => {
  /** More than an upstream could ever get rid of: the buffers of sockets alone may hold tens of megabytes. */
  const FLOOD = 1024 * 1024 * 1024

  it('makes the upstream wait, which continues when the caller reads again', async () => {
    const text = marker()
    const body = bodyOf(way, `${text} script:flood bytes=${FLOOD}`, { stream: true })
    const stream = await openStream(urlOf(way), bearer(tenant.key), body)
    stream.pause()
    const stalled = await standsStill(gateway(), text)
    expect(stalled.finished).toBe(false)
    expect(stalled.bytesWritten).toBeLessThan(FLOOD / 4)
    stream.resume()
    await seenRequest(gateway(), text, ({ bytesWritten }) => bytesWritten > stalled.bytesWritten + 1_000_000)
    stream.leave()
    const left = await brokenOff(text)
    expect(left.bytesWritten).toBeLessThan(FLOOD / 2)
  })
})

describe('many callers that leave', () => {
  it('leave nothing open behind them', async () => {
    const owner = await createTenant(gateway())
    const route = MODEL_ROUTES[0] as ModelRoute
    const text = marker()
    await Promise.all(
      Array.from({ length: 30 }, async (_, index) => {
        const body = JSON.stringify(
          route.request(`${text} script:long-stream tokens=5000 delay=20`, { stream: true }),
        )
        const stream = await openStream(gateway().baseUrl + route.path, bearer(owner.key), body)
        await stream.until((received) => received.split(' word').length > index % 7)
        stream.leave()
      }),
    )
    await vi.waitFor(
      async () => {
        const mine = await seenRequests(gateway(), text)
        expect(mine).toHaveLength(30)
        expect(mine.filter(({ clientClosedAt }) => clientClosedAt === null)).toEqual([])
      },
      { timeout: 5_000, interval: 100 },
    )
    const { balance } = await settledCredits(gateway(), owner)
    const entries = (await auditEntries(gateway(), owner)).filter(({ kind }) => kind === 'call')
    expect(entries).toHaveLength(30)
    expect(balance).toBe(1_000_000_000 - entries.reduce((sum, entry) => sum + entry.credits_settled, 0))
  })
})
