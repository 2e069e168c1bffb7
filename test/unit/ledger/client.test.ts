import { afterEach, describe, expect, it, vi } from 'vitest'
import type { CallOpening, CallOutcome } from '../../../src/ledger/audit-record.ts'
import { ledgerClient } from '../../../src/ledger/client.ts'
import { parseLedgerName } from '../../../src/ledger/ledger-object.ts'
import {
  countRejectedCall,
  rejectedCallsName,
} from '../../../src/ledger/rejected-calls/count-rejected-call.ts'

const organizationId = '8f14e45f-ceea-4d7a-9b3c-0a1b2c3d4e5f'
const opening = {
  callId: 'call',
  organizationId,
  at: 0,
  requestId: '',
  actor: { ip: null },
  action: '',
  modelId: null,
} as CallOpening
const outcome = { cost: 0, status: 200, usage: null } as CallOutcome

/** A namespace whose stubs fail with the given errors, one call each, and then answer. */
function namespaceFailingWith(...errors: unknown[]) {
  const names: string[] = []
  let countedWith: unknown[] = []
  const namespace = {
    getByName(name: string) {
      names.push(name)
      const answer = async () => {
        if (errors.length > 0) throw errors.shift()
        return { balance: 1, reserved: 0, available: 1 }
      }
      return {
        balance: answer,
        countRejected: async (...parameters: unknown[]) => {
          countedWith = parameters
          return answer()
        },
      }
    },
  } as unknown as DurableObjectNamespace
  return { namespace, names, counted: () => countedWith }
}

/** A namespace whose stubs do not answer until the test makes them fail. */
function silentNamespace() {
  const silence = Promise.withResolvers<never>()
  const asked: string[] = []
  const namespace = {
    getByName: () =>
      new Proxy({} as Record<string, unknown>, {
        get: (_, method) => () => {
          asked.push(String(method))
          return silence.promise
        },
      }),
  } as unknown as DurableObjectNamespace
  return { namespace, asked, fail: (error: Error) => silence.reject(error) }
}

afterEach(() => void vi.useRealTimers())

describe('an object that does not answer', () => {
  const calls: Array<[name: string, use: (namespace: DurableObjectNamespace) => Promise<unknown>]> = [
    ['commit', (namespace) => ledgerClient(namespace, organizationId).record(opening, outcome)],
    ['extend', (namespace) => ledgerClient(namespace, organizationId).extend('call', 1, null)],
    ['balance', (namespace) => ledgerClient(namespace, organizationId).balance()],
    ['flush', (namespace) => ledgerClient(namespace, organizationId).flush()],
    [
      'countRejected',
      (namespace) => countRejectedCall(namespace, { ip: '192.0.2.9', at: 0, surface: 'mcp' }),
    ],
  ]

  it.each(calls)('has failed after ten seconds of %s and is not asked again', async (name, use) => {
    vi.useFakeTimers()
    const { namespace, asked, fail } = silentNamespace()
    const outcome = use(namespace).catch(String)
    await vi.advanceTimersByTimeAsync(9_999)
    expect(await Promise.race([outcome, 'waiting'])).toBe('waiting')
    await vi.advanceTimersByTimeAsync(1)
    expect(await outcome).toContain('took longer than 10000 ms')
    // A late failure, after which it would be asked again if somebody still waited.
    fail(new Error('reset'))
    await vi.advanceTimersByTimeAsync(20_000)
    expect(asked).toEqual([name])
  })

  it('has ten seconds in all, the repetition included', async () => {
    vi.useFakeTimers()
    const first = silentNamespace()
    const second = silentNamespace()
    const stubs = [first, second].map(({ namespace }) => namespace.getByName(''))
    const namespace = { getByName: () => stubs.shift() } as unknown as DurableObjectNamespace
    const outcome = ledgerClient(namespace, organizationId).balance().catch(String)
    await vi.advanceTimersByTimeAsync(6_000)
    first.fail(new Error('reset'))
    await vi.advanceTimersByTimeAsync(4_000)
    expect(second.asked).toEqual(['balance'])
    expect(await outcome).toContain('took longer')
  })
})

