import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { GatheringReader } from '../../../src/gateway/relay/gathering-reader.ts'
import { advance, settle } from './relay-harness.ts'

/** The reader with a clock of the test. In the runtime, with its own streams: `test/local/gathering-reader.test.ts`. */

const encoder = new TextEncoder()
const decoder = new TextDecoder()
const GATHER = 10

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] })
  vi.stubGlobal('IdentityTransformStream', Sink)
})
afterEach(() => {
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

/** Bytes of one branch of a stream of the runtime: a read takes all that has arrived, as its readers do. */
class Branch {
  cancelled = false
  #bytes: number[] = []
  #isOver = false
  #failure: Error | null = null
  #wake: () => void = () => {}

  push(bytes: Uint8Array): void {
    this.#bytes.push(...bytes)
    this.#wake()
  }

  end(failure: Error | null): void {
    this.#isOver = true
    this.#failure = failure
    this.#wake()
  }

  async readAtLeast(least: number, space: Uint8Array): Promise<{ done: boolean; value: Uint8Array }> {
    while (this.#bytes.length < least && !this.#isOver && !this.cancelled) {
      await new Promise<void>((resolve) => (this.#wake = resolve))
    }
    const taken = this.#bytes.splice(0, space.length)
    if (taken.length === 0 && this.#failure) throw this.#failure
    space.set(taken)
    return { done: taken.length === 0, value: space.subarray(0, taken.length) }
  }

  read = (space: Uint8Array) => this.readAtLeast(1, space)

  async cancel(): Promise<void> {
    this.cancelled = true
    this.#wake()
  }
}

/** What a branch is pumped into. */
class Sink {
  readonly writable = new Branch()
  readonly readable = { getReader: () => this.writable }
}

/** A stream with readers as those of the runtime: a chunk for a read, and branches that gather. */
function runtimeStream() {
  const branches = [new Branch(), new Branch()]
  const chunks: Uint8Array[] = []
  let wake = () => {}
  let isBranched = false
  const ended: Array<Error | null> = []
  const [pumped, read] = branches as [Branch, Branch]
  const chunk = async () => {
    while (chunks.length === 0 && ended.length === 0) await new Promise<void>((resolve) => (wake = resolve))
    const value = chunks.shift()
    if (value) return { done: false, value }
    if (ended[0]) throw ended[0]
    return { done: true, value: undefined }
  }
  const stream = {
    getReader: (options?: { mode: 'byob' }) => ({
      releaseLock: () => {},
      ...(options ? { readAtLeast: () => {} } : { read: chunk, cancel: async () => {} }),
    }),
    tee() {
      isBranched = true
      for (const branch of branches) for (const bytes of chunks) branch.push(bytes)
      chunks.splice(0)
      return [{ pipeTo: (sink: Branch) => pump(pumped, sink) }, { getReader: () => read }]
    },
  }
  /** Takes what arrives, as the pump of the runtime does. */
  const pump = async (branch: Branch, sink: Branch): Promise<void> => {
    const next = () => branch.read(new Uint8Array(1_000))
    for (let read = await next(); !read.done; read = await next()) sink.push(read.value)
    sink.end(null)
  }
  return {
    stream: stream as unknown as ReadableStream<Uint8Array>,
    send(text: string) {
      const bytes = encoder.encode(text)
      if (isBranched) for (const branch of branches) branch.push(bytes)
      else chunks.push(bytes)
      wake()
    },
    end(failure: Error | null = null) {
      ended.push(failure)
      for (const branch of branches) branch.end(failure)
      wake()
    },
  }
}

/** Reads a stream to its end. */
function reading(stream: ReadableStream<Uint8Array>) {
  const reader = new GatheringReader(stream, GATHER, Date.now)
  const seen = { texts: [] as string[], end: '' }
  const run = async () => {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      seen.texts.push(decoder.decode(value))
    }
  }
  run().then(
    () => (seen.end = 'ended'),
    (error: Error) => (seen.end = error.message),
  )
  return { reader, seen }
}

/** Sends single letters, so many milliseconds apart. */
async function sendLetters(
  { send }: { send: (text: string) => void },
  letters: string,
  apart: number,
): Promise<void> {
  for (const letter of letters) {
    send(letter)
    await settle()
    await advance(apart)
  }
}

describe('chunks of a stream', () => {
  it('are read one by one below three in the gathering time', async () => {
    const upstream = runtimeStream()
    const { reader, seen } = reading(upstream.stream)
    await sendLetters(upstream, 'abcdefgh', 4)
    expect(seen.texts).toEqual(['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'])
    expect(reader.gathers).toBe(false)
  })

  it('are gathered from the first quick ones on, and nothing waits longer than the gathering time', async () => {
    const upstream = runtimeStream()
    const { reader, seen } = reading(upstream.stream)
    await sendLetters(upstream, 'abcd', 2)
    expect(seen.texts).toEqual(['a', 'b', 'c', 'd'])
    expect(reader.gathers).toBe(true)
    // The stall begins after "g".
    await sendLetters(upstream, 'efg', 2)
    expect(seen.texts).toEqual(['a', 'b', 'c', 'd'])
    await advance(GATHER - 8)
    expect(seen.texts).toEqual(['a', 'b', 'c', 'd', 'efg'])
    await advance(5_000)
    upstream.send('g')
    await settle()
    expect(seen.texts.at(-1)).toBe('g')
  })

  it.each([
    ['end', null, 'ended'],
    ['failure', new Error('cut'), 'cut'],
  ])('wait for no time at the %s of their stream, and none is lost', async (_name, failure, end) => {
    const upstream = runtimeStream()
    const { seen } = reading(upstream.stream)
    await sendLetters(upstream, 'abcde', 2)
    upstream.send('f')
    upstream.end(failure)
    await settle()
    expect(seen).toEqual({ texts: ['a', 'b', 'c', 'd', 'ef'], end })
    expect(vi.getTimerCount()).toBe(0)
  })
})

describe('a stream that is not of the runtime', () => {
  it('is read chunk by chunk, however quick it is', async () => {
    let controller!: ReadableStreamDefaultController<Uint8Array>
    const stream = new ReadableStream<Uint8Array>({
      start(started) {
        controller = started
      },
    })
    const { reader, seen } = reading(stream)
    for (const letter of 'abcdef') controller.enqueue(encoder.encode(letter))
    controller.close()
    await settle()
    expect(seen).toEqual({ texts: ['a', 'b', 'c', 'd', 'e', 'f'], end: 'ended' })
    expect(reader.gathers).toBe(false)
  })
})

describe('a reader', () => {
  it('hands its stream back while it reads chunk by chunk, and not afterwards', async () => {
    const slow = runtimeStream()
    expect(new GatheringReader(slow.stream, GATHER, Date.now).release()).toBe(true)
    const quick = runtimeStream()
    const { reader } = reading(quick.stream)
    await sendLetters(quick, 'abcde', 1)
    expect(reader.release()).toBe(false)
  })
})
