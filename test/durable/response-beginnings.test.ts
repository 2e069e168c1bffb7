import { abortAllDurableObjects } from 'cloudflare:test'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import { readResponseStream } from '../harness/response-stream-text.ts'
import { passTime, useDatabaseGate } from './database-gate.ts'
import {
  lastOf,
  newCaller,
  newResponse,
  seedModel,
  settledCalls,
  writerOf,
} from './durable-response-harness.ts'
import { LEASE_MS } from './ledger-harness.ts'
import { useScriptedModel } from './scripted-model.ts'

// The row of a response is written before its model is asked: nobody pays for an answer that cannot be given.

useDatabaseGate()
const model = useScriptedModel()
beforeAll(seedModel)

const BEGINNING = 'INSERT INTO \\"responses\\"'

const until = (check: () => unknown) => vi.waitFor(check, { timeout: 10_000, interval: 2 })

type Beginning = 'waits' | 'runs' | 'fails'

/** Stops the statement that writes the row of a response before Postgres has it. */
function stopBeginnings(): { now: Beginning; waiting: boolean } {
  const beginnings: { now: Beginning; waiting: boolean } = { now: 'waits', waiting: false }
  const before = globalThis.fetch
  globalThis.fetch = async (input, init) => {
    if (!String(init?.body).includes(BEGINNING)) return before(input as Request, init)
    beginnings.waiting = true
    while (beginnings.now === 'waits') await new Promise((resolve) => setTimeout(resolve, 1))
    if (beginnings.now === 'fails') throw new TypeError('connection refused (test)')
    return before(input as Request, init)
  }
  return beginnings
}

describe('a response whose row is not written yet', () => {
  it('is refused when Postgres fails, and its model is not asked', async () => {
    const caller = await newCaller()
    const beginnings = stopBeginnings()
    const started = newResponse(caller)
    const answer = started.start()
    await until(() => expect(beginnings.waiting).toBe(true))
    expect(await started.snapshot()).toBeNull()
    beginnings.now = 'fails'
    const { error } = (await answer) as { error: { status: number } | null }
    expect(error?.status).toBeGreaterThanOrEqual(500)
    expect(await started.snapshot()).toBeNull()
    expect(await started.settle()).toBe('absent')
    expect(await started.row()).toBeUndefined()
    expect(model.requests).toEqual([])
    expect(await settledCalls(caller.organization)).toEqual([500])
  })

  it('can be begun again after a refusal, and is waited for to its end', async () => {
    const beginnings = stopBeginnings()
    beginnings.now = 'fails'
    const response = newResponse(await newCaller())
    expect(await response.start()).toMatchObject({ error: { status: expect.any(Number) } })
    beginnings.now = 'runs'
    expect(await response.start()).toMatchObject({ error: null })
    await until(() => expect(model.requests).toHaveLength(1))
    const ended = response.ended()
    const looked = response.state().then(() => response.state())
    expect(await Promise.race([ended.then(() => null), looked])).toMatchObject({ running: true })
    model.requests[0]?.say('Hello')
    model.requests[0]?.finish()
    expect(await ended).toMatchObject({ status: 'completed' })
  })

  it('is told from its beginning when Postgres was slow', async () => {
    const caller = await newCaller()
    const beginnings = stopBeginnings()
    const response = newResponse(caller)
    const started = response.start()
    await until(() => expect(beginnings.waiting).toBe(true))
    expect(await response.snapshot()).toBeNull()
    beginnings.now = 'runs'
    expect(await started).toMatchObject({ error: null })
    await until(() => expect(model.requests).toHaveLength(1))
    model.requests[0]?.say('Hello')
    model.requests[0]?.finish()
    const text = await response.replay()
    expect(readResponseStream(text)[0]).toMatchObject({ event: 'response.created' })
    expect(lastOf(text)).toMatchObject({ status: 'completed' })
    const row = await response.row()
    expect(row).toMatchObject({ status: 'completed' })
    expect(await writerOf(row?.conversation_id ?? '')).toBeNull()
    expect(await settledCalls(caller.organization)).toHaveLength(1)
  })

  it('is nothing when its object dies', async () => {
    const caller = await newCaller()
    const beginnings = stopBeginnings()
    const response = newResponse(caller)
    const started = response.start().catch(() => null)
    await until(() => expect(beginnings.waiting).toBe(true))
    await abortAllDurableObjects()
    beginnings.now = 'fails'
    expect(await started).toBeNull()
    expect(await response.snapshot()).toBeNull()
    await until(async () => expect(await response.settle()).toBe('absent'))
    expect(await response.row()).toBeUndefined()
    expect(model.requests).toEqual([])
    passTime(20 * LEASE_MS)
    expect(await settledCalls(caller.organization)).toHaveLength(1)
  })
})
