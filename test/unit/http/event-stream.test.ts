import { afterEach, describe, expect, it, vi } from 'vitest'
import { awaitedFrames, type OpenTail, tailFrames } from '../../../src/http/event-stream.ts'

const frame = (id: number, type = 'response.output_text.delta', data = `{"n":${id}}`) =>
  `event: ${type}\nid: ${id}\ndata: ${data}\n\n`
const COMMENT = ': keep-alive\n\n'
const bytes = (text: string) => new TextEncoder().encode(text)

/** A tail of chunks; breaks off after them, or ends. */
function tail(chunks: string[], breaksOff = false): ReadableStream<Uint8Array> {
  const left = chunks.map(bytes)
  return new ReadableStream(
    {
      pull(controller) {
        const next = left.shift()
        if (next) controller.enqueue(next)
        else if (breaksOff) controller.error(new Error('the object went away'))
        else controller.close()
      },
    },
    { highWaterMark: 0 },
  )
}

const broken = (...chunks: string[]) => tail(chunks, true)

/** Records the number after which each tail was opened. */
function opener(...tails: Array<ReadableStream<Uint8Array> | null>) {
  const opened: number[] = []
  const open: OpenTail = async (after) => {
    opened.push(after)
    return tails.shift() ?? null
  }
  return { open, opened }
}

/** The written texts, one for each write, and the error at the end. */
async function writes(stream: ReadableStream<Uint8Array>) {
  const texts: string[] = []
  try {
    for await (const chunk of stream as unknown as AsyncIterable<Uint8Array>) {
      texts.push(new TextDecoder().decode(chunk))
    }
    return { texts, error: null }
  } catch (error) {
    return { texts, error: String(error) }
  }
}

describe('whole frames to a write', () => {
  const frames = [frame(1), COMMENT, frame(2, 'response.x', '{"text":"wörld 🦉"}'), frame(3)]
  const whole = bytes(frames.join(''))

  /** In which chunk each frame ends: those that end in one are one write. */
  const chunkOfEachEnd = (size: number): number[] =>
    frames.map((_, index) => {
      const end = bytes(frames.slice(0, index + 1).join('')).length
      return Math.floor((end - 1) / size)
    })

  it.each([1, 2, 3, 7, 64, 1_000])('however it comes, in chunks of %d bytes', async (size) => {
    const chunks: Uint8Array[] = []
    for (let at = 0; at < whole.length; at += size) chunks.push(whole.slice(at, at + size))
    const source = new ReadableStream<Uint8Array>({
      start(controller) {
        for (const chunk of chunks) controller.enqueue(chunk)
        controller.close()
      },
    })
    const { texts } = await writes(tailFrames(source, 0, opener().open))
    expect(texts.join('')).toBe(frames.join(''))
    for (const text of texts) expect(text).toMatch(/\n\n$/)
    expect(texts.flatMap((text) => text.split(/(?<=\n\n)/))).toEqual(frames)
    expect(texts).toHaveLength(new Set(chunkOfEachEnd(size)).size)
  })

  it('hands a long one on in parts, with nothing lost', async () => {
    const long = frame(1, 'response.x', `{"text":"${'x'.repeat(3 * 1024 * 1024)}"}`)
    const parts = long.match(/[\s\S]{1,100000}/g) ?? []
    const { texts } = await writes(tailFrames(tail([...parts, frame(2)]), 0, opener().open))
    expect(texts.join('')).toBe(long + frame(2))
    expect(texts.length).toBeGreaterThan(2)
    expect(Math.max(...texts.map((text) => text.length))).toBeLessThan(1_300_000)
    expect(texts.at(-1)).toBe(frame(2))
  })
})

