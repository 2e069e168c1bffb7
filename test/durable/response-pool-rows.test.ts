import { runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { beforeAll, expect, it } from 'vitest'
import { configurationOf } from '../../src/deps.ts'
import { lonePlace } from '../../src/responses/pool/places.ts'
import { rowsWritten } from './counting-response-pool.ts'
import { passTime, useDatabaseGate } from './database-gate.ts'
import {
  type LiveTrial,
  newCaller,
  newResponse,
  OBJECTS,
  seedModel,
  until,
} from './durable-response-harness.ts'
import { useScriptedModel } from './scripted-model.ts'

// Rows are most of what a response costs (docs/performance.md): each has a price, and none may be added unnoticed.

useDatabaseGate()
const model = useScriptedModel()
beforeAll(seedModel)

const { RESPONSE_WINDOW_MS } = configurationOf(env)
const objects = { ...OBJECTS.responses, RESPONSE_POOLS: env.COUNTING_POOLS }

/** Number of responses in an object that have something left to do. */
const openIn = (response: LiveTrial) =>
  runInDurableObject(
    response.stub(),
    (_, { storage }) => storage.sql.exec('SELECT 1 FROM responses WHERE open = 1').toArray().length,
  )

/** Twenty a second, as a model that is read along. */
const EVENT_MS = 50

interface Counted {
  rows: number
  /** Rows after the window of each is over. */
  afterWindow: number
  byTable: Record<string, number>
  /** Milliseconds of all responses together. */
  elapsed: number
}

/**
 * Rows that each of some responses in one object writes until it has ended.
 * @param deltas of each answer. @param pause between them, in milliseconds.
 */
async function rowsPerResponse(
  together: number,
  deltas: number,
  pause: number,
  members: object,
): Promise<Counted> {
  const caller = await newCaller()
  model.answer = (request) => {
    for (let said = 0; said < deltas; said++) {
      request.say('word ')
      request.pause(pause)
    }
    request.finish()
  }
  const place = lonePlace(Date.now())
  const run = async () => {
    const response = newResponse(caller, objects, null, undefined, {}, place)
    const started = await response.start(members)
    expect(started.error).toBeNull()
    if (started.error === null && 'events' in started && started.events)
      await new Response(started.events).text()
    expect(await response.ended()).toMatchObject({ status: 'completed' })
    await response.settle()
    return response
  }
  // The first makes the tables.
  const first = await run()
  const before = { count: rowsWritten.count, byTable: new Map(rowsWritten.byTable) }
  const begun = Date.now()
  await Promise.all(Array.from({ length: together }, run))
  const elapsed = Date.now() - begun
  // The ledger confirms the calls after the answers.
  await until(async () => expect(await openIn(first)).toBe(0))
  const rows = (rowsWritten.count - before.count) / together
  const byTable = [...rowsWritten.byTable].map(([name, count]): [string, number] => [
    name,
    (count - (before.byTable.get(name) ?? 0)) / together,
  ])
  const ended = rowsWritten.count
  passTime(RESPONSE_WINDOW_MS + 1)
  await first.runAlarm()
  const afterWindow = (rowsWritten.count - ended) / together
  expect(await first.snapshot()).toBeNull()
  return { rows, afterWindow, elapsed, byTable: Object.fromEntries(byTable.filter(([, count]) => count > 0)) }
}

/** Time of 32 beginnings and ends beside the deltas. */
const SLACK_MS = 1_500

it.each([
  ['that is not stored', 32, 1, 0, { store: false }, 8],
  ['that is stored', 32, 1, 0, { store: true }, 11],
  ['of 100 deltas, that is not stored', 32, 100, 0, { store: false }, 9],
  // Ten commits a second are shared by all; alone, each is that of one response.
  ['of 5 s, that is stored', 32, 100, EVENT_MS, { store: true }, 14],
  ['of 5 s, that is not stored', 32, 100, EVENT_MS, { store: false }, 12],
  ['of 5 s, that is stored, alone', 1, 100, EVENT_MS, { store: true }, 75],
])(
  'a response %s writes so many rows among %i at a time',
  async (name, together, deltas, pause, members, most) => {
    const { rows, afterWindow, byTable, elapsed } = await rowsPerResponse(together, deltas, pause, members)
    // Commits follow the clock: a busy machine that takes longer than the deltas writes more of them.
    const slowness = pause === 0 ? 1 : Math.max(1, elapsed / (deltas * pause + SLACK_MS))
    const tables = JSON.stringify(byTable)
    console.log(
      `rows of a response ${name}, of ${together}: ${rows}, after its window ${afterWindow}; ${tables}`,
    )
    expect(rows).toBeLessThanOrEqual(most * slowness)
    expect(rows).toBeGreaterThan(2)
    // The end of a window writes nothing but the alarm, which all share.
    expect(afterWindow).toBeLessThanOrEqual(3 / together)
  },
  60_000,
)
