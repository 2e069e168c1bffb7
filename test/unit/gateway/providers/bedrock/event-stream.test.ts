import { EventStreamCodec } from '@smithy/eventstream-codec'
import { describe, expect, it } from 'vitest'
import { EventStreamReader } from '../../../../../src/gateway/providers/bedrock/event-stream.ts'
import { SeededRandom } from '../../../../dlp/corpus/seeded-random.ts'

const codec = new EventStreamCodec(
  (bytes) => new TextDecoder().decode(bytes),
  (text) => new TextEncoder().encode(text),
)
type Headers = Parameters<EventStreamCodec['encode']>[0]['headers']

const encode = (headers: Headers, payload: unknown): Uint8Array =>
  codec.encode({ headers, body: new TextEncoder().encode(JSON.stringify(payload)) })

const named = (kind: 'event' | 'exception', type: string, payload: unknown): Uint8Array =>
  encode(
    {
      [`:${kind}-type`]: { type: 'string', value: type },
      ':content-type': { type: 'string', value: 'application/json' },
      ':message-type': { type: 'string', value: kind },
    },
    payload,
  )

const chunk = (event: unknown): Uint8Array =>
  named('event', 'chunk', {
    bytes: Buffer.from(typeof event === 'string' ? event : JSON.stringify(event)).toString('base64'),
    p: 'ab',
  })

/** The events of a stream, as their names and parsed data. */
function read(bytes: Uint8Array, ends: readonly number[] = []): Array<[string | null, unknown]> {
  const reader = new EventStreamReader()
  const cuts = [0, ...ends, bytes.length]
  return cuts
    .slice(1)
    .flatMap((end, index) =>
      reader
        .push(bytes.slice(cuts[index], end))
        .map(({ event, data }): [string | null, unknown] => [
          event,
          data === null ? null : JSON.parse(new TextDecoder().decode(data)),
        ]),
    )
}

const joined = (...parts: Uint8Array[]): Uint8Array => new Uint8Array(Buffer.concat(parts))

/** Messages that the official codec makes. */
const F1 = chunk({ type: 'ping' })
const F2 = named('exception', 'throttlingException', { message: 'Too many requests' })

describe('binary event streams', () => {
  it('are those of the fixtures', () => {
    expect([F1.length, F2.length]).toEqual([132, 144])
    expect(Buffer.from(F1).toString('hex', 128)).toBe('b16396a5')
  })

  const stream = joined(
    chunk({ type: 'message_start', message: { id: 'é🦉' } }),
    F1,
    chunk({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'a\n"b"' } }),
    chunk({ type: 'message_stop', 'amazon-bedrock-invocationMetrics': { inputTokenCount: 1 } }),
    named('event', 'metadata', { usage: {} }),
  )
  const events = [
    ['message_start', { type: 'message_start', message: { id: 'é🦉' } }],
    ['ping', { type: 'ping' }],
    [
      'content_block_delta',
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'a\n"b"' } },
    ],
    ['message_stop', { type: 'message_stop' }],
    ['metadata', { usage: {} }],
  ]

  it('are read as the events inside, in every split in two and by single bytes', () => {
    for (let end = 0; end <= stream.length; end++) expect(read(stream, [end])).toEqual(events)
    expect(
      read(
        stream,
        Array.from(stream, (_, index) => index),
      ),
    ).toEqual(events)
  })

  it('are read in random splits', () => {
    const random = new SeededRandom(3)
    for (let round = 0; round < 200; round++) {
      const ends = Array.from({ length: random.integer(1, 20) }, () => random.integer(0, stream.length))
      expect(
        read(
          stream,
          ends.sort((left, right) => left - right),
        ),
      ).toEqual(events)
    }
  })

  it('with any flipped bit are refused, and nothing of the message is passed', () => {
    for (let at = 0; at < F1.length; at++)
      for (let bit = 0; bit < 8; bit++) {
        const flipped = F1.slice()
        flipped[at] = (flipped[at] ?? 0) ^ (1 << bit)
        expect(() => read(joined(flipped, F1))).toThrow('damaged event')
      }
  })

  it('pass what came before damage in the same chunk, and nothing after it', () => {
    const flipped = F1.slice()
    flipped[100] = (flipped[100] ?? 0) ^ 1
    const reader = new EventStreamReader()
    expect(reader.push(joined(F1, F1, flipped, F1))).toHaveLength(2)
    expect(() => reader.push(F1)).toThrow('damaged event')
  })

  it('hold exceptions and errors as error events of the messages protocol', () => {
    const types = [
      ['throttlingException', 'rate_limit_error'],
      ['validationException', 'invalid_request_error'],
      ['serviceUnavailableException', 'overloaded_error'],
      ['modelTimeoutException', 'timeout_error'],
      ['internalServerException', 'api_error'],
      ['modelStreamErrorException', 'api_error'],
      ['constructor', 'api_error'],
    ]
    for (const [exception, type] of types) {
      const error = { type: 'error', error: { type, message: 'why' } }
      expect(read(named('exception', String(exception), { message: 'why' }))).toEqual([['error', error]])
    }
    const told = encode(
      {
        ':message-type': { type: 'string', value: 'error' },
        ':error-code': { type: 'string', value: 'InternalError' },
        ':error-message': { type: 'string', value: 'Broken' },
      },
      {},
    )
    expect(read(told)).toEqual([
      ['error', { type: 'error', error: { type: 'api_error', message: 'Broken' } }],
    ])
  })

  it('may have headers of every type, empty events and keep-alives', () => {
    const headers: Headers = {
      ':event-type': { type: 'string', value: 'chunk' },
      bool: { type: 'boolean', value: true },
      byte: { type: 'byte', value: 1 },
      short: { type: 'short', value: 2 },
      integer: { type: 'integer', value: 3 },
      binary: { type: 'binary', value: new Uint8Array(9) },
      time: { type: 'timestamp', value: new Date(0) },
      uuid: { type: 'uuid', value: '00000000-0000-4000-8000-000000000000' },
    }
    expect(read(encode(headers, { bytes: 'e30=', p: 'a' }))).toEqual([[null, null]])
    expect(read(encode(headers, {}))).toEqual([[null, null]])
    expect(read(chunk('not JSON'))).toEqual([[null, null]])
  })

  it('keep an event with line breaks between its tokens one event', () => {
    expect(read(chunk('{\n  "type": "ping",\r\n "a": 1}'))).toEqual([['ping', { type: 'ping', a: 1 }]])
  })

  it('that are too long are refused by their first bytes, before they are stored', () => {
    const large = codec.encode({ headers: {}, body: new Uint8Array(16 * 1024 * 1024) })
    expect(() => read(large.slice(0, 12))).toThrow('too long')
  })

  it('are read in linear time, however they are split', () => {
    const text = 'x'.repeat(4_000_000)
    const large = chunk({ type: 'content_block_delta', delta: { text } })
    const reader = new EventStreamReader()
    let frames = 0
    for (let at = 0; at < large.length; at += 1_000) frames += reader.push(large.slice(at, at + 1_000)).length
    expect(frames).toBe(1)
  })
})
