import { createHmac } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { createApiKey, parseApiKey } from '../../../src/identity/api-key.ts'
import { digestsFor, digestToken } from '../../../src/identity/secret-token.ts'

/** CRC-32 (IEEE, as in zip and PNG) bit by bit, apart from the code under test. */
function crc32(text: string): number {
  let crc = 0xffffffff
  for (const byte of Buffer.from(text)) {
    crc ^= byte
    for (let bit = 0; bit < 8; bit += 1) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1
  }
  return ~crc >>> 0
}

const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const base62Value = (text: string) => [...text].reduce((sum, digit) => sum * 62 + DIGITS.indexOf(digit), 0)

const ring = new Map([
  ['new', new Uint8Array(32).fill(2)],
  ['old', new Uint8Array(32).fill(1)],
])

describe('a created key', () => {
  it('has prefix, id, 43 random characters and a checksum of all before it', () => {
    for (let round = 0; round < 200; round += 1) {
      const { id, key } = createApiKey()
      expect(key).toMatch(/^hg_[0-9A-Za-z]{12}_[0-9A-Za-z]{49}$/)
      expect(key.slice(3, 15)).toBe(id)
      expect(base62Value(key.slice(-6))).toBe(crc32(key.slice(0, -6)))
    }
  })

  it('is read back with its id', () => {
    const { id, key } = createApiKey()
    expect(parseApiKey(key)).toEqual({ id })
  })

  it('never repeats', () => {
    const made = Array.from({ length: 500 }, createApiKey)
    expect(new Set(made.map(({ id }) => id)).size).toBe(500)
    expect(new Set(made.map(({ key }) => key.slice(16, 59))).size).toBe(500)
  })
})

describe('anything else is refused', () => {
  const { key } = createApiKey()

  it('with any one character changed', () => {
    for (let position = 0; position < key.length; position += 1) {
      const other = key[position] === 'A' ? 'B' : 'A'
      expect(parseApiKey(key.slice(0, position) + other + key.slice(position + 1))).toBeNull()
    }
  })

  it.each([
    ['empty', ''],
    ['the prefix', 'hg_'],
    ['cut', key.slice(0, -1)],
    ['too long', `${key}A`],
    ['a space before', ` ${key}`],
    ['a line break after', `${key}\n`],
    ['upper case', key.toUpperCase()],
    ['with Bearer', `Bearer ${key}`],
    ["another service's key", 'sk-proj-0123456789abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklm'],
    ['a letter beyond base62', key.replace(/.$/, 'é')],
    ['very long', 'hg_'.padEnd(1_000_000, 'A')],
  ])('%s', (_name, text) => {
    expect(parseApiKey(text)).toBeNull()
  })
})

describe('digests', () => {
  it('are the HMAC-SHA-256 of the whole key, current pepper first', () => {
    const { key } = createApiKey()
    const hmac = (fill: number) => createHmac('sha256', Buffer.alloc(32, fill)).update(key).digest('hex')
    expect(digestToken(ring, key)).toEqual({ pepperId: 'new', digest: hmac(2) })
    expect(digestsFor(ring, key)).toEqual([
      { pepperId: 'new', digest: hmac(2) },
      { pepperId: 'old', digest: hmac(1) },
    ])
  })

  it('cannot be made without a pepper', () => {
    expect(() => digestToken(new Map(), createApiKey().key)).toThrow('empty')
  })
})
