import { describe, expect, it, vi } from 'vitest'
import { chatCompletions } from '../../../src/gateway/protocols/chat-completions.ts'
import { messages } from '../../../src/gateway/protocols/messages.ts'
import { LEASE_MS } from './http-relay.ts'
import {
  advance,
  type Caller,
  callerOf,
  checkEnded,
  chunkOf,
  DONE,
  HEARTBEAT,
  LONG,
  MESSAGE_START,
  moveTimersByHand,
  PING,
  type RelayRun,
  run,
  STOP,
  settle,
  started,
  until,
} from './relay-harness.ts'

moveTimersByHand()

describe('a caller that leaves', () => {
  const ways: Array<[string, (relay: RelayRun & { caller: Caller }) => Promise<unknown>]> = [
    ['aborts', async ({ leave }) => leave.abort()],
    ['cancels the body', ({ caller }) => caller.cancel()],
    [
      'does both',
      ({ leave, caller }) => {
        leave.abort()
        return caller.cancel().catch(() => {})
      },
    ],
  ]

  it.each(ways)('%s: the call ends once, and the upstream is stopped', async (_name, leave) => {
    const relay = await started()
    await leave(relay)
    // The platform may report a cancelled body only at the next write, and a heartbeat is one.
    await advance(18_750)
    expect(relay.end).toEqual({ kind: 'client_left' })
    expect(relay.upstream.aborted).toHaveBeenCalled()
    expect(relay.upstream.cancelled).toBe(1)
    expect(relay.caller.text).toBe(chunkOf('first'))
    // No read is left pending.
    expect(relay.caller.finished || relay.caller.failed).toBe(true)
    checkEnded(relay)
    await relay.upstream.send(chunkOf('more'), new Error('aborted'))
    await advance(1_000_000)
    expect(relay.end).toEqual({ kind: 'client_left' })
  })

  it.each(ways)('%s while a write waits for it', async (_name, leave) => {
    const relay = await run()
    await relay.upstream.send(chunkOf('first'))
    const caller = callerOf(relay)
    const large = chunkOf(LONG.slice(0, 100_000))
    await relay.upstream.send(large, large, large, large)
    expect(relay.end).toBeNull()
    await leave(Object.assign(relay, { caller }))
    await settle()
    expect(relay.end).toEqual({ kind: 'client_left' })
    expect(relay.upstream.cancelled).toBe(1)
    checkEnded(relay)
  })

  it('while a failure is sent to it', async () => {
    const relay = await run()
    await relay.upstream.send(chunkOf('first'))
    const caller = callerOf(relay)
    await relay.upstream.send(chunkOf(LONG.slice(0, 100_000)), new Error('reset'))
    await caller.cancel()
    await settle()
    expect(relay.end?.kind).toMatch(/failed|client_left/)
    checkEnded(relay)
  })

  it('before it was relayed at all', async () => {
    const relay = await run({ leftBefore: true })
    expect(relay.start).toEqual({ started: false, end: { kind: 'client_left' } })
    expect(relay.upstream.aborted).toHaveBeenCalled()
    checkEnded(relay)
  })
})

describe('heartbeats', () => {
  it.each([
    ['chat', chatCompletions, chunkOf('first'), HEARTBEAT],
    ['messages', messages, MESSAGE_START, PING],
  ])('keep a silent stream of %s open', async (_name, protocol, first, heartbeat) => {
    const relay = await started({ protocol }, first)
    await advance(14_000)
    expect(relay.caller.text).toBe(first)
    await advance(5_000)
    expect(relay.caller.text).toBe(first + heartbeat)
    await advance(2 * 18_750)
    expect(relay.caller.text).toBe(first + heartbeat.repeat(3))
    expect(relay.end).toBeNull()
    const { released, withheld } = relay.inspection.counts
    expect(released + withheld).toBe(first.length)
    relay.leave.abort()
    await settle()
    checkEnded(relay)
  })

  it('begin with the commit, not before', async () => {
    const relay = await run({ times: { commit: 40_000 } })
    await advance(40_000)
    const caller = callerOf(relay).readAll()
    await settle()
    expect(caller.text).toBe('')
    await advance(3_750)
    expect(caller.text).toBe(HEARTBEAT)
    await advance(15_000)
    expect(caller.text).toBe(HEARTBEAT.repeat(2))
    relay.leave.abort()
  })

  it('are not sent while events come', async () => {
    const relay = await started()
    let expected = chunkOf('first')
    for (let count = 0; count < 10; count++) {
      await advance(10_000)
      await relay.upstream.send(chunkOf(`${count}`))
      expected += chunkOf(`${count}`)
    }
    expect(relay.caller.text).toBe(expected)
    relay.leave.abort()
  })

  it('are sent while only the upstream’s own comments come', async () => {
    const relay = await started()
    for (let count = 0; count < 4; count++) {
      await advance(10_000)
      await relay.upstream.send(': working\n\n')
    }
    expect(relay.caller.text).toMatch(/^data.*\n\n(: heartbeat\n\n){1,2}$/)
    relay.leave.abort()
  })

  it('are not sent while a write waits, nor is the upstream blamed for it', async () => {
    const relay = await run()
    await relay.upstream.send(chunkOf('first'))
    const caller = callerOf(relay)
    const large = chunkOf(LONG)
    await relay.upstream.send(large, large)
    await advance(250_000)
    expect(relay.end).toBeNull()
    caller.readAll()
    await relay.upstream.send(STOP, DONE, 'close')
    await until(() => caller.finished)
    expect(caller.text === chunkOf('first') + large + large + STOP + DONE).toBe(true)
    expect(relay.end).toEqual({ kind: 'completed' })
    checkEnded(relay)
  })
})

