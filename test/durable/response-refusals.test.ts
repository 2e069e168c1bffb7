import { abortAllDurableObjects } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import { useDatabaseGate } from './database-gate.ts'
import {
  conversationOf,
  lastOf,
  newCaller,
  newResponse,
  OBJECTS,
  seedModel,
  settledCalls,
  until,
} from './durable-response-harness.ts'
import { useScriptedModel } from './scripted-model.ts'

useDatabaseGate()
const model = useScriptedModel()
beforeAll(seedModel)

/** A response whose model has its request and has not answered. */
async function dispatched(start: 'start' | 'startRepeatably' = 'start') {
  const caller = await newCaller()
  const response = newResponse(caller, OBJECTS.patient)
  const started = response[start]().catch((error: Error) => error)
  await until(() => expect(model.requests).toHaveLength(1))
  const [asked] = model.requests
  if (!asked) throw new Error('the model was not asked')
  return { caller, response, started, asked }
}

describe('a response whose first turn is dispatched', () => {
  it('is not visible, and begins with the answer', async () => {
    const { caller, response, started, asked } = await dispatched()
    expect(await response.snapshot()).toBeNull()
    expect(await response.cancel()).toBeNull()
    expect(await response.remove()).toBe(false)
    expect(await response.settle()).toBe('running')
    asked.say('Hello')
    asked.finish()
    expect(await started).toMatchObject({ error: null })
    expect(lastOf(await response.replay())).toMatchObject({ status: 'completed', output_text: 'Hello' })
    expect(await conversationOf(response)).toMatch(/^conv_/)
    expect(await settledCalls(caller.organization)).toEqual([200])
  })

  it('is rolled back when its object dies, and its call is settled', async () => {
    const { caller, response, started } = await dispatched()
    await abortAllDurableObjects()
    expect(await started).toBeInstanceOf(Error)
    expect(await response.settle()).toBe('absent')
    expect(await response.snapshot()).toBeNull()
    expect(await response.row()).toBeUndefined()
    expect(await settledCalls(caller.organization)).toEqual([0])
  })

  it('is not begun again when its start is repeated after its object died', async () => {
    const { caller, response, started } = await dispatched('startRepeatably')
    await abortAllDurableObjects()
    expect(await started).toMatchObject({ error: { status: 500 } })
    await until(async () => expect(await response.settle()).toBe('absent'))
    expect(model.requests).toHaveLength(1)
    expect(await settledCalls(caller.organization)).toEqual([0])
  })

  it('is refused while the ledger is away, and its record follows', async () => {
    const { caller, response, started, asked } = await dispatched()
    const away = vi.spyOn(env.LEDGER, 'getByName').mockImplementation(() => {
      throw new Error('the ledger is away')
    })
    asked.breakOff()
    expect(await started).toMatchObject({ error: { status: 502, code: 'upstream_empty_body' } })
    expect(await response.snapshot()).toBeNull()
    expect(await response.row()).toBeUndefined()
    away.mockRestore()
    await response.runAlarm()
    expect(await settledCalls(caller.organization)).toEqual([502])
    expect(await response.stored('head')).toBeNull()
  })
})
