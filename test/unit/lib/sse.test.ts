import { describe, expect, it } from 'vitest'
import {
  encodeFrame,
  HEARTBEAT_COMMENT,
  MAXIMUM_FRAME_BYTES,
  parseFrame,
  SseSplitter,
} from '../../../src/lib/sse.ts'
import { SeededRandom } from './seeded-random.ts'

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** Frames of a text that arrives in the given chunks. */
function framesOf(chunks: readonly Uint8Array[]): string[] {
  const splitter = new SseSplitter()
  // Decoded at the end: a frame must not change when later chunks arrive.
  const frames = chunks.flatMap((chunk) => splitter.push(chunk))
  return frames.map((frame) => decoder.decode(frame))
}

/** The shortest text up to a blank line. A CR at the very end may become a CRLF, so it ends nothing yet. */
const FRAME = /.*?(?:\r\n|\n|\r(?!\n))(?:\r\n|\n|\r(?!\n|$))/gs

const split = (text: string) => framesOf([encoder.encode(text)])

function randomChunks(random: SeededRandom, bytes: Uint8Array, longest: number): Uint8Array[] {
  const chunks: Uint8Array[] = []
  for (let at = 0; at < bytes.length; ) {
    const end = Math.min(bytes.length, at + random.below(longest + 1))
    chunks.push(bytes.slice(at, end))
    at = end
  }
  return chunks
}

describe('SseSplitter', () => {
  it('cuts at every form of blank line', () => {
    expect(split('a\n\nb\r\n\r\nc\r\rd\n\r\ne\r\n\nf\n\n')).toEqual([
      'a\n\n',
      'b\r\n\r\n',
      'c\r\r',
      'd\n\r\n',
      'e\r\n\n',
      'f\n\n',
    ])
  })

  it('keeps lines of one frame together', () => {
    expect(split('event: x\ndata: 1\r\nid: 2\rretry: 3\n\n')).toEqual([
      'event: x\ndata: 1\r\nid: 2\rretry: 3\n\n',
    ])
  })

  it('gives nothing for an unfinished frame, and keeps it for the next chunk', () => {
    const splitter = new SseSplitter()
    expect(splitter.push(encoder.encode('data: 1\n\ndata: 2\n'))).toHaveLength(1)
    expect(splitter.push(encoder.encode('\n')).map((frame) => decoder.decode(frame))).toEqual(['data: 2\n\n'])
  })

  it('waits after a CR at the end of a chunk, which may be half of a CRLF', () => {
    const splitter = new SseSplitter()
    expect(splitter.push(encoder.encode('data: 1\r\n\r'))).toEqual([])
    const frames = splitter.push(encoder.encode('\ndata: 2\r\r'))
    expect(frames.map((frame) => decoder.decode(frame))).toEqual(['data: 1\r\n\r\n'])
    expect(splitter.push(encoder.encode('d')).map((frame) => decoder.decode(frame))).toEqual(['data: 2\r\r'])
  })

  it('gives the same frames for the same bytes, whatever their chunks', () => {
    const lineEnds = ['\n', '\r\n', '\r']
    for (let seed = 1; seed <= 2000; seed++) {
      const random = new SeededRandom(seed)
      const lineEnd = () => random.pick(lineEnds)
      let text = ''
      const frames = 1 + random.below(6)
      for (let frame = 0; frame < frames; frame++) {
        for (let line = 0; line <= random.below(3); line++) {
          text += random.pick(['data: 1', 'data:é', 'event: x', ':', 'id: 7', 'data']) + lineEnd()
        }
        text += lineEnd()
      }
      const bytes = encoder.encode(text)
      const whole = framesOf([bytes])
      expect(whole, `seed ${seed}`).toEqual(text.match(FRAME) ?? [])
      expect(framesOf(randomChunks(random, bytes, 4)), `seed ${seed}`).toEqual(whole)
      expect(framesOf([...bytes].map((byte) => Uint8Array.of(byte))), `seed ${seed}`).toEqual(whole)
    }
  })

  it('finds each frame of a stream of one line end, one by one', () => {
    for (const lineEnd of ['\n', '\r\n', '\r']) {
      const frames = ['data: 1', 'event: e', ': c'].map((line) => line + lineEnd + lineEnd)
      const bytes = encoder.encode(`${frames.join('')}x`)
      for (let size = 1; size <= bytes.length; size++) {
        const chunks: Uint8Array[] = []
        for (let at = 0; at < bytes.length; at += size) chunks.push(bytes.slice(at, at + size))
        expect(framesOf(chunks)).toEqual(frames)
      }
    }
  })

  it('cuts a byte order mark off the beginning, even in pieces, and nowhere else', () => {
    const text = '\ufeffdata: 1\n\n\ufeffdata: 2\n\n'
    const expected = ['data: 1\n\n', '\ufeffdata: 2\n\n']
    expect(split(text)).toEqual(expected)
    expect(framesOf([...encoder.encode(text)].map((byte) => Uint8Array.of(byte)))).toEqual(expected)
  })

  it('does not change its input nor share its buffer with later frames', () => {
    const splitter = new SseSplitter()
    const first = encoder.encode('data: 1\n\ndata')
    const [frame] = splitter.push(first)
    splitter.push(encoder.encode(': 2\n\nda'))
    const [third] = splitter.push(encoder.encode('ta: 3\n\n'))
    expect(decoder.decode(first)).toBe('data: 1\n\ndata')
    expect(decoder.decode(frame)).toBe('data: 1\n\n')
    expect(decoder.decode(third)).toBe('data: 3\n\n')
  })

  it('refuses a frame over the limit, and takes one just under it', () => {
    const splitter = new SseSplitter()
    const half = new Uint8Array(MAXIMUM_FRAME_BYTES / 2).fill(0x61)
    splitter.push(half)
    splitter.push(half)
    expect(() => splitter.push(Uint8Array.of(0x61))).toThrow('too long')
    const other = new SseSplitter()
    other.push(half)
    expect(other.push(encoder.encode('\n\n'))).toHaveLength(1)
  })

  it('takes a long frame in small chunks without copying all of it each time', () => {
    // Quadratic work would be 64 GB of copies here, far beyond the time limit of a test.
    const splitter = new SseSplitter()
    const chunk = new Uint8Array(32).fill(0x61)
    for (let count = 0; count < 64 * 1024; count++) splitter.push(chunk)
    const [frame] = splitter.push(encoder.encode('\n\n'))
    expect(frame).toHaveLength(2 * 1024 * 1024 + 2)
  })
})

