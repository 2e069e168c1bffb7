import { abortAllDurableObjects, evictDurableObject, runInDurableObject } from 'cloudflare:test'
import { describe, expect, it } from 'vitest'
import { event, events, frameOf, framesOf, newEventLog, readAll, TailReader } from './event-log-harness.ts'

const MEGABYTE = 1024 * 1024

/** An event of more bytes than characters, the cut between two rows inside of one. */
const largeEvent = (sequence: number, megabytes: number) =>
  event(sequence, { word: `${'x'.repeat(sequence % 3)}${'€'.repeat((megabytes * MEGABYTE) / 3)}` })

describe('a log', () => {
  it('writes nothing, not even a table, before its first event', async () => {
    const log = newEventLog()
    expect(await log().state()).toEqual({ lastSequence: 0, closed: false, openTails: 0, rowsWritten: 0 })
    expect(await log().tables()).toBe(0)
    await log().append([event(1)])
    expect(await log().tables()).toBe(1)
  })

  it('gives back what was appended, from every position, the same bytes each time', async () => {
    const log = newEventLog()
    for (const [from, to] of [
      [1, 3],
      [4, 4],
      [5, 30],
    ] as const) {
      await log().append(events(from, to, true))
    }
    await log().end([event(31)])
    for (let after = 0; after < 31; after += 1) {
      expect(await readAll(await log().tailOf(after))).toBe(framesOf(events(after + 1, 31)))
    }
    expect(await readAll(await log().tailOf(-5))).toBe(framesOf(events(1, 31)))
  })

  it('sends the last event again to a reader of a closed log who has it', async () => {
    const log = newEventLog()
    await log().append(events(1, 4))
    await log().end([event(5)])
    for (const after of [5, 6, 1_000_000, Number.MAX_SAFE_INTEGER]) {
      expect(await readAll(await log().tailOf(after))).toBe(frameOf(event(5)))
    }
  })

  it('sends the last event to a reader who waited for one beyond the end', async () => {
    const log = newEventLog()
    await log().append(events(1, 4))
    const beyond = new TailReader(await log().tailOf(100))
    await log().end([event(5)])
    await beyond.done
    expect(beyond.text).toBe(frameOf(event(5)))
  })

  it('lets a reader wait for numbers that are not there yet', async () => {
    const log = newEventLog()
    await log().append([event(1)])
    const reader = new TailReader(await log().tailOf(6))
    await log().append(events(2, 9, true))
    await reader.until(framesOf(events(7, 9)))
    await log().end([event(10)])
    await reader.done
    expect(reader.text).toBe(framesOf(events(7, 10)))
  })

  it('can end without events', async () => {
    const log = newEventLog()
    const waiting = new TailReader(await log().tailOf(0))
    await log().end([])
    await waiting.done
    expect(waiting).toMatchObject({ text: '', error: undefined })
    await evictDurableObject(log())
    expect(await log().state()).toMatchObject({ lastSequence: 0, closed: true })
    expect(await readAll(await log().tailOf(3))).toBe('')
  })

  it('ends its tails when it is closed after everything was sent', async () => {
    const log = newEventLog()
    const reader = new TailReader(await log().tailOf(0))
    await log().append(events(1, 2, true))
    await reader.until(framesOf(events(1, 2)))
    await log().end([])
    await reader.done
    expect(reader).toMatchObject({ text: framesOf(events(1, 2)), error: undefined })
    expect(await log().state()).toMatchObject({ openTails: 0, closed: true })
  })

  it('refuses a number out of order, a line break, and events after its end', async () => {
    const log = newEventLog()
    await runInDurableObject(log(), (object) => {
      object.append([event(1)])
      expect(() => object.append([event(1)])).toThrow(RangeError)
      expect(() => object.append([event(3)])).toThrow(RangeError)
      expect(() => object.append([{ ...event(2), payload: '{\n}' }])).toThrow(TypeError)
      expect(() => object.append([{ ...event(2), type: 'a\rb' }])).toThrow(TypeError)
      expect(object.log.lastSequence).toBe(1)
      object.end([event(2)])
      expect(() => object.append([event(3)])).toThrow('closed')
      object.log.close()
    })
    expect(await readAll(await log().tailOf(0))).toBe(framesOf(events(1, 2)))
  })

  it('splits an event that is larger than a row, and packs the others', async () => {
    const log = newEventLog()
    const list = [event(1), largeEvent(2, 3), event(3), largeEvent(4, 0.7), largeEvent(5, 0.7), event(6)]
    await log().append(list)
    const live = new TailReader(await log().tailOf(0))
    await live.until(framesOf(list))
    const rows = await log().rows()
    expect(rows.map(({ first, last }) => [first, last])).toEqual([
      [1, 1],
      [2, 2],
      [2, 2],
      [2, 2],
      [2, 2],
      [3, 4],
      [5, 6],
    ])
    expect(Math.max(...rows.map(({ size }) => size))).toBe(MEGABYTE)
    await log().end([largeEvent(7, 2)])
    await live.done
    const all = [...list, largeEvent(7, 2)]
    expect(live.text).toBe(framesOf(all))
    for (let after = 0; after <= 6; after += 1) {
      expect(await readAll(await log().tailOf(after))).toBe(framesOf(all.slice(after)))
    }
    expect(await readAll(await log().tailOf(7))).toBe(frameOf(largeEvent(7, 2)))
    expect((await log().rows()).filter(({ closes }) => closes === 1)).toHaveLength(1)
  })

  it('gives an object that comes to life again the payloads of what is stored', async () => {
    const log = newEventLog()
    const list = [event(1), largeEvent(2, 3), event(3, { word: 'a\n\nb' }), largeEvent(4, 0.7), event(5)]
    await log().append(list)
    await evictDurableObject(log())
    const payloads = await runInDurableObject(log(), (object) => [...object.log.payloads()])
    expect(payloads).toEqual(list.map(({ payload }) => payload))
    const empty = await runInDurableObject(newEventLog()(), (object) => [...object.log.payloads()])
    expect(empty).toEqual([])
  })

  it('takes no more events when one could not be stored, and tells its readers', async () => {
    const log = newEventLog()
    await runInDurableObject(log(), (object, { storage }) => {
      object.append([event(1)])
      object.flush()
      storage.sql.exec('DROP TABLE event_segments')
      object.append([event(2)])
      expect(() => object.flush()).toThrow('event_segments')
      expect(() => object.append([event(3)])).toThrow('event_segments')
      expect(() => object.log.close()).toThrow('event_segments')
    })
    const reader = new TailReader(await log().tailOf(0))
    await reader.done
    expect(reader.error).toBeDefined()
  })
})

