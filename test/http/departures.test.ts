import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { type Edge, startEdge } from '../../scripts/local/edge.ts'
import { gateway } from '../harness/gateway.ts'
import { beginRequest, openStream } from '../harness/open-stream.ts'
import { auditEntries, callEntries, settledCredits } from '../harness/records.ts'
import { bearer, createTenant, type Tenant, uniqueName } from '../harness/tenant.ts'
import { marker, seenRequest, seenRequests, standsStill } from '../harness/upstream.ts'
import { MODEL_ROUTES, type ModelRoute } from '../matrices/routes.ts'

let tenant: Tenant
let edge: Edge

beforeAll(async () => {
  edge = await startEdge(gateway().baseUrl)
  tenant = await createTenant(gateway())
})
afterAll(() => edge?.close())

/** Of a caller that left workerd alone learns only when it writes; what stands before it tells it at once. */
const urlOf = (route: ModelRoute, host: string) => (host === 'llm' ? gateway().llmUrl : edge.url) + route.path
const bodyOf = (route: ModelRoute, text: string, more = {}) => JSON.stringify(route.request(text, more))

/** The request upstream, once it was broken off. */
const brokenOff = (text: string) =>
  seenRequest(gateway(), text, ({ clientClosedAt }) => clientClosedAt !== null)

/** Each route on one of its hosts, which are both there. */
const generating = MODEL_ROUTES.filter(({ generates }) => generates).map(
  (route) => [route.name, route.name === 'completions' ? 'llm' : 'base', route] as const,
)

describe.concurrent.each(generating)('a caller of %s on the %s host that leaves', (_, host, route) => {
  it('in the middle of a stream ends the call upstream within a second, and pays for what was used', async () => {
    const owner = await createTenant(gateway())
    const text = marker()
    const body = bodyOf(route, `${text} script:long-stream tokens=5000 delay=20`, { stream: true })
    const stream = await openStream(urlOf(route, host), bearer(owner.key), body)
    await stream.until((received) => received.split(' word').length > 5)
    const leftAt = stream.leave()
    const seen = await brokenOff(text)
    expect(Number(seen.clientClosedAt) - leftAt).toBeLessThan(1_000)

    const [entry] = await callEntries(gateway(), owner, 1)
    if (entry === undefined) throw new Error('no record')
    expect(entry).toMatchObject({ status: 499, model: route.model, surface: route.surface })
    const { record } = entry
    expect(record).toMatchObject({ errorCode: 'client_left', provenance: 'estimated' })
    expect(record.flags).toContain('client_left')
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

describe.concurrent.each(generating)(
  'a caller of %s on the %s host that waits and leaves',
  (_, host, route) => {
    it.each([
      ['a stream has begun', true, 'script:silent-stream'],
      ['a whole answer has come', false, 'script:stall'],
    ])('before %s ends the call upstream as well', async (_when, stream, silent) => {
      const owner = await createTenant(gateway())
      for (const script of [`script:slow-headers signal=${uniqueName('never')}`, silent]) {
        const text = marker()
        const body = bodyOf(route, `${text} ${script}`, stream ? { stream } : {})
        const { leave } = beginRequest(urlOf(route, host), bearer(owner.key), body)
        await seenRequest(gateway(), text)
        const leftAt = leave()
        expect(Number((await brokenOff(text)).clientClosedAt) - leftAt).toBeLessThan(1_000)
      }
      await expectInputCharged(owner, 2)
    })
  },
)

/** The upstream has read the requests, so their input is charged, by an estimate. */
async function expectInputCharged(owner: Tenant, calls: number): Promise<void> {
  await settledCredits(gateway(), owner)
  const entries = (await auditEntries(gateway(), owner)).filter(({ kind }) => kind === 'call')
  expect(entries).toHaveLength(calls)
  for (const { status, record, credits_settled } of entries) {
    expect(status).toBe(499)
    expect(record).toMatchObject({ errorCode: 'client_left', provenance: 'estimated' })
    expect(record.flags).toContain('client_left')
    expect(credits_settled).toBeGreaterThan(0)
  }
}

// Legacy completions stream through the same code as chat completions.
const notLegacy = generating.filter(([name]) => name !== 'completions')

describe.concurrent.each(notLegacy)('a caller of %s on the %s host that does not read', (_, host, route) => {
  /** More than an upstream could ever get rid of: the buffers of sockets alone may hold tens of megabytes. */
  const FLOOD = 1024 * 1024 * 1024

  it('makes the upstream wait, which goes on when the caller does', async () => {
    const text = marker()
    const body = bodyOf(route, `${text} script:flood bytes=${FLOOD}`, { stream: true })
    const stream = await openStream(urlOf(route, host), bearer(tenant.key), body)
    stream.pause()
    const stalled = await standsStill(gateway(), text)
    expect(stalled.finished).toBe(false)
    expect(stalled.bytesWritten).toBeLessThan(FLOOD / 4)
    stream.resume()
    await stream.until((received) => received.length > stalled.bytesWritten + 1_000_000, 10_000)
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
        const body = bodyOf(route, `${text} script:long-stream tokens=5000 delay=20`, { stream: true })
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
