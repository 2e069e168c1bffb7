import { runDurableObjectAlarm } from 'cloudflare:test'
import { beforeAll, expect, it } from 'vitest'
import { useDatabaseGate } from './database-gate.ts'
import {
  type LiveTrial,
  lastOf,
  newCaller,
  requestOf,
  seedModel,
  settledCalls,
  sharing,
  stubOf,
  until,
} from './durable-response-harness.ts'
import { failLedger } from './held-ledger.ts'
import { useScriptedModel } from './scripted-model.ts'

useDatabaseGate()
const model = useScriptedModel()
beforeAll(seedModel)
const asked = requestOf(model)

it.each([true, false])(
  'a response whose calls the ledger has not confirmed stays ended beside later ones: store %s',
  async (store) => {
    const caller = await newCaller()
    const [first, second] = sharing(caller, 2) as [LiveTrial, LiveTrial]
    expect(await first.start({ store, stream: false })).toMatchObject({ error: null })
    const request = await asked(1)
    const reader = first.follow()
    request.say('Hello')
    await until(() => expect(reader.text).toContain('"delta":"Hello"'))
    const ledger = failLedger()
    request.finish()
    expect(await reader.done).toBe(true)
    await until(() => expect(ledger.failed()).toBeGreaterThan(0))
    ledger.release()
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