describe('tails', () => {
  it('get one frame in a write when a segment holds one, and never a part of one', async () => {
    const log = newEventLog()
    const reader = new TailReader(await log().tailOf(0))
    for (let sequence = 1; sequence <= 20; sequence += 1) {
      await log().append([event(sequence, { boundary: true })])
      await reader.until(framesOf(events(1, sequence)))
    }
    expect(reader.chunks).toEqual(events(1, 20).map(frameOf))
    const replay = new TailReader(await log().tailOf(0))
    await replay.until(framesOf(events(1, 20)))
    expect(replay.chunks.every((chunk) => chunk.endsWith('\n\n'))).toBe(true)
  })

  it('are freed at once when their reader leaves while it is written to', async () => {
    const log = newEventLog()
    await log().append([largeEvent(1, 3), largeEvent(2, 3)])
    const stuck = (await log().tailOf(0)).getReader()
    await stuck.read()
    expect((await log().state()).openTails).toBe(1)
    await stuck.cancel()
    await expect.poll(async () => (await log().state()).openTails).toBe(0)
  })

  it('are freed by the second event when their reader left at the live edge', async () => {
    const log = newEventLog()
    await log().append([event(1)])
    const [leaving, staying] = [new TailReader(await log().tailOf(1)), new TailReader(await log().tailOf(0))]
    await staying.until(frameOf(event(1)))
    await leaving.leave()
    // The first is taken by the platform, which finds nobody to give it to.
    await log().append([event(2, { boundary: true })])
    await staying.until(framesOf(events(1, 2)))
    await log().append([event(3, { boundary: true })])
    await expect.poll(async () => (await log().state()).openTails).toBe(1)
    await staying.until(framesOf(events(1, 3)))
  })

  it('that nobody reads hold up neither the log nor other readers', async () => {
    const log = newEventLog()
    const stuck = await Promise.all(Array.from({ length: 5 }, () => log().tailOf(0)))
    const reader = new TailReader(await log().tailOf(0))
    const list = Array.from({ length: 40 }, (_, index) => largeEvent(index + 1, 0.3))
    for (const one of list) await log().append([{ ...one, boundary: true }])
    await log().end([event(41)])
    await reader.done
    expect(reader.error).toBeUndefined()
    expect(reader.text).toBe(framesOf([...list, event(41)]))
    for (const stream of stuck) expect(await readAll(stream)).toBe(reader.text)
  })

  it('that hold too much together are ended, the slowest first', async () => {
    const log = newEventLog()
    await runInDurableObject(log(), async (object) => {
      const list = Array.from({ length: 40 }, (_, index) => largeEvent(index + 1, 0.9))
      const stuck: ReadableStream<Uint8Array>[] = []
      for (const one of list) {
        object.append([one])
        object.flush()
        stuck.push(object.tailOf(one.sequence - 1))
      }
      expect(object.log.openTails).toBeLessThan(37)
      object.end([event(41)])
      const first = new TailReader(stuck[0] as ReadableStream<Uint8Array>)
      await first.done
      expect(String(first.error)).toContain('too slow')
      expect(await readAll(stuck[39] as ReadableStream<Uint8Array>)).toBe(
        framesOf([...list.slice(39), event(41)]),
      )
      expect(await readAll(object.tailOf(0))).toBe(framesOf([...list, event(41)]))
      object.endTails()
      expect(object.log.openTails).toBe(0)
    })
  })

  it('end with an error when the log is removed, waiting or stuck', async () => {
    const log = newEventLog()
    await log().append([largeEvent(1, 3)])
    const waiting = new TailReader(await log().tailOf(1))
    const stuck = await log().tailOf(0)
    await log().endTails()
    expect(await log().state()).toMatchObject({ openTails: 0, lastSequence: 1 })
    await waiting.done
    expect(waiting.error).toBeDefined()
    await expect(readAll(stuck)).rejects.toThrow()
  })

  it('send a comment at the live edge of a silent log', async () => {
    const log = newEventLog()
    await runInDurableObject(log(), async (object) => {
      const quiet = object.newLog(20)
      quiet.append(event(1, { boundary: true }))
      const reader = quiet.tail(0).getReader()
      const next = async () => new TextDecoder().decode((await reader.read()).value)
      expect(await next()).toBe(frameOf(event(1)))
      for (let sequence = 2; sequence <= 4; sequence += 1) {
        const begun = Date.now()
        expect(await next()).toBe(': keep-alive\n\n')
        expect(await next()).toBe(': keep-alive\n\n')
        // One of them may have been on its way already.
        expect(Date.now() - begun).toBeGreaterThanOrEqual(18)
        quiet.append(event(sequence, { boundary: true }))
        let text = await next()
        while (text === ': keep-alive\n\n') text = await next()
        expect(text).toBe(frameOf(event(sequence)))
      }
      await reader.cancel()
      await expect.poll(() => quiet.openTails).toBe(0)
    })
  })
})

describe.each([
  ['abort', () => abortAllDurableObjects()],
  ['eviction', (stub: DurableObjectStub) => evictDurableObject(stub)],
])('after %s', (_name, restart) => {
  it('the log goes on after its last stored event', async () => {
    const log = newEventLog()
    await log().append(events(1, 5, true))
    await restart(log())
    expect(await log().state()).toMatchObject({ lastSequence: 5, closed: false, rowsWritten: 0 })
    const reader = new TailReader(await log().tailOf(2))
    await log().append(events(6, 7, true))
    await log().end([event(8)])
    await reader.done
    expect(reader.text).toBe(framesOf(events(3, 8)))
    await restart(log())
    expect(await log().state()).toMatchObject({ lastSequence: 8, closed: true })
    expect(await readAll(await log().tailOf(0))).toBe(framesOf(events(1, 8)))
    expect(await readAll(await log().tailOf(8))).toBe(frameOf(event(8)))
  })
})
