import { abortAllDurableObjects } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import { configurationOf, createDatabase } from '../../src/deps.ts'
import { createContentStore } from '../../src/responses/content/content-store.ts'
import { eraseLeftContent, eraseResponse } from '../../src/responses/store/content-garbage.ts'
import { passTime, useDatabaseGate } from './database-gate.ts'
import { type Caller, newCaller, query, seedModel, speaking, until } from './durable-response-harness.ts'
import { useScriptedModel } from './scripted-model.ts'

// What a caller deletes is gone in the end, also from the content store, whatever was away or died meanwhile.

const gate = useDatabaseGate()
const model = useScriptedModel()
beforeAll(seedModel)

const WINDOW_MS = 15 * 60_000
const SLOT_MS = 10 * 60_000
const LARGE = 'x'.repeat(1_500_000)

const background: Array<Promise<unknown>> = []
const deps = {
  database: createDatabase(configurationOf(env)),
  contentStore: createContentStore(env.CONTENT),
  waitUntil: (work: Promise<unknown>) => background.push(work),
}

/** Of an item in a statement that brings it to Postgres. */
const NAMED_CONTENT = '\\"contentKey\\":\\"items/'

async function contentOf({ owner }: Caller): Promise<string[]> {
  const { objects } = await env.CONTENT.list({ prefix: `items/${owner.organizationId}/` })
  return objects.map(({ key }) => key)
}

const notedFor = ({ owner }: Caller) =>
  query('SELECT content_key FROM content_erasures WHERE organization_id = $1', owner.organizationId)

/** A response that was given a large item and made one; both lie in the content store. */
async function largeResponse(caller: Caller) {
  const { response, reader, asked } = await speaking(model, caller, { input: LARGE })
  asked.say(LARGE)
  asked.finish()
  expect(await reader.done).toBe(true)
  expect(await response.settle()).toBe('settled')
  expect(await contentOf(caller)).toHaveLength(2)
  return response
}

const contentStoreAway = () => vi.spyOn(env.CONTENT, 'delete').mockRejectedValue(new Error('R2 is away'))

describe('a response with content that is deleted', () => {
  it('after its window, while the content store is away: later, and only once it is confirmed', async () => {
    const caller = await newCaller()
    const response = await largeResponse(caller)
    passTime(WINDOW_MS)
    await response.runAlarm()
    expect(await response.snapshot()).toBeNull()
    const away = contentStoreAway()
    expect(await response.remove()).toBe(false)
    expect(await eraseResponse(deps, caller.owner, response.responseId)).not.toBeNull()
    expect(await response.row()).toBeUndefined()
    await expect(eraseLeftContent(deps)).rejects.toThrow('R2 is away')
    expect(await notedFor(caller)).toHaveLength(2)
    expect(await contentOf(caller)).toHaveLength(2)
    away.mockRestore()
    gate.mode = 'answer_lost'
    await expect(eraseLeftContent(deps)).rejects.toThrow()
    gate.mode = 'open'
    await eraseLeftContent(deps)
    expect(await contentOf(caller)).toEqual([])
    expect(await notedFor(caller)).toEqual([])
    expect(await eraseResponse(deps, caller.owner, response.responseId)).toBeNull()
  })

  it('with everything there: at once', async () => {
    const caller = await newCaller()
    const response = await largeResponse(caller)
    passTime(WINDOW_MS)
    await response.runAlarm()
    expect(await eraseResponse(deps, caller.owner, response.responseId)).not.toBeNull()
    expect(await contentOf(caller)).toEqual([])
    expect(await notedFor(caller)).toEqual([])
  })

  it('while its output is just being stored: also what arrives after that', async () => {
    const caller = await newCaller()
    const { response, asked } = await speaking(model, caller)
    const real = env.CONTENT.put.bind(env.CONTENT)
    const put = vi.spyOn(env.CONTENT, 'put')
    let arrived = false
    let held = true
    put.mockImplementation((async (key: string, value: ReadableStream) => {
      arrived = true
      // The object looks by itself: nothing of a test may reach into its requests.
      while (held) await new Promise((resolve) => setTimeout(resolve, 1))
      return real(key, value)
    }) as never)
    asked.say(LARGE)
    asked.finish()
    await until(() => expect(arrived).toBe(true))
    expect(await response.remove()).toBe(true)
    const away = contentStoreAway()
    held = false
    await until(async () => expect(await contentOf(caller)).toHaveLength(1))
    expect(await response.runAlarm()).toBe(true)
    away.mockRestore()
    await response.runAlarm()
    expect(await contentOf(caller)).toEqual([])
    // An object that others may share has an alarm until its slot is over.
    passTime(SLOT_MS)
    await response.runAlarm()
    expect(await response.runAlarm()).toBe(false)
  })
})

describe('a response whose items Postgres refuses', () => {
  it('is stored as failed, and its content is erased when the content store is back', async () => {
    const caller = await newCaller()
    const { response, reader, asked } = await speaking(model, caller)
    const passed = globalThis.fetch
    globalThis.fetch = async (input, init) => {
      if (!String(init?.body).includes(NAMED_CONTENT)) return passed(input as Request, init)
      return Response.json({ message: 'no such character', code: '22021' }, { status: 400 })
    }
    const away = contentStoreAway()
    asked.say(LARGE)
    asked.finish()
    expect(await reader.done).toBe(true)
    expect(await response.settle()).toBe('settled')
    expect(await response.row()).toMatchObject({ status: 'failed' })
    passTime(WINDOW_MS)
    await response.runAlarm()
    expect(await contentOf(caller)).toHaveLength(1)
    away.mockRestore()
    await abortAllDurableObjects()
    await response.runAlarm()
    expect(await contentOf(caller)).toEqual([])
    // An object that others may share has an alarm until its slot is over.
    passTime(SLOT_MS)
    await response.runAlarm()
    expect(await response.runAlarm()).toBe(false)
  })
})
