import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Inspection, passAllEngine, type TextEngine } from '../../../src/dlp/inspection.ts'
import { chatCompletions } from '../../../src/gateway/protocols/chat-completions.ts'
import { messages } from '../../../src/gateway/protocols/messages.ts'
import type { Protocol } from '../../../src/gateway/protocols/protocol.ts'
import {
  type FrameConverter,
  PASSED_FRAMES,
  StreamPipeline,
} from '../../../src/gateway/relay/stream-pipeline.ts'
import { ApiError } from '../../../src/lib/api-error.ts'
import { drained } from '../../../src/lib/slices.ts'
import { type FrameReader, FrameTooLongError, SseReader } from '../../../src/lib/sse.ts'
import { SeededRandom } from '../lib/seeded-random.ts'
import { chunkOf, DONE, MESSAGE_START, STOP } from './relay-harness.ts'
import { chunks, events, notingEngine } from './stream-reading.ts'

const encoder = new TextEncoder()
const decoder = new TextDecoder()

beforeEach(() => void vi.spyOn(console, 'error').mockImplementation(() => {}))
afterEach(() => void vi.restoreAllMocks())

interface Options {
  protocol?: Protocol
  inspection?: Inspection
  frames?: FrameReader
  converter?: FrameConverter<Uint8Array>
  passes?: boolean
  redact?: (bytes: Uint8Array) => Uint8Array
}

/** A pipeline whose units are returned as text. */
class Piped {
  readonly pipeline: StreamPipeline<Uint8Array>
  readonly inspection: Inspection

  constructor(options: Options = {}) {
    const { protocol = chatCompletions, inspection = new Inspection(passAllEngine) } = options
    this.inspection = inspection
    this.pipeline = new StreamPipeline({
      frames: options.frames ?? new SseReader(),
      reader: protocol.streamReader({ inspection, modelId: null, usageRequested: true }),
      inspection,
      converter: options.converter ?? PASSED_FRAMES,
      passes: options.passes ?? true,
      redact: options.redact ?? ((bytes) => bytes),
      redactFrame: (bytes) => bytes,
    })
  }

  push(chunk: string | Uint8Array): string {
    const bytes = typeof chunk === 'string' ? encoder.encode(chunk) : chunk
    return textOf(drained(this.pipeline.push(bytes)))
  }

  close(): string {
    return textOf(drained(this.pipeline.close()))
  }

  get end() {
    return this.pipeline.end
  }

  /** After an end: inspected + uninspected = released + withheld. */
  checkCounts(): void {
    this.pipeline.abandon()
    const { inspected, uninspected, released, withheld } = this.inspection.counts
    expect(inspected + uninspected).toBe(released + withheld)
  }
}

const textOf = (units: readonly Uint8Array[]) => units.map((unit) => decoder.decode(unit)).join('')
/** Without frames of the upstream: the caller's dialect expresses it. */
const failed = (reason: string, message: string) => ({ kind: 'failed', reason, message })

describe('a chunk', () => {
  it('returns the frames that it completes, without a copy', () => {
    const piped = new Piped()
    const bytes = encoder.encode(chunkOf('a') + chunkOf('b') + chunkOf('c').slice(0, 9))
    const units = drained(piped.pipeline.push(bytes))
    expect(textOf(units)).toBe(chunkOf('a') + chunkOf('b'))
    expect(units.every(({ buffer }) => buffer === bytes.buffer)).toBe(true)
    expect(piped.push(chunkOf('c').slice(9))).toBe(chunkOf('c'))
    expect(piped.end).toBeNull()
  })

  it('starts the stream with its first valid event, which a comment or a ping is not', () => {
    const chat = new Piped()
    expect([chat.push(': hi\n\n'), chat.pipeline.started]).toEqual(['', false])
    chat.push(chunkOf('a'))
    expect(chat.pipeline.started).toBe(true)
    const ping = events({ type: 'ping' })
    const piped = new Piped({ protocol: messages })
    expect([piped.push(ping), piped.pipeline.started]).toEqual([ping, false])
    piped.push(MESSAGE_START)
    expect(piped.pipeline.started).toBe(true)
  })

  it('ends the stream where its protocol ends it, and yields nothing of what follows', () => {
    const converter = { ...PASSED_FRAMES, finish: () => [encoder.encode('over')] }
    const piped = new Piped({ converter })
    expect(piped.push(chunkOf('a') + STOP + DONE + chunkOf('b'))).toBe(`${chunkOf('a') + STOP + DONE}over`)
    expect(piped.end).toEqual({ kind: 'completed' })
    expect(piped.push(chunkOf('c'))).toBe('')
    expect(piped.close()).toBe('')
    expect(piped.end).toEqual({ kind: 'completed' })
  })

  it('does not complete a stream that fails while its last event is inspected', () => {
    const converter = { ...PASSED_FRAMES, finish: () => [encoder.encode('over')] }
    const engine: TextEngine = {
      ...passAllEngine,
      passive: false,
      *end() {
        yield
        return []
      },
    }
    const piped = new Piped({ converter, inspection: new Inspection(engine) })
    piped.push(chunkOf('a') + STOP)
    const slices = piped.pipeline.push(encoder.encode(DONE))
    expect(slices.next().done).toBe(false)
    piped.pipeline.fail('error', 'lost')
    expect(textOf(drained(slices))).not.toContain('over')
    expect(piped.end).toEqual(failed('error', 'lost'))
  })
})