describe('a slow caller', () => {
  it('slows the upstream: it is not read while the caller does not read', async () => {
    const relay = await run()
    await relay.upstream.send(chunkOf('first'))
    const caller = callerOf(relay)
    const part = chunkOf('x'.repeat(10_000))
    await relay.upstream.send(...Array.from({ length: 50 }, () => part))
    const asked = relay.upstream.asked
    // 64 KiB wait for the caller, one more frame waits to be written, and its read was made before.
    expect(asked).toBeGreaterThan(4)
    expect(asked).toBeLessThan(12)
    await advance(60_000)
    expect(relay.upstream.asked).toBe(asked)
    while (relay.upstream.asked === asked && caller.text.length < 60_000) {
      await caller.readOne()
      await settle()
    }
    expect(relay.upstream.asked).toBeGreaterThan(asked)
    expect(relay.upstream.asked).toBeLessThan(asked + 6)
    caller.readAll()
    await relay.upstream.send(STOP, DONE, 'close')
    await until(() => caller.finished)
    expect(caller.text === chunkOf('first') + part.repeat(50) + STOP + DONE).toBe(true)
    checkEnded(relay)
  })

  it('gets no heartbeats on top of what it has not read', async () => {
    const relay = await run({ times: { betweenEvents: 1_000_000 } })
    await relay.upstream.send(chunkOf('first'))
    const caller = callerOf(relay)
    const large = chunkOf(LONG)
    await relay.upstream.send(large)
    await advance(250_000)
    caller.readAll()
    await until(() => caller.text.length === (chunkOf('first') + large).length)
    await relay.upstream.send(STOP, DONE, 'close')
    await until(() => caller.finished)
    expect(caller.text === chunkOf('first') + large + STOP + DONE).toBe(true)
    checkEnded(relay)
  })
})

describe('a caller that takes nothing', () => {
  it('is aborted after five minutes, with its upstream', async () => {
    const relay = await run()
    await relay.upstream.send(chunkOf('first'))
    callerOf(relay)
    await relay.upstream.send(chunkOf(LONG), chunkOf(LONG))
    await advance(320_000)
    expect(relay.end).toEqual({ kind: 'client_left' })
    checkEnded(relay)
  })
})

describe('the lease of a stream', () => {
  it('that ran out ends it with a failure', async () => {
    const relay = await run()
    await relay.upstream.send(chunkOf('first'))
    const caller = callerOf(relay)
    caller.readAll()
    relay.ledger.lapse('call')
    await advance(LEASE_MS / 3)
    await advance(3_750)
    await until(() => caller.finished)
    expect(caller.text).toContain('The call could no longer be accounted for.')
    expect(relay.end).toMatchObject({ kind: 'failed', reason: 'error' })
    expect(relay.upstream.aborted).toHaveBeenCalled()
    checkEnded(relay)
  })

  it('that an unreachable ledger does not renew is requested again, and the stream goes on', async () => {
    vi.spyOn(console, 'log').mockImplementation(() => {})
    const relay = await started()
    relay.ledger.away = true
    await advance(LEASE_MS)
    expect(relay.end).toBeNull()
    relay.ledger.away = false
    await advance(LEASE_MS / 3)
    expect(relay.ledger.extended).toHaveLength(1)
    expect(relay.end).toBeNull()
    relay.leave.abort()
    await settle()
    checkEnded(relay)
  })

  it('is renewed with what was used, also while the caller does not read, and not after the end', async () => {
    const relay = await run()
    await relay.upstream.send(chunkOf('first'))
    await advance(LEASE_MS / 3)
    const [renewal] = relay.ledger.extended
    expect(relay.ledger.extended).toHaveLength(1)
    expect(renewal).toMatchObject({ leaseMilliseconds: LEASE_MS, progress: { provider: 'p' } })
    const caller = callerOf(relay)
    await relay.upstream.send(chunkOf(LONG), chunkOf('x'))
    await advance(LEASE_MS / 3)
    expect(relay.ledger.extended).toHaveLength(2)
    const [before, after] = relay.ledger.extended.map(({ progress }) => progress?.usage.output ?? 0)
    expect(after).toBeGreaterThan((before ?? 0) + LONG.length / 4)
    caller.readAll()
    await relay.upstream.send(STOP, DONE, 'close')
    await until(() => caller.finished)
    await advance(60_000)
    expect(relay.ledger.extended).toHaveLength(2)
    checkEnded(relay)
  })
})
