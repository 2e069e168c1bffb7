import { describe, expect, it, vi } from 'vitest'
import { Inspection } from '../../../src/dlp/inspection.ts'
import { chatCompletions } from '../../../src/gateway/protocols/chat-completions.ts'
import { messages } from '../../../src/gateway/protocols/messages.ts'
import { MAXIMUM_FRAME_BYTES } from '../../../src/lib/sse.ts'
import {
  advance,
  callerOf,
  checkEnded,
  chunkOf,
  DONE,
  HEARTBEAT,
  MESSAGE_START,
  moveTimersByHand,
  PING,
  type RelayRun,
  run,
  STOP,
  settle,
  started,
} from './relay-harness.ts'
import { events, notingEngine } from './stream-reading.ts'

moveTimersByHand()

const chatFailure = (message: string) =>
  `event: error\ndata: {"error":{"message":"${message}","type":"server_error","code":"stream_error"}}\n\n${DONE}`
const messagesFailure = (message: string) =>
  `event: error\ndata: {"type":"error","error":{"type":"api_error","message":"${message}"}}\n\n`

describe('the start', () => {
  it('is the first event, however late in its chunk', async () => {
    const relay = await run()
    await relay.upstream.send(': one\n\n', chunkOf('a').slice(0, 20))
    expect(relay.start).toBeNull()
    await relay.upstream.send(chunkOf('a').slice(20))
    expect(relay.start?.started).toBe(true)
    const caller = callerOf(relay).readAll()
    await relay.upstream.send(STOP, DONE, 'close')
    expect(caller.text).toBe(chunkOf('a') + STOP + DONE)
    expect(caller.finished).toBe(true)
    expect(relay.end).toEqual({ kind: 'completed' })
    checkEnded(relay)
  })

  it('is not a ping, which waits for the event and goes before it', async () => {
    const relay = await run({ protocol: messages })
    await relay.upstream.send(PING)
    expect(relay.start).toBeNull()
    await relay.upstream.send(MESSAGE_START)
    const caller = callerOf(relay).readAll()
    await relay.upstream.send(events({ type: 'message_stop' }), 'close')
    expect(caller.text).toBe(PING + MESSAGE_START + events({ type: 'message_stop' }))
    checkEnded(relay)
  })

  it('comes without an event after the commit time, and the event later', async () => {
    const relay = await run()
    await advance(14_999)
    expect(relay.start).toBeNull()
    await advance(1)
    expect(relay.start?.started).toBe(true)
    const caller = callerOf(relay).readAll()
    await relay.upstream.send(chunkOf('late'), STOP, DONE, 'close')
    expect(caller.text.replace(HEARTBEAT, '')).toBe(chunkOf('late') + STOP + DONE)
    expect(relay.end).toEqual({ kind: 'completed' })
    checkEnded(relay)
  })

  it('takes a whole stream in one chunk', async () => {
    const stream = chunkOf('a') + chunkOf('b') + STOP + DONE
    const relay = await run()
    await relay.upstream.send(`: c\n\n${stream}`, 'close')
    const caller = callerOf(relay).readAll()
    await settle()
    expect(caller.text).toBe(stream)
    // Events that arrived together are sent together, and never half an event.
    expect(caller.writes).toEqual([stream])
    expect(relay.end).toEqual({ kind: 'completed' })
    expect(relay.upstream.aborted).not.toHaveBeenCalled()
    checkEnded(relay)
  })

  it('writes the frames that a chunk completes, and no part of the next one', async () => {
    const relay = await run()
    await relay.upstream.send(chunkOf('a') + chunkOf('b').slice(0, 9))
    const caller = callerOf(relay).readAll()
    await relay.upstream.send(chunkOf('b').slice(9) + chunkOf('c') + STOP.slice(0, 9))
    await vi.advanceTimersByTimeAsync(10)
    await relay.upstream.send(STOP.slice(9) + DONE, 'close')
    expect(caller.writes).toEqual([chunkOf('a'), chunkOf('b') + chunkOf('c'), STOP + DONE])
    checkEnded(relay)
  })

  it('writes a single event at once, and together what follows within ten milliseconds', async () => {
    const relay = await run()
    await relay.upstream.send(chunkOf('a'))
    const caller = callerOf(relay).readAll()
    for (const text of ['b', 'c', 'd']) {
      await vi.advanceTimersByTimeAsync(3)
      await relay.upstream.send(chunkOf(text))
    }
    expect(caller.writes).toEqual([chunkOf('a')])
    await vi.advanceTimersByTimeAsync(1)
    expect(caller.writes).toEqual([chunkOf('a'), chunkOf('b') + chunkOf('c') + chunkOf('d')])
    await vi.advanceTimersByTimeAsync(10)
    await relay.upstream.send(chunkOf('e'))
    expect(caller.writes.at(-1)).toBe(chunkOf('e'))
    await relay.upstream.send(STOP + DONE, 'close')
    expect(caller.text.endsWith(chunkOf('e') + STOP + DONE)).toBe(true)
    checkEnded(relay)
  })

  it('takes a stream of single bytes', async () => {
    const stream = chunkOf('é') + STOP + DONE
    const relay = await run()
    const bytes = [...new TextEncoder().encode(stream)].map((byte) => Uint8Array.of(byte))
    await relay.upstream.send(...bytes, 'close')
    const caller = callerOf(relay).readAll()
    await settle()
    expect(caller.text).toBe(stream)
    expect(relay.end).toEqual({ kind: 'completed' })
    checkEnded(relay)
  })

  it('applies edits of the reader and counts them', async () => {
    const inspection = new Inspection(notingEngine(/secret/))
    const relay = await started({ inspection }, chunkOf('secret') + STOP + DONE)
    await relay.upstream.send('close')
    expect(relay.caller.text).toBe(chunkOf('***') + STOP + DONE)
    expect(relay.inspection.counts.withheld).toBe('secret'.length)
    checkEnded(relay)
  })
})

