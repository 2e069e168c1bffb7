import { runInDurableObject } from 'cloudflare:test'
import { describe, expect, it, vi } from 'vitest'
import { event, events, newEventLog } from './event-log-harness.ts'
import type { EventLogObject } from './event-log-object.ts'

/**
 * Runs a test inside of an object, with timers that move by hand. Nothing but microtasks may be awaited in it: the test
 * runner would get these timers as well, and what it does in the name of an object fails.
 */
const inObject = (test: (object: EventLogObject, ranges: () => string[]) => Promise<void>) => async () => {
  await runInDurableObject(newEventLog()(), async (object: EventLogObject) => {
    vi.useFakeTimers({ toFake: ['Date', 'setTimeout', 'clearTimeout'] })
    try {
      await test(object, () => object.rows().map(({ first, last }) => `${first}-${last}`))
    } finally {
      vi.useRealTimers()
    }
  })
}

const endOfRun = () => Promise.resolve()

describe('a segment is written', () => {
  it(
    'at the end of the run when nothing was for a while, with all that was appended in it',
    inObject(async (object, ranges) => {
      object.append(events(1, 3))
      expect(object.tables()).toBe(0)
      await endOfRun()
      expect(ranges()).toEqual(['1-3'])
      vi.setSystemTime(Date.now() + 100)
      object.append([event(4)])
      await endOfRun()
      expect(ranges()).toEqual(['1-3', '4-4'])
      expect(vi.getTimerCount()).toBe(0)
    }),
  )

  it(
    'else 100 ms after the first event that waits',
    inObject(async (object, ranges) => {
      object.append([event(1)])
      await endOfRun()
      vi.advanceTimersByTime(40)
      object.append([event(2)])
      await endOfRun()
      vi.advanceTimersByTime(50)
      object.append([event(3)])
      await endOfRun()
      vi.advanceTimersByTime(9)
      expect(ranges()).toEqual(['1-1'])
      vi.advanceTimersByTime(41)
      expect(ranges()).toEqual(['1-1', '2-3'])
      expect(vi.getTimerCount()).toBe(0)
      vi.advanceTimersByTime(20)
      object.append([event(4)])
      await endOfRun()
      expect(ranges()).toEqual(['1-1', '2-3'])
      vi.advanceTimersByTime(100)
      expect(ranges()).toEqual(['1-1', '2-3', '4-4'])
      expect(object.log.rowsWritten).toBe(3)
    }),
  )

  it(
    'at the end of a run with a boundary in it, one for all of them',
    inObject(async (object, ranges) => {
      object.append([event(1)])
      await endOfRun()
      object.append([event(2)])
      await endOfRun()
      object.append([event(3, { boundary: true }), event(4, { boundary: true }), event(5)])
      await endOfRun()
      object.append([event(6)])
      await endOfRun()
      expect(ranges()).toEqual(['1-1', '2-5'])
      expect(vi.getTimerCount()).toBe(1)
    }),
  )

  it(
    'when 16 events wait, or 32 KB',
    inObject(async (object, ranges) => {
      object.append([event(1)])
      await endOfRun()
      for (let sequence = 2; sequence <= 40; sequence += 1) {
        object.append([event(sequence)])
        await endOfRun()
      }
      expect(ranges()).toEqual(['1-1', '2-17', '18-33'])
      object.append([event(41, { word: 'x'.repeat(33_000) })])
      await endOfRun()
      expect(ranges()).toEqual(['1-1', '2-17', '18-33', '34-41'])
    }),
  )

  it(
    'when it is asked for, and not once more at the end of the run',
    inObject(async (object, ranges) => {
      object.append([event(1, { boundary: true })])
      object.flush()
      expect(ranges()).toEqual(['1-1'])
      object.append([event(2)])
      await endOfRun()
      expect(ranges()).toEqual(['1-1'])
      object.flush()
      object.flush()
      expect(ranges()).toEqual(['1-1', '2-2'])
      object.end([event(3, { boundary: true })])
      await endOfRun()
      expect(object.log.rowsWritten).toBe(3)
      expect(vi.getTimerCount()).toBe(0)
    }),
  )
})

describe('many events', () => {
  it(
    'make no more rows than 10 in a second, or one for 16',
    inObject(async (object) => {
      let sequence = 0
      for (const perSecond of [5, 30, 200, 1000]) {
        const before = object.log.rowsWritten
        for (let sent = 0; sent < perSecond; sent += 1) {
          sequence += 1
          object.append([event(sequence)])
          await endOfRun()
          vi.advanceTimersByTime(1000 / perSecond)
        }
        vi.advanceTimersByTime(1000)
        const rows = object.log.rowsWritten - before
        expect(rows).toBeLessThanOrEqual(Math.max(11, perSecond / 16 + 2))
      }
    }),
  )
})
