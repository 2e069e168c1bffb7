import { randomUUID } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Inspection, passAllEngine } from '../../../src/dlp/inspection.ts'
import { chatCompletions } from '../../../src/gateway/protocols/chat-completions.ts'
import { messages } from '../../../src/gateway/protocols/messages.ts'
import type { Protocol } from '../../../src/gateway/protocols/protocol.ts'
import { mayPassUnread, NativePassage } from '../../../src/gateway/relay/native-passage.ts'
import { HttpStreamCaller } from '../../../src/gateway/relay/stream-caller.ts'
import { PASSED_FRAMES, StreamPipeline } from '../../../src/gateway/relay/stream-pipeline.ts'
import { type RelayEnd, relayStream } from '../../../src/gateway/relay/stream-relay.ts'
import { SseReader } from '../../../src/lib/sse.ts'
import { provideIdentityStream } from './identity-stream.ts'
import { chunks, events } from './stream-reading.ts'

provideIdentityStream()
const encoder = new TextEncoder()
const TIMES = { commit: 15_000, heartbeat: 15_000, firstEvent: 300_000, betweenEvents: 120_000, gather: 10 }
const SECRET = 'sk-provider-secret-0123456789'
const START = events({ type: 'message_start', message: { usage: { input_tokens: 1, output_tokens: 1 } } })
const TEXT = events({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'abc' } })
const STOP = events(
  { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 7 } },
  { type: 'message_stop' },
)
const PING = 'event: ping\ndata: {"type":"ping"}\n\n'

/** Lets the streams run: they take turns of the event loop, and no timers. */
async function settle(): Promise<void> {
  for (let round = 0; round < 8; round++) await new Promise((resolve) => setImmediate(resolve))
}

async function advance(milliseconds: number): Promise<void> {
  for (let left = milliseconds; left > 0; left -= 250) {
    await vi.advanceTimersByTimeAsync(Math.min(left, 250))
    await settle()
  }
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date'] })
})
afterEach(() => {
  vi.useRealTimers()
})

const EVENT_STREAM = new Response('', { headers: { 'content-type': 'text/event-stream' } })
const HOSTS = ['upstream.example']
const someProvider = () => ({
  id: randomUUID(),
  name: 'echo',
  kind: 'openai-compatible' as const,
  baseUrl: 'https://upstream.example/v1',
  credential: { parts: { secret: SECRET }, secrets: [SECRET] },
})

/** A stream that the runtime carries, with everything around it. */
async function flowing(protocol: Protocol, first: string, options = { usageRequested: true }) {
  let upstream!: ReadableStreamDefaultController<Uint8Array>
  const stream = new ReadableStream<Uint8Array>({
    start(controller) {
      upstream = controller
    },
  })
  const upstreamAbort = new AbortController()
  upstreamAbort.signal.addEventListener('abort', () => {
    try {
      upstream.error(new Error('aborted'))
    } catch {
      // It has ended.
    }
  })
  const leave = new AbortController()
  const inspection = new Inspection(passAllEngine)
  const reader = protocol.streamReader({ inspection, modelId: null, ...options })
  const frames = new SseReader()
  const pipeline = new StreamPipeline({
    frames,
    reader,
    inspection,
    converter: PASSED_FRAMES,
    passes: true,
    redact: (bytes) => bytes,
    redactFrame: (bytes) => bytes,
  })
  const caller = new HttpStreamCaller(Date.now, protocol.dialect, true)
  const written = vi.spyOn(caller, 'send')
  const provider = someProvider()
  const common = { pipeline, caller, times: TIMES, clock: Date.now, upstreamAbort }
  const passage = new NativePassage({ ...common, provider }, caller.readCopy as ReadableStream<Uint8Array>)
  const lease = { isLost: false, renew: () => {} }
  const started = relayStream({
    ...common,
    upstream: stream,
    callerSignal: leave.signal,
    lease: lease as never,
    readOn: () => (reader.usagePending ? 1_000 : 0),
    passage,
  })
  upstream.enqueue(encoder.encode(first))
  const start = await started
  if (!start.started) throw new Error('not started')
  const result = { text: '', closed: false, end: null as RelayEnd | null }
  const reading = caller.body.getReader()
  const readAll = async () => {
    const decoder = new TextDecoder()
    for (;;) {
      const { done, value } = await reading.read()
      if (done) break
      result.text += decoder.decode(value, { stream: true })
    }
    result.closed = true
  }
  readAll().catch(() => {})
  start.ended.then((end) => {
    result.end = end
  })
  await settle()
  const send = async (text: string) => {
    upstream.enqueue(encoder.encode(text))
    await settle()
  }
  return {
    upstream,
    send,
    result,
    written,
    inspection,
    reader,
    pipeline,
    provider,
    passage,
    leave,
    lease,
    upstreamAbort,
  }
}

const read = ({ inspected, uninspected, released, withheld }: Inspection['counts']) => {
  expect(inspected + uninspected).toBe(released + withheld)
  return released
}

