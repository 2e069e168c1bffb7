import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { type Edge, startEdge } from '../../scripts/local/edge.ts'
import { gateway } from '../harness/gateway.ts'
import { beginRequest, openStream } from '../harness/open-stream.ts'
import { type AuditEntry, auditEntries, settledCredits } from '../harness/records.ts'
import { bearer, createTenant, type Tenant, uniqueName } from '../harness/tenant.ts'
import { marker, seenRequest, standsStill } from '../harness/upstream.ts'
import { named, PAIRS, type TranslatedPair } from './support/translated-pairs.ts'

let edge: Edge

beforeAll(async () => {
  edge = await startEdge(gateway().baseUrl)
})
afterAll(() => edge?.close())

/** Of a caller that left workerd alone learns only when it writes; what stands before it tells it at once. */
const urlOf = (pair: TranslatedPair) => edge.url + pair.route.path
const bodyOf = (pair: TranslatedPair, text: string, more = {}) => JSON.stringify(pair.request(text, more))
const brokenOff = (text: string) =>
  seenRequest(gateway(), text, ({ clientClosedAt }) => clientClosedAt !== null)

/** The records of a tenant's calls, once there are so many and no credits are held any more. */
async function settledCalls(owner: Tenant, count: number): Promise<AuditEntry[]> {
  const calls = await vi.waitFor(
    async () => {
      const entries = (await auditEntries(gateway(), owner)).filter(({ kind }) => kind === 'call')
      if (entries.length !== count) throw new Error(`${entries.length} calls are recorded`)
      return entries
    },
    { timeout: 5_000, interval: 50 },
  )
  const { balance } = await settledCredits(gateway(), owner)
  expect(balance).toBe(1_000_000_000 - calls.reduce((sum, call) => sum + call.credits_settled, 0))
  return calls
}

describe.each(named(PAIRS))('a caller of %s that leaves', (_, pair) => {
  it('in the middle of a stream ends the call upstream within a second, and pays for what was used', async () => {
    const owner = await createTenant(gateway())
    const text = marker()
    const body = bodyOf(pair, `${text} script:long-stream tokens=5000 delay=20`, { stream: true })
    const stream = await openStream(urlOf(pair), bearer(owner.key), body)
    await stream.until((received) => received.split(' word').length > 5)
    const leftAt = stream.leave()
    const seen = await brokenOff(text)
    expect(Number(seen.clientClosedAt) - leftAt).toBeLessThan(1_000)
    const [entry] = await settledCalls(owner, 1)
    expect(entry).toMatchObject({ status: 499, model: pair.model, surface: pair.route.surface })
    const record = entry?.record ?? {}
    expect(record).toMatchObject({
      errorCode: 'client_left',
      provenance: 'estimated',
      provider: pair.provider,
    })
    expect(record.flags).toEqual(['client_left'])
    const usage = record.usage as { input: number; output: number }
    expect(usage.output).toBeGreaterThanOrEqual(5)
    expect(usage.output).toBeLessThanOrEqual(seen.bytesWritten)
    expect(usage.input).toBeGreaterThan(0)
  })

  it('before there is an answer ends the call upstream as well', async () => {
    const owner = await createTenant(gateway())
    const waits: Array<[script: string, stream: boolean]> = [
      [`slow-headers signal=${uniqueName('never')}`, true],
      ['silent-stream', true],
      [`slow-headers signal=${uniqueName('never')}`, false],
      ['stall', false],
    ]
    for (const [script, stream] of waits) {
      const text = marker()
      const body = bodyOf(pair, `${text} script:${script}`, { stream })
      const { leave } = beginRequest(urlOf(pair), bearer(owner.key), body)
      await seenRequest(gateway(), text)
      const leftAt = leave()
      expect(Number((await brokenOff(text)).clientClosedAt) - leftAt).toBeLessThan(1_000)
    }
    for (const { status, record, credits_settled } of await settledCalls(owner, waits.length)) {
      expect(status).toBe(499)
      expect(record).toMatchObject({ errorCode: 'client_left', provenance: 'estimated' })
      expect(record.flags).toEqual(['client_left'])
      expect(credits_settled).toBeGreaterThan(0)
    }
  })

  /** More than an upstream could ever get rid of: the buffers of sockets alone may hold tens of megabytes. */
  const FLOOD = 1024 * 1024 * 1024

  it('after it has not read makes the upstream wait until then', async () => {
    const owner = await createTenant(gateway())
    const text = marker()
    const body = bodyOf(pair, `${text} script:flood bytes=${FLOOD}`, { stream: true })
    const stream = await openStream(urlOf(pair), bearer(owner.key), body)
    stream.pause()
    const stalled = await standsStill(gateway(), text)
    expect(stalled.finished).toBe(false)
    expect(stalled.bytesWritten).toBeLessThan(FLOOD / 4)
    stream.resume()
    await seenRequest(gateway(), text, ({ bytesWritten }) => bytesWritten > stalled.bytesWritten + 1_000_000)
    stream.leave()
    expect((await brokenOff(text)).bytesWritten).toBeLessThan(FLOOD / 2)
    await settledCalls(owner, 1)
  })
})
