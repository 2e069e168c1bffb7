import { abortAllDurableObjects } from 'cloudflare:test'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import { readResponseStream } from '../harness/response-stream-text.ts'
import { passTime, useDatabaseGate } from './database-gate.ts'
import { LEASE_MS } from './ledger-harness.ts'
import { lastOf, newCaller, newResponse, seedModel, settledCalls, writerOf } from './live-response-harness.ts'
import { type ModelRequest, useScriptedModel } from './scripted-model.ts'

// In a conversation of its own the row of a response is written while its model is asked.

useDatabaseGate()
const model = useScriptedModel()
beforeAll(seedModel)

const BEGINNING = 'INSERT INTO \\"responses\\"'

const until = (check: () => unknown) => vi.waitFor(check, { timeout: 10_000, interval: 2 })

async function modelRequest(): Promise<ModelRequest> {
  await until(() => expect(model.requests.length).toBeGreaterThan(0))
  return model.requests.at(-1) as ModelRequest
}

type Beginning = 'waits' | 'runs' | 'fails'

/** Stops the statement that writes the row of a response before Postgres has it. */
function stopBeginnings(): { now: Beginning } {
  const beginnings: { now: Beginning } = { now: 'waits' }
  const before = globalThis.fetch
  globalThis.fetch = async (input, init) => {
    if (!String(init?.body).includes(BEGINNING)) return before(input as Request, init)
    while (beginnings.now === 'waits') await new Promise((resolve) => setTimeout(resolve, 1))
    if (beginnings.now === 'fails') throw new TypeError('connection refused (test)')
    return before(input as Request, init)
  }
  return beginnings
}

/** How far the model has come. */
const STATES: Array<[name: string, tell: (asked: ModelRequest) => void]> = [
  ['is silent', () => {}],
  ['speaks', (asked) => asked.say('Hello')],
  [
    'has ended',
    (asked) => {
      asked.say('Hello')
      asked.finish()
    },
  ],
  ['broke off', (asked) => asked.breakOff()],
]

describe.each(STATES)('a response whose row is not written yet while its model %s', (name, tell) => {
  it('is refused when Postgres fails, with one answer and one settled call', async () => {
    const caller = await newCaller()
    const beginnings = stopBeginnings()
    const response = newResponse(caller)
    const started = response.start()
    const asked = await modelRequest()
    tell(asked)
    expect(await response.snapshot()).toBeNull()
    beginnings.now = 'fails'
    const { error, events } = (await started) as { error: { status: number } | null; events?: unknown }
    expect(error?.status).toBeGreaterThanOrEqual(500)
    expect(events).toBeUndefined()
    await until(() => expect(asked.aborted || name === 'has ended' || name === 'broke off').toBe(true))
    expect(await response.snapshot()).toBeNull()
    expect(await response.settle()).toBe('absent')
    expect(await response.row()).toBeUndefined()
    expect(model.requests).toHaveLength(1)
    expect(await settledCalls(caller.organization)).toHaveLength(1)
  })

  it('is told from its beginning when Postgres was slow', async () => {
    const caller = await newCaller()
    const beginnings = stopBeginnings()
    const response = newResponse(caller)
    const started = response.start()
    const asked = await modelRequest()
    tell(asked)
    expect(await response.snapshot()).toBeNull()
    beginnings.now = 'runs'
    expect(await started).toMatchObject({ error: null })
    if (name === 'speaks' || name === 'is silent') asked.finish()
    const text = await response.replay()
    expect(readResponseStream(text)[0]).toMatchObject({ event: 'response.created' })
    const status = name === 'broke off' ? 'failed' : 'completed'
    expect(lastOf(text)).toMatchObject({ status })
    const row = await response.row()
    expect(row).toMatchObject({ status })
    expect(await writerOf(row?.conversation_id ?? '')).toBeNull()
    expect(await settledCalls(caller.organization)).toHaveLength(1)
  })

  it('is nothing when its object dies', async () => {
    const caller = await newCaller()
    const beginnings = stopBeginnings()
    const response = newResponse(caller)
    const started = response.start().catch(() => null)
    const asked = await modelRequest()
    tell(asked)
    await abortAllDurableObjects()
    beginnings.now = 'fails'
    expect(await started).toBeNull()
    expect(await response.snapshot()).toBeNull()
    await until(async () => expect(await response.settle()).toBe('absent'))
    expect(await response.row()).toBeUndefined()
    passTime(20 * LEASE_MS)
    expect(await settledCalls(caller.organization)).toHaveLength(1)
  })
})