describe('a stream that needs no change', () => {
  it('is carried without a write, and is metered and counted when it has ended', async () => {
    const run = await flowing(messages, START)
    const writes = run.written.mock.calls.length
    await run.send(TEXT + TEXT)
    expect(run.result.text).toBe(START + TEXT + TEXT)
    expect(run.reader.textBytes).toBe(0)
    await run.send(STOP)
    run.upstream.close()
    await settle()
    expect(run.result).toMatchObject({
      text: START + TEXT + TEXT + STOP,
      closed: true,
      end: { kind: 'completed' },
    })
    expect(run.written.mock.calls.length).toBe(writes)
    expect(run.reader.textBytes).toBe(6)
    expect(run.reader.usage()).toMatchObject({ final: true })
    expect(read(run.inspection.counts)).toBe(encoder.encode(START + TEXT + TEXT + STOP).length)
    expect(vi.getTimerCount()).toBe(0)
  })

  it('is read while it is carried, so that its usage is known', async () => {
    const run = await flowing(messages, START)
    await run.send(TEXT)
    await advance(1_000)
    expect(run.reader.textBytes).toBe(3)
    await run.send(TEXT + STOP)
    run.upstream.close()
    await settle()
    await advance(250)
    expect(run.result).toMatchObject({ text: START + TEXT + TEXT + STOP, closed: true })
    expect(run.reader.textBytes).toBe(6)
  })

  it('begins in the middle of a frame, when that is how the first chunk ends', async () => {
    const run = await flowing(messages, START + TEXT.slice(0, 40))
    await advance(10)
    expect(run.result.text).toBe(START + TEXT.slice(0, 40))
    await run.send(TEXT.slice(40) + STOP)
    run.upstream.close()
    await settle()
    expect(run.result).toMatchObject({ text: START + TEXT + STOP, end: { kind: 'completed' } })
    expect(run.reader.textBytes).toBe(3)
  })
})

describe('silence', () => {
  it('is kept alive by heartbeats between frames, and what follows is sent once', async () => {
    const run = await flowing(messages, START)
    await run.send(TEXT)
    await advance(17_000)
    expect(run.result.text).toBe(START + TEXT + PING)
    await advance(19_000)
    expect(run.result.text).toBe(START + TEXT + PING + PING)
    await run.send(TEXT + STOP)
    expect(run.result).toMatchObject({ text: START + TEXT + PING + PING + TEXT + STOP, closed: true })
    expect(run.result.end).toEqual({ kind: 'completed' })
  })

  it('within a frame is not interrupted', async () => {
    const run = await flowing(messages, START)
    await run.send(TEXT.slice(0, 30))
    await advance(40_000)
    expect(run.result.text).toBe(START + TEXT.slice(0, 30))
    await run.send(TEXT.slice(30))
    await advance(17_000)
    expect(run.result.text).toBe(START + TEXT + PING)
  })

  it('that lasts too long ends the stream', async () => {
    const run = await flowing(messages, START)
    await run.send(TEXT.slice(0, 30))
    await advance(123_000)
    expect(run.result.end).toMatchObject({ kind: 'failed', reason: 'timeout' })
    expect(run.result.text).toContain(`${TEXT.slice(0, 30)}\n\nevent: error\n`)
    expect(run.upstreamAbort.signal.aborted).toBe(true)
  })
})

describe('a frame that is read after it was passed', () => {
  it('ends the stream in its dialect', async () => {
    const run = await flowing(messages, START)
    const bad = 'data: {"broken\n\n'
    await run.send(bad)
    await advance(2_000)
    expect(run.result.end).toMatchObject({ kind: 'failed', reason: 'error' })
    expect(run.result.text.startsWith(`${START + bad}event: error\n`)).toBe(true)
    expect(run.upstreamAbort.signal.aborted).toBe(true)
  })

  it('is not repeated where the upstream sent its own failure', async () => {
    const run = await flowing(messages, START)
    const error = events({ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } })
    await run.send(error)
    run.upstream.close()
    await settle()
    expect(run.result.text).toBe(START + error)
    expect(run.result.end).toMatchObject({ kind: 'failed', message: 'Overloaded' })
  })

  it('ends an answer that is complete though its upstream does not end it', async () => {
    const run = await flowing(messages, START)
    await run.send(STOP)
    await advance(2_000)
    expect(run.result).toMatchObject({ text: START + STOP, closed: true, end: { kind: 'completed' } })
  })

  it('appends what is missing to an answer that ended early but is complete', async () => {
    const run = await flowing(messages, START)
    const [delta = '', stop = ''] = STOP.split(/(?<=\n\n)/)
    await run.send(delta)
    run.upstream.close()
    await settle()
    expect(run.result).toMatchObject({ text: START + delta + stop, closed: true, end: { kind: 'completed' } })
  })

  it('may hold the gateway’s credential, in two chunks', async () => {
    const run = await flowing(messages, START)
    await run.send(`: ${SECRET.slice(0, 9)}`)
    await advance(1_000)
    await run.send(`${SECRET.slice(9)}\n\n`)
    await advance(2_000)
    expect(run.passage.flags()).toEqual(['credential_echoed'])
    expect(mayPassUnread(run.provider, EVENT_STREAM, HOSTS)).toBe(false)
  })

  it('may have needed an edit', async () => {
    const run = await flowing(chatCompletions, chunks({ choices: [{ index: 0, delta: { content: 'a' } }] }))
    await run.send(chunks({ choices: [{ index: 0, delta: { content: 'b' } }], usage: null }))
    await advance(1_000)
    expect(run.pipeline.missedEdit).toBe(true)
  })
})

