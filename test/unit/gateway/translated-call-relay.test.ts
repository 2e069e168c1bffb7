import { describe, expect, it, vi } from 'vitest'
import { chatCompletions } from '../../../src/gateway/protocols/chat-completions.ts'
import { messages } from '../../../src/gateway/protocols/messages.ts'
import type { Exchange, RelayOptions } from '../../../src/gateway/relay-options.ts'
import { relayStream } from '../../../src/gateway/stream-relay.ts'
import { Inspection, passAllEngine } from '../../../src/governance/dlp/inspection.ts'
import { ApiError } from '../../../src/lib/api-error.ts'
import { SseReader } from '../../../src/lib/sse.ts'
import {
  advance,
  callerOf,
  HEARTBEAT,
  moveTimersByHand,
  type RelayRun,
  settle,
  Upstream,
} from './relay-harness.ts'
import { events } from './stream-reading.ts'
import { translatedCall } from './translated-call-harness.ts'

moveTimersByHand()

/** One exchange of a messages model that runs a search. */
const exchangeOf = (text: string, reason: string) =>
  events(
    { type: 'message_start', message: { id: 'msg_1', usage: { input_tokens: 3, output_tokens: 1 } } },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } },
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason: reason }, usage: { output_tokens: 5 } },
    { type: 'message_stop' },
  )
const PAUSED = exchangeOf('one ', 'pause_turn')
const ENDED = exchangeOf('two', 'end_turn')

interface PausedRun extends RelayRun {
  /** Begins, or fails, the exchange that continues the paused turn. */
  begin: (upstream: Upstream) => Promise<void>
  fail: (error: Error) => Promise<void>
  next: ReturnType<typeof vi.fn>
}

/** A relay of a chat caller on a messages model, whose turns may pause. */
async function run(more: Partial<RelayOptions> = {}): Promise<PausedRun> {
  const upstream = new Upstream()
  const inspection = new Inspection(passAllEngine)
  const leave = new AbortController()
  const onTick = vi.fn<() => string | null>(() => null)
  const request = { web_search_options: {} }
  const call = translatedCall({ caller: 'chat_completions', upstream: 'messages', request })
  call.nextBody()
  const reader = () => messages.streamReader({ inspection, modelId: null, usageAsked: true })
  let waiting = Promise.withResolvers<Exchange>()
  const next = vi.fn(() => {
    call.nextBody()
    waiting = Promise.withResolvers<Exchange>()
    return waiting.promise
  })
  const relay: PausedRun = {
    upstream,
    inspection,
    leave,
    onTick,
    next,
    start: null,
    end: null,
    failed: null,
    begin: async (further) => {
      waiting.resolve({ upstream: further.stream, frames: new SseReader(), reader: reader() })
      await settle()
    },
    fail: async (error) => {
      waiting.reject(error)
      await settle()
    },
  }
  relayStream({
    upstream: upstream.stream,
    frames: new SseReader(),
    reader: reader(),
    dialect: chatCompletions.dialect,
    translator: {
      frame: (frame) => call.frame(frame),
      goesOn: () => call.goesOn(true),
      finish: () => call.finish(),
      next,
    },
    inspection,
    times: { commit: 15_000, heartbeat: 15_000, firstEvent: 300_000, betweenEvents: 120_000 },
    clock: () => Date.now(),
    callerSignal: leave.signal,
    abortUpstream: upstream.aborted,
    redact: (bytes) => bytes,
    onTick,
    ...more,
  })
    .then(async (start) => {
      relay.start = start
      relay.end = start.started ? await start.ended : start.end
    })
    .catch((error) => {
      relay.failed = error
    })
  await settle()
  return relay
}

const saidBy = (stream: string) =>
  [...stream.matchAll(/"content":"([^"]+)"/g)].map(([, text]) => text).join('')
const failure = (message: string) =>
  `event: error\ndata: {"error":{"message":"${message}","type":"server_error","code":"stream_error"}}\n\ndata: [DONE]\n\n`

function checkEnded(relay: PausedRun): void {
  expect(relay.failed).toBeNull()
  expect(relay.end).not.toBeNull()
  expect(vi.getTimerCount()).toBe(0)
  const { inspected, uninspected, released, withheld } = relay.inspection.counts
  expect(inspected + uninspected).toBe(released + withheld)
}

/** A relay whose first exchange has paused, and a caller who has read what it said. */
async function pausedRun(more: Partial<RelayOptions> = {}) {
  const relay = await run(more)
  await relay.upstream.send(PAUSED, 'close')
  const caller = callerOf(relay).readAll()
  await settle()
  expect(saidBy(caller.text)).toBe('one ')
  expect(relay.end).toBeNull()
  return Object.assign(relay, { caller })
}