describe('a failure before the start', () => {
  it.each([
    ['an empty stream', ['close'], 'empty', 'The upstream sent an empty answer.'],
    ['only comments', [': a\n\n', 'close'], 'empty', 'The upstream sent an empty answer.'],
    ['an unfinished frame', ['data: {"a"', 'close'], 'empty', 'The upstream sent an empty answer.'],
    ['only the end', [DONE, 'close'], 'empty', 'The upstream sent an empty answer.'],
    ['a broken connection', [new Error('reset')], 'cut', 'The upstream broke off its answer.'],
    ['an error event', ['data: {"error":{"message":"no"}}\n\n'], 'error', 'no'],
    ['a page', ['data: <html>\n\n'], 'error', 'The upstream sent an event that is not JSON.'],
  ])('is not a stream: %s', async (_name, parts, reason, message) => {
    const relay = await run()
    await relay.upstream.send(...parts)
    expect(relay.start).toMatchObject({ started: false, end: { kind: 'failed', reason, message } })
    expect(relay.upstream.aborted).toHaveBeenCalled()
    checkEnded(relay)
  })

  it('is silence beyond the time for the first event', async () => {
    const relay = await run({ times: { firstEvent: 10_000 } })
    await advance(9_999)
    expect(relay.start).toBeNull()
    await advance(2_501)
    expect(relay.start).toEqual({
      started: false,
      end: { kind: 'failed', reason: 'timeout', message: 'The upstream stopped sending.' },
    })
    expect(relay.upstream.aborted).toHaveBeenCalled()
    expect(relay.upstream.cancelled).toBe(1)
    checkEnded(relay)
  })

  it('is a caller that leaves', async () => {
    const relay = await run()
    relay.leave.abort()
    await settle()
    expect(relay.start).toEqual({ started: false, end: { kind: 'client_left' } })
    expect(relay.upstream.aborted).toHaveBeenCalled()
    checkEnded(relay)
  })
})

