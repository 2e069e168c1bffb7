import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { GovernedCall } from '../../../src/calls/governed-call.ts'
import { withRenewedLease } from '../../../src/calls/renewed-lease.ts'
import { MemoryLedger } from '../ledger/memory-ledger.ts'

const LEASE_MS = 30_000

const call: GovernedCall = {
  opening: {
    callId: 'call_1',
    requestId: 'req_1',
    organizationId: '8f14e45f-ceea-4d7a-9b3c-0a1b2c3d4e5f',
    at: 0,
    actor: { userId: 'user-1', keyId: 'key-1', administrator: null, ip: '192.0.2.1' },
    surface: 'models',
    action: 'GET /v1/models',
    modelId: null,
  },
  reserve: 0,
}

describe('the lease of a call', () => {
  beforeEach(() => {
    vi.useFakeTimers()
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  const begin = () => {
    const ledger = new MemoryLedger()
    ledger.hold(call)
    const work = Promise.withResolvers<string>()
    const deps = { clock: Date.now, ledgerOf: ledger.of }
    return { ledger, work, done: withRenewedLease(deps, call, LEASE_MS, () => work.promise) }
  }

  it('never ends while its work runs, and is not renewed after it', async () => {
    const { ledger, work, done } = begin()
    await vi.advanceTimersByTimeAsync(5 * LEASE_MS)
    expect(ledger.extended).toEqual(
      Array.from({ length: 15 }, () => ({ callId: 'call_1', leaseMilliseconds: LEASE_MS, progress: null })),
    )
    work.resolve('answer')
    expect(await done).toBe('answer')
    await vi.advanceTimersByTimeAsync(5 * LEASE_MS)
    expect(ledger.extended).toHaveLength(15)
  })

  it('costs a short call nothing, and passes its failure on', async () => {
    const { ledger, work, done } = begin()
    await vi.advanceTimersByTimeAsync(LEASE_MS / 4)
    work.reject(new Error('failed'))
    await expect(done).rejects.toThrow('failed')
    await vi.advanceTimersByTimeAsync(LEASE_MS)
    expect(ledger.extended).toEqual([])
  })

  it('is renewed again after a ledger that did not answer', async () => {
    const { ledger, work, done } = begin()
    ledger.away = true
    await vi.advanceTimersByTimeAsync(LEASE_MS / 2)
    ledger.away = false
    await vi.advanceTimersByTimeAsync(LEASE_MS / 2)
    expect(ledger.extended).toHaveLength(2)
    work.resolve('answer')
    await done
  })
})
