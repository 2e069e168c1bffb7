import { abortAllDurableObjects, runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import { passTime, useDatabaseGate } from './database-gate.ts'
import {
  type Caller,
  conversationOf,
  lastOf,
  newCaller,
  newResponse,
  replayed,
  seedModel,
  settledCalls,
  speaking as speakingResponse,
  until,
  writerOf,
} from './durable-response-harness.ts'
import { type ModelRequest, useScriptedModel } from './scripted-model.ts'

const gate = useDatabaseGate()
const model = useScriptedModel()
beforeAll(seedModel)

const WINDOW_MS = 15 * 60_000

async function modelRequest(): Promise<ModelRequest> {
  await until(() => expect(model.requests.length).toBeGreaterThan(0))
  return model.requests.at(-1) as ModelRequest
}

const speaking = (caller: Caller, request?: object) => speakingResponse(model, caller, request)

describe('a response in its object', () => {
  it('is made, stored and settled', async () => {
    const caller = await newCaller()
    const { response, reader, asked } = await speaking(caller)
    asked.say(' there')
    asked.finish()
    expect(await reader.done).toBe(true)
    const last = lastOf(reader.text)
    expect(last).toMatchObject({ status: 'completed', output_text: 'Hello there' })
    expect(await response.snapshot()).toEqual(last as never)
    const told = reader.text.match(/^id: /gm)?.length
    expect(await response.row()).toMatchObject({ status: 'completed', last_sequence: told })
    expect(await writerOf(await conversationOf(response))).toBeNull()
    expect(await settledCalls(caller.organization)).toEqual([200])
  })

  it('is begun once, however often it is started', async () => {
    const caller = await newCaller()
    const response = newResponse(caller)
    const started = await Promise.all([response.start(), response.start(), response.start()])
    expect(started.filter(({ error }) => error === null)).toHaveLength(1)
    expect((await response.start()).error).toMatchObject({ status: 500 })
    const asked = await modelRequest()
    asked.say('once')
    asked.finish()
    await response.ended()
    expect((await response.start()).error).toMatchObject({ status: 500 })
    expect(model.requests).toHaveLength(1)
    expect((await replayed(response)).last).toMatchObject({ status: 'completed', output_text: 'once' })
    expect(await settledCalls(caller.organization)).toEqual([200])
  })
})

describe('with Postgres away', () => {
  it('ends within two seconds, owes, and pays by its alarm before it forgets', async () => {
    const caller = await newCaller()
    const { response, reader, asked } = await speaking(caller)
    gate.mode = 'away'
    asked.finish()
    const since = performance.now()
    expect(await reader.done).toBe(true)
    expect(performance.now() - since).toBeLessThan(3_500)
    const last = lastOf(reader.text)
    passTime(2 * WINDOW_MS)
    await response.runAlarm()
    await abortAllDurableObjects()
    await response.runAlarm()
    expect(await response.snapshot()).toEqual(last as never)
    expect(await response.settle()).toBe('pending')
    gate.mode = 'answer_lost'
    await response.runAlarm()
    expect(await response.settle()).toBe('pending')
    gate.mode = 'open'
    await response.runAlarm()
    expect(await response.snapshot()).toBeNull()
    const told = reader.text.match(/^id: /gm)?.length
    expect(await response.row()).toMatchObject({ status: 'completed', last_sequence: told })
  })

  it('does not bring back what was removed while it was written', async () => {
    const caller = await newCaller()
    const { response, reader, asked } = await speaking(caller)
    const conversation = await conversationOf(response)
    gate.mode = 'answer_lost'
    gate.held = true
    asked.finish()
    await until(async () => expect(await response.snapshot()).toMatchObject({ status: 'completed' }))
    const removed = response.remove()
    await abortedBy(reader.done)
    gate.held = false
    expect(await removed).toBe(true)
    expect(await response.snapshot()).toBeNull()
    await abortAllDurableObjects()
    expect(await response.snapshot()).toBeNull()
    gate.mode = 'open'
    await response.runAlarm()
    expect(await writerOf(conversation)).toBeNull()
  })
})

/** Gives what goes on in the object a moment; nothing tells from outside that a request waits there. */
const abortedBy = (work: Promise<unknown>) =>
  Promise.race([work, new Promise((resolve) => setTimeout(resolve, 50))])

describe('with the content store away', () => {
  it('ends what is too large for a row, and stores it later', async () => {
    const caller = await newCaller()
    const { response, reader, asked } = await speaking(caller)
    const put = vi.spyOn(env.CONTENT, 'put').mockRejectedValue(new Error('R2 is away'))
    const large = 'x'.repeat(1_500_000)
    asked.say(large)
    asked.finish()
    expect(await reader.done).toBe(true)
    expect(lastOf(reader.text)).toMatchObject({ status: 'completed', output_text: `Hello${large}` })
    expect(await response.settle()).toBe('pending')
    put.mockRestore()
    expect(await response.settle()).toBe('settled')
    expect(await response.row()).toMatchObject({ status: 'completed' })
  })
})

describe('an object whose storage fails', () => {
  it('ends the response with what was stored', async () => {
    const caller = await newCaller()
    const { response, reader, asked } = await speaking(caller)
    const rename = (from: string, to: string) =>
      runInDurableObject(response.stub(), (_, { storage }) => {
        for (const table of ['event_segments', 'response_commits']) {
          const [found] = storage.sql.exec('SELECT 1 FROM sqlite_master WHERE name = ?', table + from)
          if (found) storage.sql.exec(`ALTER TABLE ${table}${from} RENAME TO ${table}${to}`)
          // Otherwise it would be created.
          else if (to) storage.sql.exec(`CREATE VIEW ${table} AS SELECT 1`)
          else storage.sql.exec(`DROP VIEW ${table}`)
        }
      })
    await rename('', '_away')
    asked.say(' lost')
    await reader.done
    await rename('_away', '')
    asked.finish()
    await response.ended()
    const { text, last } = await replayed(response)
    expect(text.startsWith(reader.text)).toBe(true)
    expect(last.status).toBe('failed')
    expect(await response.settle()).toBe('settled')
    expect(await response.row()).toMatchObject({ status: 'failed' })
  })
})

describe('a response that is ended by its owner', () => {
  it('while it speaks', async () => {
    const caller = await newCaller()
    const { response, reader, asked } = await speaking(caller)
    expect(await response.cancel()).toMatchObject({
      status: 'incomplete',
      incomplete_details: { reason: 'cancelled' },
    })
    expect(await reader.done).toBe(true)
    expect(lastOf(reader.text)).toMatchObject({ status: 'incomplete', output_text: 'Hello' })
    expect(asked.aborted).toBe(true)
    expect(await response.cancel()).toEqual(await response.snapshot())
    expect(await settledCalls(caller.organization)).toHaveLength(1)
  })

  it('while it waits for the model', async () => {
    const caller = await newCaller()
    const response = newResponse(caller)
    await response.start()
    const asked = await modelRequest()
    expect(await response.cancel()).toMatchObject({ status: 'incomplete' })
    expect(asked.aborted).toBe(true)
    expect((await replayed(response)).last).toMatchObject({ status: 'incomplete', output_text: '' })
    expect(await settledCalls(caller.organization)).toHaveLength(1)
  })

  it('and removed while it speaks', async () => {
    const caller = await newCaller()
    const { response, reader, asked } = await speaking(caller)
    expect(await response.remove()).toBe(true)
    expect(await reader.done).toBe(true)
    expect(reader.text).toContain('"reason":"cancelled"')
    expect(await response.snapshot()).toBeNull()
    expect(await response.row()).toBeUndefined()
    await until(() => expect(asked.aborted).toBe(true))
    await until(async () => expect(await settledCalls(caller.organization)).toHaveLength(1))
  })
})

describe('the alarm', () => {
  it('changes nothing while a response runs, and closes the window when it is over', async () => {
    const caller = await newCaller()
    const { response, reader, asked } = await speaking(caller)
    passTime(30_000)
    expect(await response.runAlarm()).toBe(true)
    asked.finish()
    expect(await reader.done).toBe(true)
    expect(await response.runAlarm()).toBe(true)
    expect(await response.snapshot()).not.toBeNull()
    passTime(WINDOW_MS)
    expect(await response.runAlarm()).toBe(true)
    expect(await response.snapshot()).toBeNull()
    expect(await response.runAlarm()).toBe(false)
    expect(await response.row()).toMatchObject({ status: 'completed' })
  })
})
