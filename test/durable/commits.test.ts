import { abortAllDurableObjects, runInDurableObject } from 'cloudflare:test'
import { describe, expect, it } from 'vitest'
import { event, events, framesOf, newSharedLog, readAll, TailReader } from './event-log-harness.ts'
import type { SharedLogsObject } from './shared-logs-object.ts'

const MEGABYTE = 1024 * 1024

/** A large one has 4 bytes for each letter of its word, which is more than a commit takes. */
const large = (sequence: number, bytes: number) => event(sequence, { word: 'x'.repeat(bytes) })

/** Every text of an object's tables. */
const textsIn = ({ storage }: SharedLogsObject) => {
  const { sql } = storage
  const tables = sql.exec<{ name: string }>("SELECT name FROM sqlite_master WHERE type = 'table'").toArray()
  const rows = tables
    .filter(({ name }) => !name.startsWith('_cf'))
    .flatMap(({ name }) => sql.exec(`SELECT * FROM ${name}`).toArray())
  return rows
    .flatMap((row) => Object.values(row))
    .map((value) => (value instanceof ArrayBuffer ? new TextDecoder().decode(value) : String(value)))
    .join('\n')
}

/** Rows of each table that work writes. */
async function rowsOf(object: SharedLogsObject, work: () => unknown): Promise<number> {
  const { sql } = object.storage
  const exec = Object.getPrototypeOf(sql).exec
  let rows = 0
  Object.getPrototypeOf(sql).exec = function (...values: unknown[]) {
    const cursor = exec.apply(this, values)
    rows += cursor.rowsWritten
    return cursor
  }
  try {
    await work()
  } finally {
    Object.getPrototypeOf(sql).exec = exec
  }
  return rows
}

describe('logs that share commits', () => {
  it('store in one row what all have at one time, and overwrite rows that none needs', async () => {
    const log = newSharedLog()
    await runInDurableObject(log(), async (object) => {
      object.append(events(1, 1))
      object.flush()
      const rows = await rowsOf(object, () => {
        for (let sequence = 2; sequence <= 101; sequence++) {
          object.append([event(sequence)])
          object.flush()
        }
      })
      expect(rows).toBe(100)
      expect(object.commits()).toBe(101)
      for (const { log } of object.others) log.close()
      object.log.append(event(102))
      object.log.close()
      // All rows are free now.
      const other = object.open(7)
      for (let sequence = 1; sequence <= 50; sequence++) {
        other.append(event(sequence))
        other.flush()
      }
      expect(object.commits()).toBe(101)
      expect(object.rows()).toMatchObject([{ first: 1, last: 102, closes: 1 }])
    })
    expect(await readAll(await log().tailOf(0))).toBe(framesOf(events(1, 102)))
  })

  it('give readers at any place the same bytes, before and after kept events become rows', async () => {
    const log = newSharedLog()
    const readers: Array<{ after: number; reader: TailReader }> = []
    const read = async (after: number) =>
      readers.push({ after, reader: new TailReader(await log().tailOf(after)) })
    for (let sequence = 1; sequence <= 60; sequence += 3) {
      await log().append(events(sequence, sequence + 2))
      await read(sequence)
      await log().flush()
      await read(sequence + 1)
      if ([19, 40, 52].includes(sequence)) await runInDurableObject(log(), (object) => object.log.spill())
    }
    expect((await log().rows()).length).toBe(3)
    await runInDurableObject(log(), (object) => {
      object.append(events(61, 62))
      object.end([event(63)])
    })
    for (let after = 0; after <= 64; after++) {
      const due = framesOf(events(Math.min(after + 1, 63), 63))
      expect(await readAll(await log().tailOf(after))).toBe(due)
    }
    for (const { after, reader } of readers) {
      await reader.done
      expect(reader.text).toBe(framesOf(events(after + 1, 63)))
    }
  })

  it('give a reader that was between kept events all of them, after later rows as well', async () => {
    const log = newSharedLog()
    const first = Array.from({ length: 40 }, (_, index) => large(index + 1, 1_500))
    const reader = (await log().tailOf(0)).getReader()
    for (const one of first) {
      await log().append([one])
      await log().flush()
    }
    const begun = await reader.read()
    await runInDurableObject(log(), (object) => object.log.spill())
    await log().append([large(41, 100_000)])
    await log().flush()
    let text = new TextDecoder().decode(begun.value)
    const due = framesOf([...first, large(41, 100_000)])
    while (text.length < due.length) text += new TextDecoder().decode((await reader.read()).value)
    expect(text === due).toBe(true)
    await log().end([event(42)])
    expect(new TextDecoder().decode((await reader.read()).value)).toBe(framesOf([event(42)]))
  })

  it('send a row of many events in pieces, to a reader that reads slowly as well', async () => {
    const log = newSharedLog()
    const list = Array.from({ length: 300 }, (_, index) => large(index + 1, 1_000))
    const stuck = await log().tailOf(0)
    for (let from = 0; from < 300; from += 30) await log().append(list.slice(from, from + 30))
    await log().end([])
    expect(await log().rows()).toHaveLength(1)
    const replay = new TailReader(await log().tailOf(7))
    await replay.done
    expect(replay.text).toBe(framesOf(list.slice(7)))
    expect(Math.max(...replay.chunks.map(({ length }) => length))).toBeLessThanOrEqual(32 * 1024)
    expect(await readAll(stuck)).toBe(framesOf(list))
  })

  it('write large events and many kept ones to rows, none larger than the platform allows', async () => {
    const log = newSharedLog()
    const sizes = [10, 200_000, 10, 3 * MEGABYTE, 10, ...Array(60).fill(20_000), 100_000, 30_000, 10]
    const list = sizes.map((size, index) => large(index + 1, size))
    const live = new TailReader(await log().tailOf(0))
    for (const one of list) {
      await log().append([one])
      await log().flush()
    }
    await log().end([event(list.length + 1)])
    const all = framesOf([...list, event(list.length + 1)])
    await live.done
    expect(live.text).toBe(all)
    expect(await readAll(await log().tailOf(0))).toBe(all)
    expect(await readAll(await log().tailOf(3))).toBe(framesOf([...list.slice(3), event(list.length + 1)]))
    expect(Math.max(...(await log().rows()).map(({ size }) => size))).toBeLessThanOrEqual(MEGABYTE)
  })

  it('split a commit of many large parts into rows that the platform takes', async () => {
    const log = newSharedLog()
    await runInDurableObject(log(), (object) => {
      const many = Array.from({ length: 64 }, (_, index) => object.open(10 + index))
      for (const other of many) other.append(large(1, 60_000))
      object.append([event(1)])
      object.flush()
      const sizes = object.storage.sql
        .exec<{ size: number }>('SELECT length(body) AS size FROM response_commits')
        .toArray()
        .map(({ size }) => size)
      expect(sizes.length).toBeGreaterThan(3)
      expect(Math.max(...sizes)).toBeLessThanOrEqual(MEGABYTE)
      for (const other of many) expect([...other.payloads()]).toEqual([large(1, 60_000).payload])
    })
    await abortAllDurableObjects()
    await runInDurableObject(log(), (object) => {
      expect(object.commits()).toBe(0)
      for (let index = 0; index < 64; index++)
        expect([...object.open(10 + index).payloads()]).toEqual([large(1, 60_000).payload])
    })
  })

  it('keep no more in memory than 16 MB together: the largest becomes a row', async () => {
    const log = newSharedLog()
    await runInDurableObject(log(), (object) => {
      const many = Array.from({ length: 40 }, (_, index) => object.open(10 + index))
      for (let sequence = 1; sequence <= 20; sequence++) {
        for (const other of many) other.append(large(sequence, 30_000))
        object.flushAll()
      }
      const kept = many.reduce((sum, { keptBytes }) => sum + keptBytes, 0)
      expect(kept).toBeLessThanOrEqual(17 * MEGABYTE)
      expect(kept).toBeGreaterThan(8 * MEGABYTE)
      for (const other of many) expect([...other.payloads()]).toHaveLength(20)
    })
  })

  it('that nobody reads wait for a second, and for the first reader', async () => {
    const log = newSharedLog()
    await log().append([event(1, { boundary: true })])
    await expect.poll(() => log().state()).toMatchObject({ lastSequence: 1 })
    await log().append(events(2, 3))
    await new Promise((resolve) => setTimeout(resolve, 150))
    expect(await runInDurableObject(log(), (object) => object.commits())).toBe(1)
    const reader = new TailReader(await log().tailOf(0))
    await reader.until(framesOf(events(1, 3)))
    expect(await runInDurableObject(log(), (object) => object.commits())).toBe(2)
    await reader.leave()
  })
})

