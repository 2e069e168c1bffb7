import { beforeAll, describe, expect, it } from 'vitest'
import { chatCompletions } from '../../../src/gateway/protocols/chat-completions.ts'
import { messages } from '../../../src/gateway/protocols/messages.ts'
import { HttpStreamCaller } from '../../../src/gateway/relay/stream-caller.ts'
import { SeededRandom } from '../lib/seeded-random.ts'
import { provideIdentityStream } from './identity-stream.ts'
import { DONE, HEARTBEAT, PING } from './relay-harness.ts'

beforeAll(provideIdentityStream)

const encoder = new TextEncoder()
const decoder = new TextDecoder()

let now = 1_000
const someCaller = (dialect = chatCompletions.dialect) => new HttpStreamCaller(() => now, dialect)

/** Pieces of one buffer, which lie next to each other. */
function piecesOf(...texts: string[]): Uint8Array[] {
  const bytes = encoder.encode(texts.join(''))
  let at = 0
  return texts.map((text) => {
    const start = at
    at += encoder.encode(text).length
    return bytes.subarray(start, at)
  })
}

/** The written units, as they arrive. The caller is closed. */
async function writesOf(caller: HttpStreamCaller): Promise<Uint8Array[]> {
  const writes: Uint8Array[] = []
  for await (const write of caller.body) writes.push(write)
  return writes
}

describe('what is sent together', () => {
  it('is one write, of the same memory where its pieces lie next to each other', async () => {
    const caller = someCaller()
    const pieces = piecesOf('a', 'bc', 'd')
    caller.send(pieces)
    caller.close()
    const writes = await writesOf(caller)
    expect(writes.map((write) => decoder.decode(write))).toEqual(['abcd'])
    expect(writes[0]?.buffer).toBe(pieces[0]?.buffer)
  })

  it.each([
    ['a gap', () => [piecesOf('a', 'b', 'c')[0], piecesOf('a', 'b', 'c')[2]]],
    ['another order', () => [...piecesOf('c', 'a')].reverse()],
    ['another buffer between', () => [piecesOf('a', 'c')[0], encoder.encode('c')]],
  ])('is one write with %s as well', async (_name, pieces) => {
    const caller = someCaller()
    caller.send(pieces() as Uint8Array[])
    caller.close()
    expect((await writesOf(caller)).map((write) => decoder.decode(write))).toEqual(['ac'])
  })

  it('keeps its order and its bytes, however it lies in memory, and its source is not changed', async () => {
    for (let seed = 0; seed < 200; seed++) {
      const random = new SeededRandom(seed)
      const buffers = [encoder.encode('0123456789'.repeat(4)), encoder.encode('abcdefghij'.repeat(4))]
      const caller = someCaller()
      let expected = ''
      const sends = 1 + random.below(4)
      for (let count = 0; count < sends; count++) {
        let end = 0
        const pieces = Array.from({ length: random.below(6) }, () => {
          const start = random.chance(0.6) ? Math.min(end, 39) : random.below(40)
          end = start + 1 + random.below(40 - start)
          return random.pick(buffers).subarray(start, end)
        })
        expected += pieces.map((piece) => decoder.decode(piece)).join('')
        caller.send(pieces)
      }
      expect(caller.unread, `seed ${seed}`).toBe(expected.length)
      caller.close()
      const told = (await writesOf(caller)).map((write) => decoder.decode(write)).join('')
      expect(told, `seed ${seed}`).toBe(expected)
      expect(decoder.decode(buffers[0])).toBe('0123456789'.repeat(4))
    }
  })

  it('is nothing where there is nothing', async () => {
    const caller = someCaller()
    caller.send([])
    expect([caller.unread, caller.lastTaken]).toEqual([0, 0])
    caller.close()
    expect(await writesOf(caller)).toEqual([])
  })
})

describe('how far a caller is behind', () => {
  it('is measured in bytes, with the time when it last took some or could have', async () => {
    now = 1_000
    const caller = someCaller()
    const reader = caller.body.getReader()
    now = 2_000
    caller.send([encoder.encode('abc')])
    caller.send([encoder.encode('de')])
    expect([caller.unread, caller.lastSent, caller.lastTaken]).toEqual([5, 2_000, 2_000])
    now = 9_000
    const taken = caller.someRead()
    await reader.read()
    await taken
    expect([caller.unread, caller.lastTaken, caller.lastSent]).toEqual([2, 9_000, 2_000])
  })
})

describe('a caller that has gone', () => {
  it('is noticed once its body is cancelled and something is sent', async () => {
    const caller = someCaller()
    await caller.body.cancel()
    caller.send([encoder.encode('a')])
    await caller.gone
  })

  it('ends waits for it, and what is sent is dropped', async () => {
    const caller = someCaller()
    caller.send([encoder.encode('a')])
    const waiting = caller.someRead()
    caller.abort()
    await waiting
    caller.send([encoder.encode('b')])
    caller.fail('oh')
    await expect(writesOf(caller)).rejects.not.toBeNull()
  })
})

describe('frames of the gateway itself', () => {
  it.each([
    ['chat', chatCompletions, HEARTBEAT, `"message":"oh"`],
    ['messages', messages, PING, `"type":"api_error"`],
  ])('are in the dialect of %s', async (_name, { dialect }, heartbeat, told) => {
    const caller = someCaller(dialect)
    caller.heartbeat()
    caller.fail('oh')
    const [beat, ...rest] = (await writesOf(caller)).map((write) => decoder.decode(write))
    expect(beat).toBe(heartbeat)
    expect(rest.join('')).toContain('event: error\n')
    expect(rest.join('')).toContain(told)
  })

  it('are replaced by the upstream’s own failure', async () => {
    const caller = someCaller()
    caller.fail('oh', piecesOf('own ', 'words', DONE))
    expect((await writesOf(caller)).map((write) => decoder.decode(write))).toEqual([`own words${DONE}`])
  })
})
