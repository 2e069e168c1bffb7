import { describe, expect, it } from 'vitest'
import { TurnFailure } from '../../../src/gateway/calls/turn-failure.ts'
import { EventStreamCaller } from '../../../src/gateway/relay/event-stream-caller.ts'
import type { ModelEvent } from '../../../src/gateway/translation/model-events.ts'
import { SeededRandom } from '../lib/seeded-random.ts'

let now = 1_000
const someCaller = () => new EventStreamCaller(() => now)
const text = (text: string): ModelEvent => ({ type: 'text', choice: 0, text })

/** What is read until the end, with what ended it. */
async function readAll(caller: EventStreamCaller): Promise<{ batches: ModelEvent[][]; failure: unknown }> {
  const batches: ModelEvent[][] = []
  try {
    for await (const batch of caller) batches.push(batch)
    return { batches, failure: null }
  } catch (failure) {
    return { batches, failure }
  }
}

/** Whether a promise has settled, when all that can happen by itself has happened. */
async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  const pending = Symbol('pending')
  await new Promise((resolve) => setImmediate(resolve))
  return (await Promise.race([promise, Promise.resolve(pending)])) !== pending
}

describe('batches', () => {
  it('arrive as they were sent, those before the reader and those it waits for', async () => {
    const caller = someCaller()
    caller.send([text('a'), text('b')])
    caller.send([])
    caller.send([text('c')])
    const read = readAll(caller)
    await isSettled(read)
    caller.send([text('d')])
    caller.send([text('e')])
    caller.close()
    expect(await read).toEqual({
      batches: [[text('a'), text('b')], [text('c')], [text('d')], [text('e')]],
      failure: null,
    })
    await caller.gone
  })

  it('are the reader’s own: what the sender does with its list changes nothing', async () => {
    const caller = someCaller()
    const units = [text('a')]
    caller.send(units)
    units.push(text('b'))
    caller.close()
    expect((await readAll(caller)).batches).toEqual([[text('a')]])
  })

  it('keep their order whatever the turns of reader and sender', async () => {
    for (let seed = 0; seed < 50; seed++) {
      const random = new SeededRandom(seed)
      const caller = someCaller()
      const pause = async () => {
        for (let turns = random.below(4); turns > 0; turns--) await Promise.resolve()
      }
      const read: string[] = []
      const reading = (async () => {
        for await (const batch of caller) {
          for (const event of batch) if (event.type === 'text') read.push(event.text)
          await pause()
        }
      })()
      const sent = Array.from({ length: 30 }, (_, index) => `${index}`)
      for (const word of sent) {
        caller.send([text(word)])
        await pause()
      }
      caller.close()
      await reading
      expect(read, `seed ${seed}`).toEqual(sent)
    }
  })
})

describe('back-pressure', () => {
  it('is the batches that are not taken, with when one last was, or could have been', async () => {
    now = 1_000
    const caller = someCaller()
    now = 2_000
    for (let count = 0; count < caller.mostUnread; count++) caller.send([text('x')])
    expect([caller.unread, caller.lastSent, caller.lastTaken]).toEqual([64, 2_000, 2_000])
    const taken = caller.someRead()
    expect(await isSettled(taken)).toBe(false)
    now = 9_000
    const reader = caller[Symbol.asyncIterator]()
    await reader.next()
    await taken
    expect([caller.unread, caller.lastSent, caller.lastTaken]).toEqual([63, 2_000, 9_000])
    now = 9_500
    caller.heartbeat()
    expect([caller.unread, caller.lastSent]).toEqual([63, 9_500])
  })
})

describe('a failure', () => {
  it('comes after the last batch', async () => {
    const caller = someCaller()
    caller.send([text('a')])
    caller.send([text('b')])
    caller.fail('broke off')
    const { batches, failure } = await readAll(caller)
    expect(batches).toEqual([[text('a')], [text('b')]])
    expect(failure).toBeInstanceOf(TurnFailure)
    expect(failure).toMatchObject({ message: 'broke off', status: null, code: 'stream_error' })
    await caller.gone
  })

  it('wakes a reader that waits', async () => {
    const caller = someCaller()
    const read = readAll(caller)
    await isSettled(read)
    caller.fail('broke off')
    expect((await read).failure).toBeInstanceOf(TurnFailure)
  })
})

describe('leaving', () => {
  it('is ending the iteration early', async () => {
    const caller = someCaller()
    caller.send([text('a')])
    caller.send([text('b')])
    expect(await isSettled(caller.gone)).toBe(false)
    for await (const batch of caller) {
      expect(batch).toEqual([text('a')])
      break
    }
    await caller.gone
  })

  it('is throwing within it', async () => {
    const caller = someCaller()
    caller.send([text('a')])
    const reading = (async () => {
      for await (const _ of caller) throw new Error('oh')
    })()
    await expect(reading).rejects.toThrow('oh')
    await caller.gone
  })

  it('that the relay reports ends waits on both sides', async () => {
    const caller = someCaller()
    const waiting = caller.someRead()
    const read = readAll(caller)
    await isSettled(read)
    caller.abort()
    await waiting
    expect(await read).toEqual({ batches: [], failure: null })
  })
})