describe('a failure in the middle of a chunk', () => {
  const NOT_JSON = 'The upstream sent an event that is not JSON.'

  it('keeps what came before it, and nothing after it', () => {
    const piped = new Piped()
    expect(piped.push(`${chunkOf('a') + chunkOf('b')}data: {\n\n${chunkOf('c')}`)).toBe(
      chunkOf('a') + chunkOf('b'),
    )
    expect(piped.end).toMatchObject({ kind: 'failed', reason: 'error', message: NOT_JSON })
    expect(piped.push(chunkOf('d'))).toBe('')
    piped.checkCounts()
  })

  it('is the error of a policy as it is, for an answer that has not begun', () => {
    const error = new ApiError('invalid_request', 'blocked', { code: 'dlp_blocked' })
    const engine = notingEngine()
    const piped = new Piped({ inspection: new Inspection(engine) })
    vi.spyOn(engine, 'inspect').mockImplementation(() => {
      throw error
    })
    expect(piped.push(chunkOf('a'))).toBe('')
    expect(piped.end).toMatchObject({ kind: 'failed', reason: 'error', message: 'blocked', error })
    expect(piped.pipeline.started).toBe(false)
    piped.checkCounts()
  })

  it('of the framing keeps what came before, and one of the gateway hides its cause', () => {
    const sse = new SseReader()
    const throwing = (error: Error): FrameReader => ({
      get unfinished() {
        return sse.unfinished
      },
      push: (chunk) => {
        if (decoder.decode(chunk) === 'broken') throw error
        return sse.push(chunk)
      },
    })
    const tooLong = new Piped({ frames: throwing(new FrameTooLongError()) })
    expect(tooLong.push(chunkOf('a'))).toBe(chunkOf('a'))
    expect(tooLong.push('broken')).toBe('')
    expect(tooLong.end).toEqual(failed('error', 'The upstream sent an event that is too long.'))
    expect(console.error).not.toHaveBeenCalled()
    const ours = new Piped({ frames: throwing(new TypeError('secret')) })
    expect(ours.push('broken')).toBe('')
    expect(ours.end).toEqual(failed('error', 'The gateway could not read the answer.'))
    expect(console.error).toHaveBeenCalledOnce()
  })

  it('of a converter is one of the gateway, and its input is counted', () => {
    const converter: FrameConverter<Uint8Array> = {
      convert: (frame) => {
        if (decoder.decode(frame.bytes).includes('b')) throw new TypeError('oh')
        return [frame.bytes]
      },
      finish: () => [],
    }
    const piped = new Piped({ converter, passes: false })
    expect(piped.push(`data: {"choices":[]}\n\ndata: {"b":1,"choices":[]}\n\n`)).toBe(
      'data: {"choices":[]}\n\n',
    )
    expect(piped.end).toEqual(failed('error', 'The gateway could not read the answer.'))
    piped.checkCounts()
  })
})

