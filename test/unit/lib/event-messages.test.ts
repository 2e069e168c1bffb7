import { crc32 } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { EventMessageError, EventMessageSplitter } from '../../../src/lib/event-messages.ts'

/** Vectors of the format (AWS event stream encoding), as SDKs test their decoders with them. */
const VECTORS: ReadonlyArray<[name: string, hex: string, headers: Record<string, unknown>, payload: string]> =
  [
    ['an empty message', '000000100000000005c248eb7d98c8ff', {}, ''],
    ['a payload alone', '0000001d00000000fd528c5a7b27666f6f273a27626172277dc3653936', {}, "{'foo':'bar'}"],
    [
      'a text header',
      '0000003d0000002007fd83960c636f6e74656e742d74797065070010' +
        '6170706c69636174696f6e2f6a736f6e7b27666f6f273a27626172277d8d9c08b1',
      { 'content-type': 'application/json' },
      "{'foo':'bar'}",
    ],
    ['a negative byte', '0000001700000007298601580462797465' + '02ffc2f869dc', { byte: -1 }, ''],
    ['a negative long', '0000001e0000000e5d4adb8d046c6f6e6705ffffffffffffffff4bc232da', { long: -1n }, ''],
    [
      'headers of every type',
      '000000620000005203b5cb9c01300001310101320202013303000301340400000004' +
        '0135050000000000000005013606000562797465730137070004757466380138080000000000000008' +
        '01390930313233343536373839616263646566' +
        '63353671',
      {
        0: true,
        1: false,
        2: 2,
        3: 3,
        4: 4,
        5: 5n,
        6: new TextEncoder().encode('bytes'),
        7: 'utf8',
        8: 8,
        9: Buffer.from('0123456789abcdef').toString('hex'),
      },
      '',
    ],
  ]

const bytesOf = (hex: string) => new Uint8Array(Buffer.from(hex, 'hex'))
const wire = bytesOf(VECTORS.map(([, hex]) => hex).join(''))

/** A message with right checksums around any headers. */
function messageOf(headers: Uint8Array, payload: Uint8Array, lengths: { headers?: number } = {}): Uint8Array {
  const bytes = new Uint8Array(16 + headers.length + payload.length)
  const view = new DataView(bytes.buffer)
  view.setUint32(0, bytes.length)
  view.setUint32(4, lengths.headers ?? headers.length)
  view.setUint32(8, crc32(bytes.subarray(0, 8)))
  bytes.set(headers, 12)
  bytes.set(payload, 12 + headers.length)
  view.setUint32(bytes.length - 4, crc32(bytes.subarray(0, -4)))
  return bytes
}

const told = (splitter: EventMessageSplitter, chunk: Uint8Array) =>
  splitter
    .push(chunk)
    .map(({ headers, payload }) => [Object.fromEntries(headers), Buffer.from(payload).toString()])

describe('EventMessageSplitter', () => {
  it.each(VECTORS)('reads %s', (_name, hex, headers, payload) => {
    expect(told(new EventMessageSplitter(), bytesOf(hex))).toEqual([[headers, payload]])
  })

  it('reads the same whatever the chunks', () => {
    const expected = VECTORS.map(([, , headers, payload]) => [headers, payload])
    for (let size = 1; size <= wire.length; size++) {
      const splitter = new EventMessageSplitter()
      const messages: unknown[] = []
      for (let at = 0; at < wire.length; at += size)
        messages.push(...told(splitter, wire.slice(at, at + size)))
      expect(messages, `chunks of ${size}`).toEqual(expected)
      expect(splitter.unfinished).toBe(false)
    }
  })

  it('keeps a payload when its chunk is used again, and knows an unfinished message', () => {
    const splitter = new EventMessageSplitter()
    const chunk = messageOf(new Uint8Array(), new TextEncoder().encode('kept'))
    const [message] = splitter.push(chunk)
    chunk.fill(0)
    expect(Buffer.from(message?.payload ?? []).toString()).toBe('kept')
    expect(splitter.push(wire.slice(0, 5))).toEqual([])
    expect(splitter.unfinished).toBe(true)
  })

  it('refuses every message with a byte changed, before it is told', () => {
    const [, hex = ''] = VECTORS[2] ?? []
    const whole = bytesOf(hex)
    for (let at = 0; at < whole.length; at++) {
      const changed = Uint8Array.from(whole, (byte, index) => (index === at ? byte ^ 0x20 : byte))
      expect(() => new EventMessageSplitter().push(changed), `byte ${at}`).toThrow(EventMessageError)
    }
  })

  const text = (content: string) => new TextEncoder().encode(content)
  it.each([
    ['a header twice', text('\x01a\x00\x01a\x00')],
    ['a type that is not known', text('\x01a\x0a')],
    ['a header without a name', text('\x00\x00')],
    ['a name that leads out', text('\x09a')],
    ['a value that leads out', text('\x01a\x07\x00\x09x')],
    ['a number that leads out', text('\x01a\x05\x00')],
    ['a name without a value', text('\x01a')],
    ['text that is not UTF-8', Uint8Array.of(1, 0x61, 7, 0, 1, 0xff)],
  ])('refuses %s', (_name, headers) => {
    expect(() => new EventMessageSplitter().push(messageOf(headers, text('{}')))).toThrow(EventMessageError)
  })

  it.each([
    ['headers longer than the message', messageOf(new Uint8Array(), text('{}'), { headers: 3 })],
    ['headers longer than the format allows', messageOf(new Uint8Array(140_000), new Uint8Array())],
    [
      'a payload longer than the format allows',
      messageOf(new Uint8Array(), new Uint8Array(25 * 1024 * 1024)),
    ],
  ])('refuses %s, from the prelude alone', (_name, message) => {
    expect(() => new EventMessageSplitter().push(message.slice(0, 12))).toThrow('out of range')
  })
})