describe('a tail that breaks off', () => {
  it('is opened once more after the last event that was sent', async () => {
    const { open, opened } = opener(tail([frame(3) + frame(4)]))
    const first = broken(frame(1), frame(2) + COMMENT, frame(3).slice(0, 20))
    const { texts, error } = await writes(tailFrames(first, 0, open))
    expect(texts).toEqual([frame(1), frame(2) + COMMENT, frame(3) + frame(4)])
    expect({ opened, error }).toEqual({ opened: [2], error: null })
  })

  it('is opened after the last event of a write, whatever comments follow it', async () => {
    const { open, opened } = opener(tail([frame(4)]))
    const first = broken(frame(1) + frame(2) + COMMENT + frame(3) + COMMENT + COMMENT)
    const { texts } = await writes(tailFrames(first, 0, open))
    expect(texts.join('')).toBe(
      [1, 2].map((id) => frame(id)).join('') + COMMENT + frame(3) + COMMENT + COMMENT + frame(4),
    )
    expect(opened).toEqual([3])
  })

  it('is opened after an event that was sent in parts, and ended in a write of its own or with others', async () => {
    const long = frame(2, 'response.x', `{"text":"${'x:'.repeat(1024 * 1024)}"}`)
    const parts = [long.slice(0, 1_500_000), long.slice(1_500_000)] as const
    for (const more of ['', COMMENT, frame(3)]) {
      const { open, opened } = opener(tail([frame(9)]))
      await writes(tailFrames(broken(frame(1), parts[0], parts[1] + more), 0, open))
      expect(opened).toEqual([more === frame(3) ? 3 : 2])
    }
  })

  it('is at its end after a last event that came with others', async () => {
    const { open, opened } = opener(tail([frame(3, 'response.completed')]))
    const first = broken(frame(1) + frame(2) + frame(3, 'response.completed'))
    expect((await writes(tailFrames(first, 0, open))).error).toBeNull()
    expect(opened).toEqual([])
  })

  it.each([0, 17])('is opened again where it began (%d) when nothing was sent', async (after) => {
    const { open, opened } = opener(tail([frame(after + 1)]))
    expect((await writes(tailFrames(broken(COMMENT), after, open))).texts).toEqual([
      COMMENT,
      frame(after + 1),
    ])
    expect(opened).toEqual([after])
  })

  it('goes on within an event that was sent in part', async () => {
    const long = frame(2, 'response.x', `{"text":"${'xyz'.repeat(1024 * 1024)}"}`)
    const sent = frame(1) + long.slice(0, 2_000_001)
    const { open, opened } = opener(tail([long.slice(0, 1_500_000), long.slice(1_500_000) + frame(3)]))
    const { texts } = await writes(tailFrames(broken(sent), 0, open))
    expect(texts.join('')).toBe(frame(1) + long + frame(3))
    expect(opened).toEqual([1])
  })

  it('ends with an error when it breaks off again', async () => {
    const { open, opened } = opener(broken(frame(2)), tail([frame(3)]))
    const { texts, error } = await writes(tailFrames(broken(frame(1)), 0, open))
    expect(texts).toEqual([frame(1), frame(2)])
    expect(error).toMatch(/went away/)
    expect(opened).toEqual([1])
  })

  it('ends with an error when there is nothing to follow any more', async () => {
    const { texts, error } = await writes(tailFrames(broken(frame(1)), 0, opener(null).open))
    expect(texts).toEqual([frame(1)])
    expect(error).toMatch(/went away/)
  })

  it.each(['response.completed', 'response.failed'])('is at its end after %s', async (type) => {
    const { open, opened } = opener(tail([frame(2, type)]))
    const { texts, error } = await writes(tailFrames(broken(frame(1), frame(2, type)), 0, open))
    expect(texts).toEqual([frame(1), frame(2, type)])
    expect({ opened, error }).toEqual({ opened: [], error: null })
  })
})

it('reads nothing ahead, and lets the tail go when its reader leaves', async () => {
  const reads: string[] = []
  const source = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        reads.push('read')
        controller.enqueue(bytes(frame(reads.length)))
      },
      cancel: () => void reads.push('cancelled'),
    },
    { highWaterMark: 0 },
  )
  const reader = tailFrames(source, 0, opener().open).getReader()
  expect(reads).toEqual([])
  await reader.read()
  await reader.cancel('left')
  expect(reads).toEqual(['read', 'cancelled'])
})

it('lets a tail go that is opened when its reader has left', async () => {
  const opening = Promise.withResolvers<ReadableStream<Uint8Array>>()
  const asked = Promise.withResolvers<void>()
  const cancelled = Promise.withResolvers<void>()
  const reader = tailFrames(broken(frame(1)), 0, () => {
    asked.resolve()
    return opening.promise
  }).getReader()
  await reader.read()
  const rest = reader.read()
  await asked.promise
  await reader.cancel('left')
  expect(await rest).toMatchObject({ done: true })
  opening.resolve(new ReadableStream({ cancel: () => cancelled.resolve() }, { highWaterMark: 0 }))
  await cancelled.promise
})

describe('frames that are waited for', () => {
  afterEach(() => void vi.useRealTimers())

  it('come after comments, one in every interval', async () => {
    vi.useFakeTimers()
    const coming = Promise.withResolvers<ReadableStream<Uint8Array>>()
    const written = writes(awaitedFrames(coming.promise, 15_000))
    await vi.advanceTimersByTimeAsync(44_999)
    coming.resolve(tail([frame(1), frame(2)]))
    expect(await written).toEqual({ texts: [COMMENT, COMMENT, frame(1), frame(2)], error: null })
    expect(vi.getTimerCount()).toBe(0)
  })

  it('end with the error that keeps them from coming, whether or not anybody waits', async () => {
    const failure = Promise.reject(new Error('the response is gone'))
    const stream = awaitedFrames(failure, 15_000)
    await new Promise((resolve) => setTimeout(resolve))
    expect(await writes(stream)).toEqual({ texts: [], error: expect.stringContaining('is gone') })
  })

  it('are let go, and nothing waits any more, when their reader leaves before', async () => {
    vi.useFakeTimers()
    const coming = Promise.withResolvers<ReadableStream<Uint8Array>>()
    const cancelled = Promise.withResolvers<unknown>()
    const reader = awaitedFrames(coming.promise, 15_000).getReader()
    const read = reader.read()
    await reader.cancel('left')
    expect(await read).toMatchObject({ done: true })
    await vi.advanceTimersByTimeAsync(0)
    expect(vi.getTimerCount()).toBe(0)
    coming.resolve(new ReadableStream({ cancel: (reason) => cancelled.resolve(reason) }))
    expect(await cancelled.promise).toBe('left')
  })
})