describe('an error of the upstream in its stream', () => {
  const frame = events({ type: 'error', error: { type: 'overloaded_error', message: 'Busy sk-secret' } })
  const redact = (bytes: Uint8Array) =>
    encoder.encode(decoder.decode(bytes).replaceAll('sk-secret', '[redacted]'))

  it('is sent in its own frame to a caller of its protocol, without the gateway’s credential', () => {
    const piped = new Piped({ protocol: messages, redact })
    expect(piped.push(MESSAGE_START + frame)).toBe(MESSAGE_START)
    expect(piped.end).toMatchObject({ kind: 'failed', reason: 'error', message: 'Busy [redacted]' })
    const { failureUnits } = piped.end as { failureUnits: Uint8Array[] }
    expect(textOf(failureUnits)).toBe(frame.replace('sk-secret', '[redacted]'))
    piped.checkCounts()
  })

  it('is left to the dialect of any other caller, and nothing of its frame is sent', () => {
    const piped = new Piped({ protocol: messages, redact, passes: false })
    piped.push(MESSAGE_START + frame)
    const body = { type: 'error', error: expect.objectContaining({ type: 'overloaded_error' }) }
    expect(piped.end).toEqual({ ...failed('error', 'Busy [redacted]'), body })
    expect(piped.inspection.counts.withheld).toBe(frame.length)
    piped.checkCounts()
  })

  it('has a message of limited length', () => {
    const piped = new Piped()
    piped.push(chunks({ error: { message: 'x'.repeat(10_000) } }))
    expect(piped.end).toMatchObject({ message: 'x'.repeat(4_096) })
  })
})

describe('the end of the upstream', () => {
  it('before its protocol ends is a cut, after an event; else the answer was empty', () => {
    const cut = new Piped()
    cut.push(chunkOf('a'))
    expect(cut.close()).toBe('')
    expect(cut.end).toEqual(failed('cut', 'The upstream ended its answer early.'))
    const empty = new Piped()
    empty.push(': hi\n\ndata: {"half')
    empty.close()
    expect(empty.end).toEqual(failed('empty', 'The upstream sent an empty answer.'))
  })

  it('that is tolerated is made whole', () => {
    const piped = new Piped()
    piped.push(chunkOf('a') + STOP)
    expect(piped.close()).toBe(DONE)
    expect(piped.end).toEqual({ kind: 'completed' })
    piped.checkCounts()
  })

  it('without an event is an end only for a caller whose stream has begun', () => {
    const early = new Piped()
    early.push(DONE)
    early.close()
    expect(early.end).toMatchObject({ kind: 'failed', reason: 'empty' })
    const committed = new Piped()
    committed.pipeline.committed = true
    expect(committed.push(DONE)).toBe(DONE)
    expect(committed.end).toEqual({ kind: 'completed' })
    const silent = new Piped()
    silent.pipeline.committed = true
    silent.close()
    expect(silent.end).toMatchObject({ kind: 'failed', reason: 'empty' })
  })

  it('that was there first stays', () => {
    const piped = new Piped()
    piped.pipeline.fail('timeout', 'late')
    piped.pipeline.fail('cut', 'later')
    expect(piped.push(chunkOf('a') + STOP + DONE)).toBe('')
    expect(piped.close()).toBe('')
    expect(piped.end).toEqual(failed('timeout', 'late'))
  })
})

describe('however a stream is cut into chunks', () => {
  const STREAMS: Array<[Protocol, string]> = [
    [chatCompletions, chunkOf('é') + chunkOf('secret one') + chunkOf('b') + STOP + DONE],
    [chatCompletions, `: hi\n\n${chunkOf('a')}data: {\n\n${chunkOf('b')}`],
    [chatCompletions, chunkOf('a') + STOP],
    [messages, MESSAGE_START + events({ type: 'ping' }, { type: 'message_stop' })],
    [
      messages,
      MESSAGE_START + events({ type: 'error', error: { type: 'x', message: 'oh' } }, { type: 'ping' }),
    ],
  ]

  it('its units, its end and its counts are the same', () => {
    for (const [protocol, stream] of STREAMS) {
      const bytes = encoder.encode(stream)
      const run = (cut: (piped: Piped) => string) => {
        const piped = new Piped({ protocol, inspection: new Inspection(notingEngine(/secret/)) })
        const text = cut(piped) + piped.close()
        piped.checkCounts()
        return { text, end: piped.end, counts: piped.inspection.counts }
      }
      const whole = run((piped) => piped.push(bytes))
      for (let seed = 0; seed < 40; seed++) {
        const random = new SeededRandom(seed)
        const pieces = run((piped) => {
          let text = ''
          for (let at = 0; at < bytes.length; ) {
            const length = 1 + random.below(random.pick([1, 4, 60]))
            text += piped.push(bytes.slice(at, at + length))
            at += length
          }
          return text
        })
        expect(pieces, `seed ${seed}`).toEqual(whole)
      }
    }
  })
})