describe('a provider whose host is not listed', () => {
  it.each([
    ['https://upstream.example/v1', true],
    ['https://UPSTREAM.example:8443', true],
    ['https://upstream.example.attacker.test/v1', false],
    ['https://sub.upstream.example/v1', false],
    ['https://other.test/upstream.example', false],
  ])('has its streams read first: %s', (baseUrl, passes) => {
    expect(mayPassUnread({ ...someProvider(), baseUrl }, EVENT_STREAM, HOSTS)).toBe(passes)
  })
})

describe('a provider one of whose streams needed an edit', () => {
  it('has its streams read first from then on', async () => {
    const { passage, pipeline, provider } = await flowing(messages, START)
    expect(mayPassUnread(provider, EVENT_STREAM, HOSTS)).toBe(true)
    expect(passage.flags()).toEqual([])
    expect(mayPassUnread(provider, EVENT_STREAM, HOSTS)).toBe(true)
    pipeline.missedEdit = true
    expect(passage.flags()).toEqual([])
    expect(mayPassUnread(provider, EVENT_STREAM, HOSTS)).toBe(false)
  })
})

describe('a stream whose chunks need edits', () => {
  it('is written chunk by chunk', async () => {
    const withUsage = chunks({ choices: [{ index: 0, delta: { content: 'a' } }], usage: null })
    const without = chunks({ choices: [{ index: 0, delta: { content: 'a' } }] })
    const run = await flowing(chatCompletions, withUsage)
    await run.send(withUsage)
    await advance(10)
    expect(run.result.text).toBe(without + without)
    // Later streams of the provider are not branched for a pipe.
    expect(mayPassUnread(run.provider, EVENT_STREAM, HOSTS)).toBe(false)
    const unasked = await flowing(chatCompletions, without, { usageRequested: false })
    await unasked.send(chunks({ choices: [], usage: { prompt_tokens: 1, completion_tokens: 1 } }))
    expect(unasked.result.text).toBe(without)
  })
})

describe('a stream that is not piped, and was not edited', () => {
  const text = { choices: [{ index: 0, delta: { content: 'a' }, finish_reason: 'stop' }] }
  const usage = { prompt_tokens: 1, completion_tokens: 1 }
  it.each([
    ['usage in a chunk of its own', chunks(text, { choices: [], usage })],
    ['usage in the chunk with the finish reason', chunks({ ...text, usage })],
    ['a chunk about the prompt', chunks({ choices: [], prompt_filter_results: [] })],
  ])('leaves later ones of its provider to the runtime: %s', async (_case, first) => {
    const run = await flowing(chatCompletions, first)
    await run.send(chunks('[DONE]'))
    expect(run.result.text.startsWith(first)).toBe(true)
    expect(mayPassUnread(run.provider, EVENT_STREAM, HOSTS)).toBe(true)
  })
})

describe('the end of a call', () => {
  it('is the caller leaving, with the usage until then', async () => {
    const run = await flowing(messages, START)
    await run.send(TEXT)
    run.leave.abort()
    await settle()
    await advance(250)
    expect(run.result.end).toEqual({ kind: 'client_left' })
    expect(run.reader.textBytes).toBe(3)
    expect(run.upstreamAbort.signal.aborted).toBe(true)
    expect(vi.getTimerCount()).toBe(0)
  })

  it('waits for the usage of a chat whose caller leaves after the content', async () => {
    const content = chunks({ choices: [{ index: 0, delta: { content: 'a' } }] })
    const run = await flowing(chatCompletions, content)
    await run.send(chunks({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }))
    run.leave.abort()
    await settle()
    await vi.advanceTimersByTimeAsync(50)
    await run.send(chunks({ choices: [], usage: { prompt_tokens: 1, completion_tokens: 5 } }, '[DONE]'))
    expect(run.result.end).toEqual({ kind: 'client_left' })
    expect(run.reader.usage()).toMatchObject({ usage: { output: 5 }, final: true })
  })

  it('is a lease that is lost', async () => {
    const run = await flowing(messages, START)
    run.lease.isLost = true
    await advance(5_000)
    expect(run.result.end).toMatchObject({ kind: 'failed', reason: 'error' })
    expect(run.upstreamAbort.signal.aborted).toBe(true)
  })
})
