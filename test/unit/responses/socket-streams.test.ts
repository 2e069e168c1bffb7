import { describe, expect, it } from 'vitest'
import { contextStream, readContextStream } from '../../../src/responses/context/context-stream.ts'
import type { ContextItem } from '../../../src/responses/model/types.ts'
import { followedEvents, type ReopenFrames } from '../../../src/responses/sockets/followed-events.ts'
import { messageBody } from '../../../src/responses/sockets/message-body.ts'
import { SeededRandom } from '../lib/seeded-random.ts'

const encoder = new TextEncoder()
const frame = (id: number, data = `{"n":${id}}`) => `event: response.x\nid: ${id}\ndata: ${data}\n\n`

/** A stream of chunks that ends, or breaks off. */
function chunked(chunks: Uint8Array[], breaksOff = false): ReadableStream<Uint8Array> {
  const left = [...chunks]
  return new ReadableStream({
    pull(controller) {
      const next = left.shift()
      if (next) controller.enqueue(next)
      else if (breaksOff) controller.error(new Error('the object went away'))
      else controller.close()
    },
  })
}

const texts = (chunks: string[], breaksOff = false) =>
  chunked(
    chunks.map((text) => encoder.encode(text)),
    breaksOff,
  )

function cut(text: string, size: number): Uint8Array[] {
  const bytes = encoder.encode(text)
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) =>
    bytes.slice(index * size, (index + 1) * size),
  )
}

async function collected(
  frames: ReadableStream<Uint8Array>,
  after = 0,
  reopen: ReopenFrames = async () => null,
) {
  const events: Array<[number, string]> = []
  try {
    for await (const batch of followedEvents(frames, after, reopen)) {
      events.push(...batch.map(({ sequence, data }) => [sequence, data] as [number, string]))
    }
    return { events, error: null }
  } catch (error) {
    return { events, error: String(error) }
  }
}

describe('the events of a response', () => {
  const whole = [frame(1), ': keep-alive\n\n', frame(2, '{"text":"wörld 🦉"}'), frame(3)].join('')
  const expected = [
    [1, '{"n":1}'],
    [2, '{"text":"wörld 🦉"}'],
    [3, '{"n":3}'],
  ]

  it.each([1, 2, 3, 7, 16, 64, 1000])('are the same however the frames are cut: %i bytes', async (size) => {
    expect(await collected(chunked(cut(whole, size)))).toEqual({ events: expected, error: null })
  })

  it('go on after the last one when the frames break off', async () => {
    const opened: number[] = []
    const reopen: ReopenFrames = async (after) => {
      opened.push(after)
      // The last event is repeated to a client that has everything.
      return after === 1 ? texts([frame(1), frame(2)], true) : texts([frame(3)])
    }
    const { events, error } = await collected(texts([frame(1), 'event: respo'], true), 0, reopen)
    expect(events.map(([sequence]) => sequence)).toEqual([1, 2, 3])
    expect({ opened, error }).toEqual({ opened: [1, 2], error: null })
  })

  it('fail when they break off twice at the same event, or are gone', async () => {
    const twice = await collected(texts([frame(1)], true), 0, async () => texts([], true))
    expect(twice).toMatchObject({ error: 'Error: the object went away' })
    expect(await collected(texts([frame(1)], true))).toMatchObject({ error: 'Error: the object went away' })
  })

  it('cancel the frames when nobody takes them any more', async () => {
    let cancelled = false
    const frames = new ReadableStream<Uint8Array>({
      pull: (controller) => controller.enqueue(encoder.encode(frame(1))),
      cancel: () => {
        cancelled = true
      },
    })
    for await (const _ of followedEvents(frames, 0, async () => null)) break
    expect(cancelled).toBe(true)
  })
})

describe('a message as a body', () => {
  it.each([0, 1, 65_535, 65_536, 65_537, 200_000])('has all characters: %i before a pair', async (count) => {
    const text = `${'é'.repeat(count)}🦉 and so on ${'🦉'.repeat(40_000)}`
    expect(await new Response(messageBody(text)).text()).toBe(text)
  })
})

describe('a context between two objects', () => {
  const random = new SeededRandom(7)
  const items: ContextItem[] = [0, 1, 70_000, 300_000, 5].map((length, index) => ({
    id: `msg_${index}`,
    type: index % 2 === 0 ? 'message' : 'function_call',
    role: index % 2 === 0 ? 'user' : null,
    callId: index % 2 === 0 ? null : `call_é_${index}`,
    bytes: Uint8Array.from({ length }, () => Math.floor(random.fraction() * 256)),
  }))
  async function* iterate(): AsyncGenerator<ContextItem> {
    yield* items
  }
  const tooLong = () => new Error('too long')

  it('has the same items', async () => {
    expect(await readContextStream(contextStream(iterate()), 1_000_000, tooLong)).toEqual(items)
  })

  it('has the same items however the bytes are cut', async () => {
    const bytes = new Uint8Array(await new Response(contextStream(iterate())).arrayBuffer())
    for (const size of [1000, 65_536, bytes.length]) {
      const parts = Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) =>
        bytes.slice(index * size, (index + 1) * size),
      )
      expect(await readContextStream(chunked(parts), 1_000_000, tooLong)).toEqual(items)
    }
  })

  it('is refused when it is too long, and when it breaks off', async () => {
    await expect(readContextStream(contextStream(iterate()), 300_000, tooLong)).rejects.toThrow('too long')
    const bytes = new Uint8Array(await new Response(contextStream(iterate())).arrayBuffer())
    for (const length of [3, 12, 100, bytes.length - 1]) {
      await expect(readContextStream(chunked([bytes.slice(0, length)]), 1_000_000, tooLong)).rejects.toThrow()
    }
  })
})
