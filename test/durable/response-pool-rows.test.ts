import { env } from 'cloudflare:workers'
import { beforeAll, expect, it } from 'vitest'
import { lonePlace } from '../../src/responses/pool/places.ts'
import { rowsWritten } from './counting-response-pool.ts'
import { useDatabaseGate } from './database-gate.ts'
import { newCaller, newResponse, OBJECTS, seedModel } from './durable-response-harness.ts'
import { useScriptedModel } from './scripted-model.ts'

// Rows are most of what a response costs (docs/performance.md): each has a price, and none may be added unnoticed.

useDatabaseGate()
const model = useScriptedModel()
beforeAll(seedModel)

const TOGETHER = 32
const objects = { ...OBJECTS.responses, RESPONSE_POOLS: env.COUNTING_POOLS }

/** Rows that each of 32 responses in one object writes until it has ended. @param deltas of each answer. */
async function rowsPerResponse(deltas: number, members: object): Promise<number> {
  const caller = await newCaller()
  model.answer = (request) => {
    for (let said = 0; said < deltas; said++) request.say('word ')
    request.finish()
  }
  const place = lonePlace(Date.now())
  const run = async () => {
    const response = newResponse(caller, objects, null, undefined, {}, place)
    expect(await response.start(members)).toMatchObject({ error: null })
    expect(await response.ended()).toMatchObject({ status: 'completed' })
    await response.settle()
  }
  // The first makes the tables.
  await run()
  const before = rowsWritten.count
  await Promise.all(Array.from({ length: TOGETHER }, run))
  return (rowsWritten.count - before) / TOGETHER
}

it.each([
  ['that is not stored', 1, { store: false }, 15],
  ['that is stored', 1, { store: true }, 20],
  ['of 100 deltas, that is not stored', 100, { store: false }, 22],
])(
  'a response %s writes so many rows beside others',
  async (name, deltas, members, most) => {
    const rows = await rowsPerResponse(deltas, members)
    console.log(`rows of a response ${name}, of ${TOGETHER} in an object: ${rows}`)
    expect(rows).toBeLessThanOrEqual(most)
    expect(rows).toBeGreaterThan(5)
  },
  60_000,
)
