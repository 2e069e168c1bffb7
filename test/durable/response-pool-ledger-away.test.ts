import { runDurableObjectAlarm } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { beforeAll, expect, it, vi } from 'vitest'
import { lonePlace } from '../../src/responses/pool/places.ts'
import { useDatabaseGate } from './database-gate.ts'
import {
  type LiveTrial,
  lastOf,
  newCaller,
  newResponse,
  requestOf,
  seedModel,
  settledCalls,
  stubOf,
  until,
} from './durable-response-harness.ts'
import { useScriptedModel } from './scripted-model.ts'

useDatabaseGate()
const model = useScriptedModel()
beforeAll(seedModel)
const asked = requestOf(model)

/** Every call of the ledger fails until it is back. */
function ledgerAway(): { isBack: () => void } {
  const spy = vi.spyOn(env.LEDGER, 'getByName').mockImplementation(() => {
    const failing = { get: () => () => Promise.reject(new Error('the ledger is away')) }
    return new Proxy({}, failing) as never
  })
  return { isBack: () => spy.mockRestore() }
}

it.each([true, false])(
  'a response whose calls the ledger has not confirmed stays ended beside later ones: store %s',
  async (store) => {
    const caller = await newCaller()
    const place = lonePlace(Date.now())
    const [first, second] = [1, 2].map(() => newResponse(caller, undefined, null, undefined, {}, place)) as [
      LiveTrial,
      LiveTrial,
    ]
    expect(await first.start({ store, stream: false })).toMatchObject({ error: null })
    const request = await asked(1)
    const reader = first.follow()
    request.say('Hello')
    await until(() => expect(reader.text).toContain('"delta":"Hello"'))
    const ledger = ledgerAway()
    request.finish()
    expect(await reader.done).toBe(true)
    await new Promise((resolve) => setTimeout(resolve, 50))
    ledger.isBack()
    // A start drops the instances that nothing uses.
    expect(await second.start({ store: false })).toMatchObject({ error: null })
    const replayed = await first.replay()
    expect(lastOf(replayed)).toMatchObject({ status: 'completed', output_text: 'Hello' })
    await runDurableObjectAlarm(stubOf(caller, first.responseId))
    expect(lastOf(await first.replay())).toMatchObject({ status: 'completed', output_text: 'Hello' })
    const other = await asked(2)
    other.say('Bye')
    other.finish()
    await until(async () => expect(lastOf(await second.replay()).status).toBe('completed'))
    expect(await settledCalls(caller.organization)).toEqual([200, 200])
  },
)
