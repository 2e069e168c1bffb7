import { describe, expect, it } from 'vitest'
import { detectorOf } from '../../../src/dlp/policy/profile-detector.ts'
import { dataUrlHead, encodedReplacement, isEncodedText } from '../../../src/dlp/source/encoded-text.ts'
import { TextStream } from '../../../src/dlp/stream/text-stream.ts'
import { drained } from '../../../src/lib/slices.ts'

const CODE = 'KX-1234-567890'
const detector = detectorOf({
  direction: 'request',
  version: '1',
  rules: [{ detector: 'code', minimumScore: 0, action: 'redact' }],
  custom: [{ id: 'code', kind: 'pattern', pattern: 'KX-[0-9]{4}-[0-9]{6}', score: 1 }],
  uninspectable: 'allow',
})

const encode = (text: string) => new TextEncoder().encode(text)
const base64 = (text: string | Uint8Array) => Buffer.from(text as string).toString('base64')

function replaced(contents: string) {
  const bytes = encode(contents)
  const replacement = drained(encodedReplacement(bytes, new TextStream(detector, () => '[ß]')))
  if (!replacement) return null
  expect(replacement.released + replacement.withheld).toBe(bytes.length)
  return Buffer.from(replacement.contents).toString('latin1')
}

describe('a text in base64', () => {
  it.each([0, 1, 2, 3, 4, 5])('is edited in place, whatever its length is (%i)', (length) => {
    const text = `${'é'.repeat(length)}${CODE} 🌍${'x'.repeat(length)}`
    const expected = base64(text.replace(CODE, '[ß]'))
    expect(replaced(base64(text))).toBe(expected)
    expect(replaced(base64(text).replaceAll('/', '\\/'))).toBe(expected)
    expect(replaced(base64(text).replaceAll('=', ''))).toBe(expected)
    expect(replaced(Buffer.from(text).toString('base64url'))).toBe(expected)
    expect(replaced(`data:text\\/plain;base64,${base64(text)}`)).toBe(`data:text\\/plain;base64,${expected}`)
  })

  it('may be long, with characters and values across every cut', () => {
    const text = Array.from({ length: 60_000 }, (_value, index) =>
      index % 997 === 0 ? CODE : `🌍é${index} `,
    ).join('')
    expect(replaced(base64(text))).toBe(base64(text.replaceAll(CODE, '[ß]')))
    const lines = base64(text).replace(/.{76}/g, '$&\\r\\n')
    expect(replaced(lines)).toBe(base64(text.replaceAll(CODE, '[ß]')))
    expect(replaced(base64(text.replaceAll(CODE, '')))).toBeNull()
  })

  it('keeps its byte order mark', () => {
    expect(replaced(base64(`\ufeff${CODE}`))).toBe(base64('\ufeff[ß]'))
  })

  it.each<[string, Uint8Array | string, boolean]>([
    ['text', 'plain Ä', true],
    ['nothing', '', true],
    ['a picture', Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0xff), false],
    ['a character that is cut off', Uint8Array.of(0x41, 0xc3), false],
    ['text with other data far behind', `${'a'.repeat(400_000)}`, true],
    ['other data far behind', Buffer.concat([Buffer.alloc(400_000, 'a'), Buffer.of(0xff)]), false],
  ])('%s', (_name, contents, expected) => {
    expect(drained(isEncodedText(encode(base64(contents))))).toBe(expected)
  })

  it('the head of a data URL has no room for words', () => {
    const head = (text: string) => dataUrlHead(encode(`${text}AAAA`))
    for (const text of ['data:;base64,', 'data:text/csv;base64,', 'DATA:text/x;charset=UTF-8;base64,'])
      expect(head(text)).toBe(text.length)
    for (const text of [
      'data:text/4111111111111111;base64,',
      'data:text/plain;name=4111 1111;base64,',
      'data:,x;base64,',
    ]) {
      expect(head(text)).toBe(0)
    }
  })
})
