import { runInDurableObject } from 'cloudflare:test'
import { describe, expect, it } from 'vitest'
import { event, newEventLog, TailReader } from './event-log-harness.ts'
import type { EventLogObject } from './event-log-object.ts'

const EVENTS = 10_000
const PAYLOAD = 'about as much text as the delta of a model carries, with its ids'

/** A log of deltas, so many to a row. */
async function fill(object: EventLogObject, eventsPerRow: number): Promise<void> {
  for (let sequence = 1; sequence <= EVENTS; sequence += 1) {
    object.append([event(sequence, { word: PAYLOAD })])
    if (sequence % eventsPerRow === 0) object.flush()
  }
  object.end([])
}

/** Reads all there is. @returns events in a second. */
async function speed(stream: ReadableStream<Uint8Array>): Promise<number> {
  const begun = performance.now()
  const reader = new TailReader(stream)
  await reader.done
  const seconds = (performance.now() - begun) / 1000
  expect(reader.text.match(/^id: \d+$/gm)).toEqual(
    Array.from({ length: EVENTS }, (_, index) => `id: ${index + 1}`),
  )
  return Math.round(EVENTS / seconds)
}

describe('a replay of 10,000 events', () => {
  it.each([1, 4, 16])('is whole, with %i in a row', async (eventsPerRow) => {
    const log = newEventLog()
    const inside = await runInDurableObject(log(), async (object: EventLogObject) => {
      await fill(object, eventsPerRow)
      return await speed(object.newLog(15_000).tail(0))
    })
    const outside = await speed(await log().tailOf(0))
    console.info(`replay, ${eventsPerRow} events a row: ${inside} events/s in the object, ${outside} outside`)
  })
})