describe('a turn that was paused', () => {
  it('goes on with the next exchange and ends with it', async () => {
    const relay = await pausedRun()
    const further = new Upstream()
    await relay.begin(further)
    await further.send(ENDED, 'close')
    expect(saidBy(relay.caller.text)).toBe('one two')
    expect(relay.caller.text.endsWith('data: [DONE]\n\n')).toBe(true)
    expect(relay.caller.finished).toBe(true)
    expect(relay.end).toEqual({ kind: 'completed' })
    expect(relay.next).toHaveBeenCalledTimes(1)
    await vi.runAllTimersAsync()
    checkEnded(relay)
  })

  it('takes nothing of what the upstream sends after its end', async () => {
    const relay = await run()
    await relay.upstream.send(`${PAUSED + ENDED}data: {"half`)
    const caller = callerOf(relay).readAll()
    await settle()
    const further = new Upstream()
    await relay.begin(further)
    // A first half of a frame that belongs to nothing must not reach the next exchange.
    await further.send(ENDED)
    expect(saidBy(caller.text)).toBe('one two')
    expect(relay.end).toEqual({ kind: 'completed' })
    await vi.runAllTimersAsync()
    checkEnded(relay)
  })

  it('keeps the connection open however long the next exchange takes to begin', async () => {
    const relay = await pausedRun()
    await advance(400_000)
    expect(relay.end).toBeNull()
    expect(relay.caller.text.split(HEARTBEAT).length - 1).toBeGreaterThanOrEqual(20)
    const further = new Upstream()
    await relay.begin(further)
    await advance(119_000)
    expect(relay.end).toBeNull()
    await advance(31_000)
    expect(relay.end).toEqual({ kind: 'failed', reason: 'timeout', message: 'The upstream stopped sending.' })
    expect(relay.caller.text.endsWith(failure('The upstream stopped sending.'))).toBe(true)
    expect(further.cancelled).toBe(1)
    checkEnded(relay)
  })

  it.each([
    [
      'an error of the upstream',
      new ApiError('upstream', 'The upstream could not be reached.'),
      'The upstream could not be reached.',
    ],
    ['a fault of our own', new Error('secret'), 'The gateway could not continue the answer.'],
  ])('ends with %s in place of the next exchange', async (_what, error, message) => {
    vi.spyOn(console, 'error').mockImplementation(() => {})
    const relay = await pausedRun()
    await relay.fail(error)
    expect(relay.caller.text.endsWith(failure(message))).toBe(true)
    expect(relay.end).toEqual({ kind: 'failed', reason: 'error', message })
    await vi.runAllTimersAsync()
    checkEnded(relay)
  })

  it('ends when the caller leaves, and what begins after that is stopped', async () => {
    for (const leaves of ['signal', 'body'] as const) {
      const relay = await pausedRun()
      if (leaves === 'signal') relay.leave.abort()
      else await relay.caller.cancel()
      await settle()
      expect(relay.upstream.aborted).toHaveBeenCalled()
      const further = new Upstream()
      await relay.begin(further)
      expect(relay.end).toEqual({ kind: 'client_left' })
      expect(further.cancelled).toBe(1)
      expect(further.asked).toBe(0)
      await vi.runAllTimersAsync()
      checkEnded(relay)
    }
  })

  it('ends when it can no longer be accounted for, and what begins after that is stopped', async () => {
    const relay = await pausedRun()
    relay.onTick.mockReturnValue('No longer.')
    await advance(15_000)
    expect(relay.upstream.aborted).toHaveBeenCalled()
    const further = new Upstream()
    await relay.begin(further)
    expect(relay.end).toEqual({ kind: 'failed', reason: 'error', message: 'No longer.' })
    expect(relay.caller.text.endsWith(failure('No longer.'))).toBe(true)
    expect(further.cancelled).toBe(1)
    checkEnded(relay)
  })

  it('that was cut off by the upstream is not continued', async () => {
    const relay = await run()
    await relay.upstream.send(PAUSED.slice(0, PAUSED.indexOf('event: message_delta')), 'close')
    const caller = callerOf(relay).readAll()
    await settle()
    expect(relay.next).not.toHaveBeenCalled()
    expect(caller.text.endsWith(failure('The upstream ended its answer early.'))).toBe(true)
    checkEnded(relay)
  })
})

describe('a translated stream that a caller does not read', () => {
  it('makes the upstream wait', async () => {
    const relay = await run()
    const long = events({
      type: 'content_block_delta',
      index: 0,
      delta: { type: 'text_delta', text: 'x'.repeat(50_000) },
    })
    await relay.upstream.send(ENDED.slice(0, ENDED.indexOf('event: content_block_delta')))
    for (let index = 0; index < 10; index++) await relay.upstream.send(long)
    const asked = relay.upstream.asked
    expect(asked).toBeLessThan(6)
    const caller = callerOf(relay).readAll()
    await settle()
    await relay.upstream.send(ENDED.slice(ENDED.indexOf('event: content_block_stop')))
    for (let round = 0; round < 20 && !caller.finished; round++) await settle()
    expect(saidBy(caller.text)).toHaveLength(500_000)
    expect(relay.end).toEqual({ kind: 'completed' })
    await vi.runAllTimersAsync()
    checkEnded(relay)
  })
})