describe('ledgerClient', () => {
  it('finds the object by organization and shard', async () => {
    const { namespace, names } = namespaceFailingWith()
    expect((await ledgerClient(namespace, organizationId).balance()).balance).toBe(1)
    expect(names).toEqual([`${organizationId}:0`])
    expect(parseLedgerName(names[0])).toEqual({ organizationId, shard: 0 })
  })

  it('repeats a call once, on a fresh stub, when its object went away', async () => {
    const { namespace, names } = namespaceFailingWith(new Error('reset'))
    expect((await ledgerClient(namespace, organizationId).balance()).balance).toBe(1)
    expect(names).toHaveLength(2)
  })

  it('gives up after the second failure', async () => {
    const { namespace, names } = namespaceFailingWith(new Error('reset'), new Error('reset again'), 'unused')
    await expect(ledgerClient(namespace, organizationId).balance()).rejects.toThrow('reset again')
    expect(names).toHaveLength(2)
  })

  it.each([{ overloaded: true }, { overloaded: true, retryable: true }, { remote: true }])(
    'does not repeat a call that failed with %o',
    async (properties) => {
      const { namespace, names } = namespaceFailingWith(Object.assign(new Error('final'), properties))
      await expect(ledgerClient(namespace, organizationId).balance()).rejects.toThrow('final')
      expect(names).toHaveLength(1)
    },
  )

  it('repeats what the object threw when the runtime says that it may be', async () => {
    const error = Object.assign(new Error('moved'), { remote: true, retryable: true })
    const { namespace, names } = namespaceFailingWith(error)
    await ledgerClient(namespace, organizationId).balance()
    expect(names).toHaveLength(2)
  })
})

describe('parseLedgerName', () => {
  it.each([undefined, '', organizationId, `${organizationId}:`, `${organizationId}:x`, 'unauthenticated:3'])(
    'refuses %s',
    (name) => {
      expect(() => parseLedgerName(name)).toThrow('name of a ledger')
    },
  )
})

describe('countRejectedCall', () => {
  it('counts an address in one of eight objects, under the first millisecond of the minute', async () => {
    const { namespace, names, counted } = namespaceFailingWith()
    await countRejectedCall(namespace, { ip: '192.0.2.1', at: 1_763_721_059_999, surface: 'mcp' })
    expect(names).toEqual([rejectedCallsName('192.0.2.1')])
    expect(counted()).toEqual(['192.0.2.1', 1_763_721_000_000, 'mcp', 1])
    const objects = new Set(Array.from({ length: 500 }, (_, index) => rejectedCallsName(`192.0.2.${index}`)))
    expect([...objects].sort()).toEqual(Array.from({ length: 8 }, (_, index) => `unauthenticated:${index}`))
  })

  describe('of an address that goes on', () => {
    const minute = 1_763_800_020_000
    let tests = 0

    function flood() {
      vi.useFakeTimers()
      tests += 1
      const ip = `198.51.100.${tests}`
      const sent: unknown[] = []
      const namespace = {
        getByName: () => ({ countRejected: async (...call: unknown[]) => void sent.push(call.slice(2)) }),
      } as unknown as DurableObjectNamespace
      const refuse = (at: number, surface = 'mcp', from = ip) =>
        countRejectedCall(namespace, { ip: from, at: minute + at, surface })
      return { sent, refuse }
    }

    it('reaches the object at once, and then once a second with all of them', async () => {
      const { sent, refuse } = flood()
      const calls = Array.from({ length: 1_000 }, () => refuse(0))
      expect(sent).toEqual([['mcp', 1]])
      await vi.advanceTimersByTimeAsync(999)
      expect(sent).toHaveLength(1)
      await vi.advanceTimersByTimeAsync(1)
      await Promise.all(calls)
      expect(sent).toEqual([
        ['mcp', 1],
        ['mcp', 999],
      ])
      const next = Promise.all([refuse(1_500), refuse(1_900)])
      await vi.advanceTimersByTimeAsync(500)
      await next
      await refuse(9_000)
      expect(sent.slice(2)).toEqual([
        ['mcp', 2],
        ['mcp', 1],
      ])
    })

    it('is kept apart from other surfaces, minutes and addresses', async () => {
      const { sent, refuse } = flood()
      await Promise.all([refuse(0), refuse(0, 'messages'), refuse(60_000), refuse(0, 'mcp', '203.0.113.7')])
      expect(sent).toHaveLength(4)
    })

    it('is sent by the next one when the request that waited has ended', async () => {
      const { sent, refuse } = flood()
      await refuse(0)
      void refuse(100)
      await refuse(200)
      // The timers of the request that waits do not fire any more.
      vi.clearAllTimers()
      await refuse(2_500)
      expect(sent).toEqual([
        ['mcp', 1],
        ['mcp', 3],
      ])
    })
  })

  it('is not repeated, since the count may have been stored', async () => {
    const { namespace, names } = namespaceFailingWith(new Error('reset'))
    const call = { ip: '192.0.2.1', at: 0, surface: 'mcp' }
    await expect(countRejectedCall(namespace, call)).rejects.toThrow('reset')
    expect(names).toHaveLength(1)
  })
})