describe('a failure after the start', () => {
  const dialects = [
    ['chat', chatCompletions, chunkOf('first'), chatFailure] as const,
    ['messages', messages, MESSAGE_START, messagesFailure] as const,
  ]
  const failures: Array<[string, Array<string | Error>, string, string]> = [
    ['an early end', ['close'], 'cut', 'The upstream ended its answer early.'],
    ['an early end within a frame', ['data: {"x"', 'close'], 'cut', 'The upstream ended its answer early.'],
    ['a broken connection', [new Error('reset')], 'cut', 'The upstream broke off its answer.'],
    ['an event that is not JSON', ['data: {\n\n'], 'error', 'The upstream sent an event that is not JSON.'],
    [
      'two failures in one chunk',
      ['data: {\n\ndata: {\n\n'],
      'error',
      'The upstream sent an event that is not JSON.',
    ],
  ]
  const cases = dialects.flatMap(([dialect, ...rest]) =>
    failures.map((failure) => [dialect, failure[0], failure, ...rest] as const),
  )

  it.each(cases)(
    'is told once, in the dialect of %s: %s',
    async (_dialect, _name, failure, protocol, first, told) => {
      const [, parts, reason, message] = failure
      const relay = await started({ protocol }, first)
      await relay.upstream.send(...parts)
      await settle()
      expect(relay.caller.text).toBe(first + told(message))
      expect(relay.caller.finished).toBe(true)
      expect(relay.end).toEqual({ kind: 'failed', reason, message })
      expect(relay.upstream.aborted).toHaveBeenCalled()
      checkEnded(relay)
    },
  )

  it('that the upstream sends is forwarded on messages, and expressed in the dialect on chat', async () => {
    const frame = events({ type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } })
    const relay = await started({ protocol: messages }, MESSAGE_START)
    await relay.upstream.send(frame + MESSAGE_START)
    expect(relay.caller.text).toBe(MESSAGE_START + frame)
    expect(relay.end).toMatchObject({ kind: 'failed', reason: 'error', message: 'Overloaded' })
    checkEnded(relay)
    const chat = await started()
    await chat.upstream.send(`data: {"error":{"message":"Overloaded","code":1}}\n\n${chunkOf('after')}`)
    expect(chat.caller.text).toBe(chunkOf('first') + chatFailure('Overloaded'))
    checkEnded(chat)
  })

  it('in the same chunk as the first event is sent after it', async () => {
    const relay = await run()
    await relay.upstream.send(`${chunkOf('a')}data: {\n\n`)
    const caller = callerOf(relay).readAll()
    await settle()
    expect(caller.text).toBe(chunkOf('a') + chatFailure('The upstream sent an event that is not JSON.'))
    checkEnded(relay)
  })

  it.each(dialects)('by silence between events is sent on %s', async (_name, protocol, first, told) => {
    const relay = await started({ protocol, times: { betweenEvents: 40_000, heartbeat: 1_000_000 } }, first)
    await advance(39_999)
    expect(relay.end).toBeNull()
    await advance(10_001)
    expect(relay.caller.text).toBe(first + told('The upstream stopped sending.'))
    expect(relay.end).toMatchObject({ kind: 'failed', reason: 'timeout' })
    expect(relay.upstream.cancelled).toBe(1)
    expect(relay.upstream.aborted).toHaveBeenCalled()
    checkEnded(relay)
  })

  it('by silence before any event is sent when the answer was committed', async () => {
    const relay = await run({ times: { firstEvent: 60_000, commit: 10_000, heartbeat: 1_000_000 } })
    await advance(10_000)
    const caller = callerOf(relay).readAll()
    await advance(65_000)
    expect(caller.text).toBe(chatFailure('The upstream stopped sending.'))
    expect(relay.end).toMatchObject({ kind: 'failed', reason: 'timeout' })
    checkEnded(relay)
  })

  it('of a committed answer without any event is that of an empty one', async () => {
    const relay = await run({ times: { commit: 10 } })
    await advance(10)
    const caller = callerOf(relay).readAll()
    await relay.upstream.send('close')
    expect(caller.text).toBe(chatFailure('The upstream sent an empty answer.'))
    checkEnded(relay)
  })

  it('is a frame that never ends', async () => {
    const relay = await started()
    await relay.upstream.send(`data: ${'x'.repeat(MAXIMUM_FRAME_BYTES)}`)
    expect(relay.caller.text).toBe(
      chunkOf('first') + chatFailure('The upstream sent an event that is too long.'),
    )
    checkEnded(relay)
  })

  it('of the gateway itself is logged without a text and sent without its cause', async () => {
    const log = vi.spyOn(console, 'error').mockImplementation(() => {})
    const engine = notingEngine()
    const inspection = new Inspection(engine)
    const relay = await started({ inspection })
    vi.spyOn(engine, 'inspect').mockImplementation(() => {
      throw new TypeError('engine broke')
    })
    await relay.upstream.send(chunkOf('private words'))
    expect(relay.caller.text).toBe(chunkOf('first') + chatFailure('The gateway could not read the answer.'))
    expect(log).toHaveBeenCalledOnce()
    expect(log.mock.calls[0]?.[0]).toContain('TypeError: engine broke')
    expect(log.mock.calls[0]?.[0]).not.toContain('private words')
    expect(relay.end?.kind).toBe('failed')
  })
})

describe('an end', () => {
  it('without [DONE] but with a finish reason is completed for the caller', async () => {
    const relay = await started()
    await relay.upstream.send(STOP, 'close')
    expect(relay.caller.text).toBe(chunkOf('first') + STOP + DONE)
    expect(relay.end).toEqual({ kind: 'completed' })
    checkEnded(relay)
  })

  it.each([
    ['closes late', ({ upstream }: RelayRun) => advance(500_000).then(() => upstream.send('close'))],
    ['never closes', () => advance(500_000)],
    ['breaks off', ({ upstream }: RelayRun) => upstream.send(new Error('reset'))],
    ['goes on', ({ upstream }: RelayRun) => upstream.send(chunkOf('more'), 'close')],
  ])('is an end even if the upstream then %s', async (_name, then) => {
    const relay = await started()
    await relay.upstream.send(STOP, DONE)
    await then(relay)
    expect(relay.caller.text).toBe(chunkOf('first') + STOP + DONE)
    expect(relay.caller.finished).toBe(true)
    expect(relay.end).toEqual({ kind: 'completed' })
    checkEnded(relay)
  })

  it('is recorded before the caller has read everything', async () => {
    const relay = await run()
    await relay.upstream.send(chunkOf('a') + STOP + DONE, 'close')
    expect(relay.end).toEqual({ kind: 'completed' })
    const caller = callerOf(relay).readAll()
    await settle()
    expect(caller.text).toBe(chunkOf('a') + STOP + DONE)
    checkEnded(relay)
  })
})