describe('parseFrame', () => {
  const parsed = (text: string) => {
    const frame = parseFrame(encoder.encode(text))
    return { event: frame.event, data: frame.data && decoder.decode(frame.data) }
  }

  it.each<[string, string | null, string | null]>([
    ['data: {"a":1}\n\n', null, '{"a":1}'],
    ['data:{"a":1}\n\n', null, '{"a":1}'],
    ['data:  two spaces\n\n', null, ' two spaces'],
    ['event: ping\ndata: {}\n\n', 'ping', '{}'],
    ['event:ping\r\ndata:{}\r\n\r\n', 'ping', '{}'],
    ['data: {}\revent: last\r\r', 'last', '{}'],
    ['id: 3\nretry: 100\ndata: 1\n\n', null, '1'],
    [': comment\n\n', null, null],
    [': comment\ndata: 1\n\n', null, '1'],
    ['retry: 100\n\n', null, null],
    ['\n\n', null, null],
    ['data\n\n', null, null],
    ['data:\n\n', null, null],
    ['data: \n\n', null, null],
    ['data:\ndata:\n\n', null, null],
    ['dataset: 1\n\n', null, null],
    [' data: 1\n\n', null, null],
    ['data: a\ndata: b\n\n', null, 'a b'],
    ['event: e\ndata: {"a":\r\ndata:1,\rdata: "漢":2}\n\n', 'e', '{"a": 1, "漢":2}'],
    ['data: {"a":\nevent: e\ndata: 1}\n\n', 'e', '{"a": 1}'],
    ['\ndata: 1\n\n', null, '1'],
    ['data: [DONE]\n\n', null, '[DONE]'],
  ])('reads %j', (text, event, data) => {
    expect(parsed(text)).toEqual({ event, data })
  })

  it('gives the place of the payload in the bytes of the frame', () => {
    for (const text of ['event: é\ndata: {"a":1}\n\n', 'data:1\r\n\r\n', 'data: {"a":\ndata: "é"}\n\n']) {
      const { bytes, data, dataStart } = parseFrame(encoder.encode(text))
      expect(data).not.toBeNull()
      if (data) expect(bytes.subarray(dataStart, dataStart + data.length)).toEqual(data)
    }
  })

  it('leaves the bytes of a frame with one data line as they came', () => {
    const bytes = encoder.encode(': c\r\nevent: x\r\ndata:  {"a":1} \r\nid: 9\r\n\r\n')
    expect(parseFrame(bytes).bytes).toBe(bytes)
  })
})

describe('encodeFrame', () => {
  it('writes what parseFrame reads', () => {
    const value = { text: 'line\nnext\r\u2028', unicode: '漢\u{1f600}' }
    const bytes = encodeFrame('kind', value)
    expect(framesOf([bytes])).toEqual([decoder.decode(bytes)])
    const frame = parseFrame(bytes)
    expect(frame.event).toBe('kind')
    expect(JSON.parse(decoder.decode(frame.data ?? new Uint8Array()))).toEqual(value)
  })

  it('writes the exact end of a chat stream', () => {
    expect(decoder.decode(encodeFrame(null, '[DONE]'))).toBe('data: [DONE]\n\n')
    expect(decoder.decode(encodeFrame('ping', { type: 'ping' }))).toBe(
      'event: ping\ndata: {"type":"ping"}\n\n',
    )
  })

  it('has a heartbeat that readers skip', () => {
    expect(parseFrame(HEARTBEAT_COMMENT)).toMatchObject({ event: null, data: null })
    expect(framesOf([HEARTBEAT_COMMENT])).toHaveLength(1)
  })
})
