import { abortAllDurableObjects, runInDurableObject } from 'cloudflare:test'
import { beforeAll, expect, it } from 'vitest'
import { StoredEvents } from '../../src/responses/log/stored-events.ts'
import { UnflushedEvents } from '../../src/responses/log/unflushed-events.ts'
import { lonePlace } from '../../src/responses/pool/places.ts'
import { StoredValues } from '../../src/responses/store/stored-values.ts'
import { useDatabaseGate } from './database-gate.ts'
import {
  committedIn,
  type LiveTrial,
  lastOf,
  newCaller,
  newResponse,
  requestOf,
  seedModel,
  sliceIn,
  until,
} from './durable-response-harness.ts'
import { useScriptedModel } from './scripted-model.ts'

// Objects that the release before commits has written: a row for each segment of events, and heads among other values.

useDatabaseGate()
const model = useScriptedModel()
beforeAll(seedModel)
const asked = requestOf(model)

/** Gives the storage of an object the tables and rows of the earlier release. */
function writeEarlierLayout(storage: DurableObjectStorage): void {
  const { sql } = storage
  sql.exec(
    'CREATE TABLE IF NOT EXISTS event_segments (position INTEGER PRIMARY KEY, last_sequence INTEGER NOT NULL, closes INTEGER NOT NULL, body BLOB NOT NULL)',
  )
  const rows = sql.exec<{ number: number; id: string }>('SELECT number, id FROM responses').toArray()
  for (const { number, id } of rows) {
    const { head, frames } = committedIn(storage, id)
    const { lastSequence } = new StoredEvents(sliceIn(storage, id), new UnflushedEvents())
    for (const { first, last, bytes } of frames) {
      if (first <= lastSequence) continue
      const position = number * 2 ** 36 + first * 1024
      sql.exec('INSERT INTO event_segments VALUES (?, ?, 0, ?)', position, last, bytes)
    }
    new StoredValues(sliceIn(storage, id)).put('head', JSON.parse(head ?? ''))
  }
  sql.exec('DROP TABLE IF EXISTS response_commits')
  sql.exec(
    'CREATE TABLE earlier (number INTEGER PRIMARY KEY, id TEXT NOT NULL, open INTEGER NOT NULL, due INTEGER, closed INTEGER NOT NULL)',
  )
  sql.exec('INSERT INTO earlier SELECT number, id, open, due, closed FROM responses')
  sql.exec('DROP TABLE responses')
  sql.exec('ALTER TABLE earlier RENAME TO responses')
}

const columnsIn = (response: LiveTrial) =>
  runInDurableObject(response.stub(), (_, { storage }) =>
    storage.sql
      .exec<{ name: string }>('PRAGMA table_info(responses)')
      .toArray()
      .map(({ name }) => name),
  )

it('an object of the earlier release is read, continued, and takes responses', async () => {
  const caller = await newCaller()
  const place = lonePlace(Date.now())
  const [ended, speaking, next] = Array.from({ length: 3 }, () =>
    newResponse(caller, undefined, null, undefined, {}, place),
  ) as [LiveTrial, LiveTrial, LiveTrial]
  await ended.start({ store: false })
  const first = await asked(1)
  for (let said = 0; said < 40; said++) first.say(`word ${said} `)
  first.finish()
  expect(await ended.ended()).toMatchObject({ status: 'completed' })
  await speaking.start()
  const second = await asked(2)
  const reader = speaking.follow()
  second.say('Hello')
  await until(() => expect(reader.text).toContain('"delta":"Hello"'))
  const before = await ended.replay()

  await runInDurableObject(ended.stub(), (_, { storage }) => writeEarlierLayout(storage))
  expect(await columnsIn(ended)).toEqual(['number', 'id', 'open', 'due', 'closed'])
  await abortAllDurableObjects()

  expect(await ended.replay()).toBe(before)
  expect(await ended.replay(7)).toBe(before.split('\n\n').slice(7).join('\n\n'))
  expect(await ended.snapshot()).toEqual(lastOf(before))
  await speaking.ended()
  const replay = await speaking.replay()
  expect(replay.startsWith(reader.text)).toBe(true)
  expect(lastOf(replay)).toMatchObject({ status: 'failed', output_text: 'Hello' })
  await until(async () => expect(await speaking.settle()).toBe('settled'))
  expect(model.requests).toHaveLength(2)
  expect(await columnsIn(ended)).toEqual(['number', 'id', 'open', 'due', 'closed', 'head', 'since'])

  model.answer = (request) => {
    request.say('Again')
    request.finish()
  }
  expect(await next.start({ store: false })).toMatchObject({ error: null })
  expect(await next.ended()).toMatchObject({ status: 'completed', output_text: 'Again' })
  await abortAllDurableObjects()
  expect(await next.snapshot()).toMatchObject({ output_text: 'Again' })
  expect(await ended.replay()).toBe(before)
  // Removal leaves nothing of either form.
  expect(await ended.remove()).toBe(true)
  const texts = await runInDurableObject(next.stub(), (_, { storage }) =>
    JSON.stringify(storage.sql.exec('SELECT id, head FROM responses').toArray()),
  )
  expect(texts).not.toContain(ended.responseId)
})

it('a response does not get the number of a start that failed in the earlier release', async () => {
  const caller = await newCaller()
  const place = lonePlace(Date.now())
  const [ended, next] = [0, 1].map(() => newResponse(caller, undefined, null, undefined, {}, place)) as [
    LiveTrial,
    LiveTrial,
  ]
  model.answer = (request) => {
    request.say('Hello')
    request.finish()
  }
  await ended.start({ store: false })
  expect(await ended.ended()).toMatchObject({ status: 'completed' })
  await runInDurableObject(ended.stub(), (_, { storage: { sql } }) => {
    // It cannot insert into the table with more columns, and has stored its head nevertheless.
    sql.exec(
      'CREATE TABLE state (name TEXT, part INTEGER, value TEXT NOT NULL, PRIMARY KEY (name, part)) WITHOUT ROWID',
    )
    sql.exec("INSERT INTO state SELECT '1/head', 0, head FROM responses")
  })
  await abortAllDurableObjects()
  expect(await next.start({ store: false })).toMatchObject({ error: null })
  expect(await next.ended()).toMatchObject({ status: 'completed', output_text: 'Hello' })
})
