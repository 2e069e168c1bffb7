import { abortAllDurableObjects, runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { beforeAll, describe, expect, it } from 'vitest'
import { configurationOf } from '../../src/deps.ts'
import { readAll } from '../../src/lib/bytes/read-bytes.ts'
import { newResponseId, placeOf } from '../../src/responses/model/response-ids.ts'
import type { ResponseMethods, StartResult } from '../../src/responses/model/types.ts'
import { lonePlace } from '../../src/responses/pool/places.ts'
import { MOST_LIVE } from '../../src/responses/pool/pool-room.ts'
import { startResponse } from '../../src/responses/pool/start-response.ts'
import type { ResponsePool } from '../../workers/response-pool.ts'
import { passTime, useDatabaseGate } from './database-gate.ts'
import {
  type Caller,
  clientOf,
  type LiveTrial,
  lastOf,
  newCaller,
  newResponse,
  phaseOf,
  requestOf,
  seedModel,
  settledCalls,
  sharing,
  stubOf,
  until,
} from './durable-response-harness.ts'
import type { ModelRequest } from './scripted-model.ts'
import { useScriptedModel } from './scripted-model.ts'

// Several responses of one organization in one object: each behaves as if it were alone there.

useDatabaseGate()
const model = useScriptedModel()
beforeAll(seedModel)
const asked = requestOf(model)

const SLOT_MS = 600_000
const { KEY_PEPPERS, RESPONSE_WINDOW_MS } = configurationOf(env)

const startAll = (responses: LiveTrial[], members: object = {}) =>
  Promise.all(responses.map((response) => response.start({ store: false, ...members })))

/** Names of all tables, and the alarm, of the object of a response. */
const storedIn = (caller: Caller, responseId: string) =>
  runInDurableObject(stubOf(caller, responseId), async (_, { storage }) => ({
    tables: storage.sql
      .exec<{ name: string }>(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '\\_cf%' ESCAPE '\\'",
      )
      .toArray()
      .map(({ name }) => name),
    alarm: await storage.getAlarm(),
  }))

const NOTHING = { tables: [], alarm: null }

/** Every text and blob that the object of a response stores. */
const textsIn = (caller: Caller, responseId: string) =>
  runInDurableObject(stubOf(caller, responseId), (_, { storage }) => {
    const tables = storage.sql
      .exec<{ name: string }>(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '\\_cf%' ESCAPE '\\'",
      )
      .toArray()
    const rows = tables.flatMap(({ name }) => storage.sql.exec(`SELECT * FROM ${name}`).toArray())
    const decoder = new TextDecoder()
    return rows
      .flatMap((row) => Object.values(row))
      .map((value) => (value instanceof ArrayBuffer ? decoder.decode(value) : String(value)))
      .join('\n')
  })

/** Whether each response of an object has to be continued after a restart. */
const openIn = (caller: Caller, { responseId }: LiveTrial) =>
  runInDurableObject(stubOf(caller, responseId), (_, { storage }) =>
    storage.sql
      .exec<{ open: number }>('SELECT open FROM responses ORDER BY number')
      .toArray()
      .map(({ open }) => open),
  )

/** The request of a response, among those whose input names it. */
const requestFor = (input: string): ModelRequest => {
  const found = model.requests.find(({ body }) => body.includes(`"${input}"`))
  if (!found) throw new Error(`no request for ${input}`)
  return found
}

describe('responses that share an object', () => {
  it('have their own events, state and end', async () => {
    const caller = await newCaller()
    const responses = sharing(caller, 5)
    for (const [index, response] of responses.entries()) {
      expect(await response.start({ input: `input-${index}`, store: false })).toMatchObject({ error: null })
    }
    await asked(5)
    const readers = responses.map((response) => response.follow())
    for (const word of ['one', 'two']) {
      for (const index of responses.keys()) requestFor(`input-${index}`).say(`${word}-${index} `)
    }
    for (const index of responses.keys()) requestFor(`input-${index}`).finish()
    for (const [index, response] of responses.entries()) {
      expect(await readers[index]?.done).toBe(true)
      const last = lastOf(readers[index]?.text ?? '')
      expect(last).toMatchObject({ id: response.responseId, output_text: `one-${index} two-${index} ` })
      const frames = (readers[index]?.text ?? '').split('\n\n')
      expect(await response.replay(3)).toBe(frames.slice(3).join('\n\n'))
      const page = await response.client.inputItems(caller.owner, { limit: 5, order: 'asc' })
      expect(JSON.stringify(page)).toContain(`input-${index}`)
    }
    expect(await settledCalls(caller.organization)).toEqual([200, 200, 200, 200, 200])
  })

  it('are removed one by one: no row has a text of a removed one', async () => {
    const caller = await newCaller()
    const [first, second] = sharing(caller, 2) as [LiveTrial, LiveTrial]
    for (const [response, name] of [
      [first, 'alpha'],
      [second, 'omega'],
    ] as const) {
      await response.start({ input: `input-${name}`, store: false })
      await until(() => requestFor(`input-${name}`))
      requestFor(`input-${name}`).say(`said-${name}`)
    }
    const reader = second.follow()
    await until(() => expect(reader.text).toContain('said-omega'))
    expect(await textsIn(caller, first.responseId)).toContain('said-alpha')
    expect(await first.remove()).toBe(true)
    const texts = await textsIn(caller, first.responseId)
    expect(texts).not.toContain('alpha')
    expect(texts).not.toContain(first.responseId)
    expect(texts).toContain('said-omega')
    expect(await first.snapshot()).toBeNull()
    requestFor('input-omega').finish()
    expect(await reader.done).toBe(true)
    expect(lastOf(reader.text).status).toBe('completed')
  })

  it('fail one by one: one whose events cannot be stored ends, the others do not', async () => {
    const caller = await newCaller()
    const responses = sharing(caller, 3)
    await startAll(responses)
    await asked(3)
    const readers = responses.map((response) => response.follow())
    for (const request of model.requests) request.say('Hello')
    await until(() => expect(readers.every(({ text }) => text.includes('"delta":"Hello"'))).toBe(true))
    const failing = responses[1]?.responseId ?? ''
    await runInDurableObject(stubOf(caller, failing), (_, { storage }) => {
      const { number } = storage.sql
        .exec<{ number: number }>('SELECT number FROM responses WHERE id = ?', failing)
        .one()
      // Neither together with the others, nor in a row of its own.
      storage.sql.exec(
        'CREATE TABLE IF NOT EXISTS event_segments (position INTEGER PRIMARY KEY, last_sequence INTEGER NOT NULL, closes INTEGER NOT NULL, body BLOB NOT NULL)',
      )
      storage.sql.exec(`CREATE TRIGGER fails BEFORE INSERT ON event_segments
        WHEN NEW.position >= ${number * 2 ** 36} AND NEW.position < ${(number + 1) * 2 ** 36} BEGIN SELECT RAISE(FAIL, 'no room'); END`)
      for (const change of ['INSERT', 'UPDATE'])
        storage.sql.exec(
          `CREATE TRIGGER fails_${change} BEFORE ${change} ON response_commits BEGIN SELECT RAISE(FAIL, 'no room'); END`,
        )
    })
    for (const request of model.requests) request.say(' lost')
    await readers[1]?.done
    await runInDurableObject(stubOf(caller, failing), (_, { storage }) => {
      for (const name of ['fails', 'fails_INSERT', 'fails_UPDATE']) storage.sql.exec(`DROP TRIGGER ${name}`)
    })
    for (const request of model.requests) request.finish()
    expect(await readers[0]?.done).toBe(true)
    expect(lastOf(readers[0]?.text ?? '').output_text).toBe('Hello lost')
    expect(await readers[2]?.done).toBe(true)
    expect(await responses[1]?.ended()).toMatchObject({ status: 'failed' })
    const replay = (await responses[1]?.replay()) ?? ''
    expect(replay.startsWith(readers[1]?.text ?? '-')).toBe(true)
    expect(lastOf(replay).status).toBe('failed')
  })

  it('do not wait for a reader of another one that does not read', async () => {
    const caller = await newCaller()
    const [slow, quick] = sharing(caller, 2) as [LiveTrial, LiveTrial]
    await startAll([slow, quick])
    await asked(2)
    const unread = await slow.client.follow(caller.owner, 0)
    const reader = quick.follow()
    for (const request of model.requests)
      for (let said = 0; said < 40; said++) request.say('x'.repeat(20_000))
    for (const request of model.requests) request.finish()
    expect(await reader.done).toBe(true)
    expect(await slow.ended()).toMatchObject({ status: 'completed' })
    const late = await readAll(unread as ReadableStream<Uint8Array>, 10_000_000)
    expect(new TextDecoder().decode(late)).toBe(await slow.replay())
  })
})

describe('other owners', () => {
  /** Every method that reads or changes a response. */
  const outcomes = (client: ResponseMethods, owner: Caller['owner']) =>
    Promise.all([
      client.snapshot(owner),
      client.follow(owner, 0),
      client.ended(owner),
      client.cancel(owner),
      client.remove(owner),
      client.state(owner),
      client.inputItems(owner, { limit: 5, order: 'asc' }),
      client.context(owner),
      client.passFiles(owner),
      client.settle(owner),
    ])
  const ABSENT = [null, null, null, null, false, null, null, null, false, 'absent']

  it('have no response: not by an id of another organization, nor of another user', async () => {
    const [caller, stranger] = [await newCaller(), await newCaller()]
    const [response] = sharing(caller, 1)
    const id = response?.responseId ?? ''
    await response?.start({ store: false })
    const request = await asked(1)
    const colleague = { ...caller.owner, userId: crypto.randomUUID() }
    expect(await outcomes(clientOf(caller, id), colleague)).toEqual(ABSENT)
    // The id leads a stranger to an object of its own organization, in which nothing is stored.
    expect(await outcomes(clientOf(stranger, id), stranger.owner)).toEqual(ABSENT)
    expect(await storedIn(stranger, id)).toEqual(NOTHING)
    // The object itself refuses another organization, wherever the request for it comes from.
    expect(await outcomes(clientOf(caller, id), stranger.owner)).toEqual(ABSENT)
    request.say('Hello')
    request.finish()
    expect(await response?.ended()).toMatchObject({ status: 'completed', output_text: 'Hello' })
  })

  it('cannot start a response in an object of another organization', async () => {
    const [caller, stranger] = [await newCaller(), await newCaller()]
    const [first, second] = sharing(caller, 2)
    await first?.start({ store: false })
    await asked(1)
    const request = {
      responseId: second?.responseId ?? '',
      principal: stranger.principal,
      identity: { callId: 'call_1', requestId: 'req_1', at: 0, actor: {}, surface: 'responses', action: '' },
      headers: [],
      compatibility: null,
    }
    const body = new TextEncoder().encode('{"model":"live-model","input":"hello"}')
    const start = clientOf(caller, request.responseId).start(request as never, body)
    await expect(start).rejects.toMatchObject({ kind: 'internal' })
    expect(model.requests).toHaveLength(1)
    expect(await textsIn(caller, request.responseId)).not.toContain(request.responseId)
  })
})

describe('a full object', () => {
  it('takes no further response until one has ended', async () => {
    const caller = await newCaller()
    const responses = sharing(caller, MOST_LIVE + 2)
    const rooms: Array<string | undefined> = []
    for (const response of responses.slice(0, MOST_LIVE)) {
      const started = await response.start({ store: false, background: true, stream: false })
      expect(started.error).toBeNull()
      rooms.push(started.room)
    }
    expect(rooms.filter((room) => room === 'enough')).toHaveLength(31)
    expect(rooms.slice(31).every((room) => room === 'little')).toBe(true)
    const [next, after] = responses.slice(MOST_LIVE) as [LiveTrial, LiveTrial]
    expect(await next.startRepeatably({ store: false })).toMatchObject({
      room: 'none',
      error: { kind: 'internal' },
    })
    expect(await next.client.reserve(caller.owner, 10)).toBe(false)
    expect(await textsIn(caller, next.responseId)).not.toContain(next.responseId)
    model.answer = (request) => request.finish()
    await responses[3]?.cancel()
    // A reservation takes the place; its start is not refused.
    expect(await next.client.reserve(caller.owner, 10)).toBe(true)
    expect(await after.startRepeatably({ store: false })).toMatchObject({ room: 'none' })
    expect(await next.start({ store: false })).toMatchObject({ error: null })
    passTime(60_000)
    await responses[4]?.remove()
    expect(await after.start({ store: false })).toMatchObject({ error: null })
    for (const request of model.requests) request.finish()
    await Promise.all(responses.map((response) => response.ended()))
    expect(await next.snapshot()).toMatchObject({ status: 'completed' })
  }, 60_000)

  it('has no room for contexts of more than 48 MB in all', async () => {
    const caller = await newCaller()
    const [large, small] = sharing(caller, 2) as [LiveTrial, LiveTrial]
    expect(await large.client.reserve(caller.owner, 52_428_800)).toBe(true)
    expect(await small.startRepeatably({ store: false })).toMatchObject({ room: 'none' })
    passTime(60_001)
    expect(await small.startRepeatably({ store: false })).toMatchObject({ error: null, room: 'enough' })
  })

  it('has no room for a body that would exceed the limit with what it has', async () => {
    const caller = await newCaller()
    const [first, large, small] = sharing(caller, 3) as [LiveTrial, LiveTrial, LiveTrial]
    expect(await first.client.reserve(caller.owner, 30_000_000)).toBe(true)
    expect(await large.client.reserve(caller.owner, 30_000_000)).toBe(false)
    expect(await small.client.reserve(caller.owner, 1_000_000)).toBe(true)
  })

  it('takes a body that is on its way when a restart has forgotten its reservation', async () => {
    const caller = await newCaller()
    const [large, streamed] = sharing(caller, 2) as [LiveTrial, LiveTrial]
    expect(await streamed.client.reserve(caller.owner, 1_000)).toBe(true)
    await abortAllDurableObjects()
    expect(await large.client.reserve(caller.owner, 52_428_800)).toBe(true)
    const body = new Response('{"model":"live-model","input":"hello","background":true,"store":false}').body
    const request = { ...streamed.request(), bodyBytes: 1_000 }
    const started = await streamed.client.start(request, body as ReadableStream<Uint8Array>)
    expect(started.error).toBeNull()
    await asked(1)
  })

  it('sends the caller to the next one, also with a body that cannot be sent twice', async () => {
    const caller = await newCaller()
    const deps = {
      clock: () => Date.now(),
      configuration: { KEY_PEPPERS, RESPONSE_OBJECTS: 'shared' as const },
      responseObject: (_organizationId: string, id: string) => clientOf(caller, id),
    }
    const bodyOf = (isStream: boolean) => {
      const text = '{"model":"live-model","input":"hello","background":true,"store":false}'
      const bytes = new TextEncoder().encode(text)
      return isStream ? (new Response(bytes).body as ReadableStream<Uint8Array>) : bytes
    }
    const numbers: number[] = []
    for (let started = 0; started < MOST_LIVE + 8; started++) {
      const body = bodyOf(started % 2 === 1)
      const placed = { owner: caller.owner, region: 'w', body, declaredBytes: 100 }
      const result: StartResult & { responseId: string } = await startResponse(
        deps,
        placed,
        1_000,
        (responseId, object, bodyBytes) =>
          object.start({ ...newResponse(caller).request(), responseId, bodyBytes }, body),
      )
      expect(result.error).toBeNull()
      const place = placeOf(result.responseId)
      expect(place?.region).toBe('w')
      numbers.push(Number.parseInt(place?.number ?? '', 36))
    }
    // An isolate moves on when an object has 32, and another isolate begins with the first one again.
    expect(new Set(numbers.slice(0, 32))).toEqual(new Set([0]))
    expect(new Set(numbers.slice(32, 64))).toEqual(new Set([1]))
    expect(new Set(numbers.slice(64))).toEqual(new Set([2]))
  }, 60_000)
})

describe('a restart of the object', () => {
  it('continues each response in its phase, and asks no model twice', async () => {
    const caller = await newCaller()
    const [ended, speaking, begun, removed] = sharing(caller, 4) as [
      LiveTrial,
      LiveTrial,
      LiveTrial,
      LiveTrial,
    ]
    await ended.start({ input: 'input-ended' })
    ;(await asked(1)).say('Done')
    requestFor('input-ended').finish()
    expect(await ended.ended()).toMatchObject({ status: 'completed' })
    await speaking.start({ input: 'input-speaking' })
    ;(await asked(2)).say('Hello')
    const reader = speaking.follow()
    await until(() => expect(reader.text).toContain('Hello'))
    await begun.start({ input: 'input-begun', background: true, stream: false })
    await removed.start({ input: 'input-removed' })
    await asked(4)
    await removed.remove()
    const before = await ended.replay()
    await abortAllDurableObjects()
    expect(await reader.done).toBe(false)

    expect(await speaking.ended()).toMatchObject({ status: 'failed' })
    const replay = await speaking.replay()
    expect(replay.startsWith(reader.text)).toBe(true)
    expect(lastOf(replay)).toMatchObject({ status: 'failed', output_text: 'Hello' })
    expect(await begun.ended()).toMatchObject({ status: 'failed' })
    expect(await ended.replay()).toBe(before)
    expect(await removed.snapshot()).toBeNull()
    expect(model.requests).toHaveLength(4)
    expect(await phaseOf(speaking)).toBe('ended')
    await until(async () => expect(await speaking.settle()).toBe('settled'))
    expect(await speaking.row()).toMatchObject({ status: 'failed' })
  })

  it('opens only those that are live', async () => {
    const caller = await newCaller()
    const responses = sharing(caller, 3)
    for (const [index, response] of responses.entries()) {
      await response.start({ input: `input-${index}`, store: false })
    }
    await asked(3)
    for (const index of [0, 1]) requestFor(`input-${index}`).finish()
    await Promise.all(responses.slice(0, 2).map((response) => response.ended()))
    const first = responses[0] as LiveTrial
    await until(async () => expect(await openIn(caller, first)).toEqual([0, 0, 1]))
    await abortAllDurableObjects()
    const opened = await runInDurableObject(first.stub(), (instance) => {
      const { pool } = instance as unknown as ResponsePool
      return pool.instances
    })
    expect(opened).toBe(1)
  })
})

describe('an object whose slot is over', () => {
  it('deletes everything when the last window is closed', async () => {
    const caller = await newCaller()
    const [first, last] = sharing(caller, 2) as [LiveTrial, LiveTrial]
    await startAll([first, last])
    await asked(2)
    requestFor('hello').finish()
    await until(async () => {
      const states = await Promise.all([first.state(), last.state()])
      expect(states.filter((state) => state?.running === false)).toHaveLength(1)
    })
    passTime(SLOT_MS)
    for (const request of model.requests) request.finish()
    await Promise.all([first.ended(), last.ended()])
    await until(async () => expect(await openIn(caller, first)).toEqual([0, 0]))
    passTime(RESPONSE_WINDOW_MS - SLOT_MS + 1)
    await first.runAlarm()
    // The window of the first is closed, and its rows stay until the object ends.
    const left = await Promise.all([first.snapshot(), last.snapshot()])
    expect(left.filter(Boolean)).toHaveLength(1)
    // A restart of the object does not show it again.
    await abortAllDurableObjects()
    const restarted = await Promise.all([first.snapshot(), last.snapshot()])
    expect(restarted.map(Boolean)).toEqual(left.map(Boolean))
    passTime(SLOT_MS)
    await first.runAlarm()
    expect(await Promise.all([first.snapshot(), last.snapshot()])).toEqual([null, null])
    expect((await storedIn(caller, first.responseId)).tables).toEqual([])
    await first.runAlarm()
    expect(await storedIn(caller, first.responseId)).toEqual(NOTHING)
  })

  it('has nothing left after a day of slots, whose responses are read, resumed and removed', async () => {
    const caller = await newCaller()
    model.answer = (request) => {
      request.say('Hello')
      request.finish()
    }
    const objects = new Map<string, DurableObjectStub>()
    const live: Array<{ response: LiveTrial; at: number }> = []
    for (let minute = 0; minute < 24 * 60; minute += 5) {
      if (minute % 20 < 15) {
        // Two of each slot share an object; ids of a slot name no object of another.
        const place = { ...lonePlace(Date.now()), number: '00' }
        const response = newResponse(caller, undefined, null, undefined, {}, place)
        objects.set(`${place.slot}`, response.stub())
        expect(await response.start({ store: false })).toMatchObject({ error: null })
        expect(await response.ended()).toMatchObject({ status: 'completed' })
        if (minute % 60 === 0) expect(await response.remove()).toBe(true)
        else live.push({ response, at: Date.now() })
      }
      passTime(5 * 60_000)
      for (const stub of objects.values()) await runDurableObjectAlarm(stub)
      for (const { response, at } of live.slice(-4)) {
        const isOpen = Date.now() < at + RESPONSE_WINDOW_MS
        expect((await response.snapshot()) !== null).toBe(isOpen)
      }
    }
    expect(objects.size).toBeGreaterThan(100)
    passTime(SLOT_MS + RESPONSE_WINDOW_MS)
    for (const stub of objects.values()) await runDurableObjectAlarm(stub)
    for (const stub of objects.values()) {
      const left = await runInDurableObject(stub, async (_, { storage }) => [
        storage.sql
          .exec("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '\\_cf%' ESCAPE '\\'")
          .toArray(),
        await storage.getAlarm(),
      ])
      expect(left).toEqual([[], null])
    }
  }, 240_000)
})

it('an id of an earlier release names an object of its own', async () => {
  const caller = await newCaller()
  const response = newResponse(caller, undefined, null, undefined, {}, null)
  expect(response.responseId).toMatch(/^resp_[0-9A-Za-z]{32}$/)
  await response.start()
  const request = await asked(1)
  request.say('Hello')
  request.finish()
  expect(await response.ended()).toMatchObject({ status: 'completed', output_text: 'Hello' })
  const pooled = newResponseId(KEY_PEPPERS, lonePlace(Date.now()))
  expect(pooled).toMatch(/^resp_[0-9A-Za-z]{37}$/)
  expect(await clientOf(caller, pooled).snapshot(caller.owner)).toBeNull()
  expect(await storedIn(caller, pooled)).toEqual(NOTHING)
})