describe('a restart', () => {
  it('has everything that was committed, of each log, and no commits any more', async () => {
    const log = newSharedLog()
    await log().append(events(1, 20, true))
    await log().append(events(21, 25, true))
    await runInDurableObject(log(), (object) => {
      object.log.spill()
      object.append(events(26, 30, true))
      object.flush()
      object.append(events(31, 32))
    })
    await abortAllDurableObjects()
    // The first part is in its rows and in commits; the last was not stored, and no reader has got it.
    await runInDurableObject(log(), (object) => {
      expect(object.commits()).toBe(0)
      expect(object.log.lastSequence).toBe(30)
      expect(object.others.map(({ log }) => log.lastSequence)).toEqual([3, 3])
    })
    await log().append(events(31, 33, true))
    await log().end([event(34)])
    expect(await readAll(await log().tailOf(0))).toBe(framesOf(events(1, 34)))
  })

  it('can remove events that share a row with earlier ones', async () => {
    const log = newSharedLog()
    await log().append(events(1, 5, true))
    await log().append(events(6, 9, true))
    await abortAllDurableObjects()
    await runInDurableObject(log(), (object) => {
      expect(() => object.log.cut(-1)).toThrow(RangeError)
      object.log.cut(3)
      expect(object.log.lastSequence).toBe(3)
      object.append(events(4, 4))
      object.end([event(5)])
    })
    expect(await readAll(await log().tailOf(0))).toBe(framesOf(events(1, 5)))
  })
})

describe('a removed log', () => {
  it.each([
    ['few', 2, 1],
    ['many', 40, 0],
  ])('leaves no text in %s commits, and takes nothing from others', async (_, count, left) => {
    const log = newSharedLog()
    await runInDurableObject(log(), async (object) => {
      for (let sequence = 1; sequence <= count; sequence++) {
        object.append([event(sequence)])
        object.flush()
      }
      const [removed] = object.others
      removed?.log.append(event(count + 1, { word: 'secret' }))
      removed?.log.flush()
      expect(textsIn(object)).toContain('secret')
      const rows = await rowsOf(object, () => object.removeOther())
      expect(rows).toBeLessThanOrEqual(6)
      expect(textsIn(object)).not.toContain('secret')
      expect(object.commits() > 0).toBe(left > 0)
      object.append([event(count + 1)])
      object.flush()
    })
    await abortAllDurableObjects()
    await log().end([event(count + 2)])
    expect(await readAll(await log().tailOf(0))).toBe(framesOf(events(1, count + 2)))
  })
})
