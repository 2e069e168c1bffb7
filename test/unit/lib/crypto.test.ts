import { describe, expect, it } from 'vitest'
import {
  currentKey,
  hmacSha256Hex,
  type KeyRing,
  seal,
  secretsEqual,
  sha256Hex,
  unseal,
} from '../../../src/lib/crypto.ts'

const key = (byte: number) => new Uint8Array(32).fill(byte)
const ring = (...entries: Array<[string, Uint8Array]>): KeyRing => new Map(entries)
const RING = ring(['one', key(1)])
const SECRET = 'sk-the secret – with umlauts äöü'

describe('seal and unseal', () => {
  it('opens what was sealed, whatever its length', () => {
    for (const secret of ['', 'x', SECRET, 'long'.repeat(5000)]) {
      expect(unseal(RING, seal(RING, secret, 'provider:1'), 'provider:1')).toBe(secret)
    }
  })

  it('never seals the same secret to the same text, and shows nothing of it', () => {
    const texts = Array.from({ length: 20 }, () => seal(RING, SECRET, 'context'))
    expect(new Set(texts).size).toBe(20)
    for (const text of texts) {
      expect(text).toMatch(/^v1\.one\.[\w-]{16}\.[\w-]+$/)
      expect(text).not.toContain(Buffer.from(SECRET).toString('base64url').slice(0, 12))
    }
  })

  it('opens only in the context it was sealed in', () => {
    const sealed = seal(RING, SECRET, 'provider:1')
    for (const context of ['provider:2', 'provider:1 ', '', 'one:provider:1']) {
      expect(() => unseal(RING, sealed, context)).toThrow()
    }
  })

  it('opens nothing that was altered, at any place', () => {
    const sealed = seal(RING, SECRET, 'context')
    const [, , iv = '', body = ''] = sealed.split('.')
    for (const [part, at] of [iv, body].flatMap((text) =>
      [...text].map((_, index) => [text, index] as const),
    )) {
      const bytes = Buffer.from(part, 'base64url')
      const index = Math.min(bytes.length - 1, Math.floor((at * 6) / 8))
      bytes[index] = (bytes[index] ?? 0) ^ 1
      expect(() => unseal(RING, sealed.replace(part, bytes.toString('base64url')), 'context')).toThrow()
    }
  })

  it('opens no cut text, not even one that leaves only a short tag', () => {
    const sealed = seal(RING, '', 'context')
    const [version, id, iv, body = ''] = sealed.split('.')
    const tag = Buffer.from(body, 'base64url')
    expect(tag).toHaveLength(16)
    for (let length = 0; length < 16; length++) {
      const cut = [version, id, iv, tag.subarray(0, length).toString('base64url')].join('.')
      expect(() => unseal(RING, cut, 'context')).toThrow()
    }
    const long = seal(RING, SECRET, 'context')
    for (let length = 0; length < long.length; length++) {
      expect(() => unseal(RING, long.slice(0, length), 'context')).toThrow()
    }
  })

  it.each([
    '',
    '.',
    'v1',
    'v1.one',
    'v1.one..',
    'v2.one.AAAA.AAAA',
    'plain text',
    'v1.unknown.AAAA.AAAA',
    'v1.__proto__.a.b',
  ])('refuses the malformed text %j', (text) => {
    expect(() => unseal(RING, text, 'context')).toThrow('sealed value cannot be opened')
  })

  it('opens old values after a rotation, seals with the new key, and not after the old key is gone', () => {
    const sealed = seal(RING, SECRET, 'context')
    const rotated = ring(['two', key(2)], ['one', key(1)])
    expect(unseal(rotated, sealed, 'context')).toBe(SECRET)
    expect(seal(rotated, SECRET, 'context')).toMatch(/^v1\.two\./)
    expect(() => unseal(ring(['two', key(2)]), sealed, 'context')).toThrow('sealed value cannot be opened')
  })

  it('binds the key id: the same key under another id does not open', () => {
    const sealed = seal(RING, SECRET, 'context')
    const renamed = sealed.replace('v1.one.', 'v1.two.')
    expect(() => unseal(ring(['two', key(1)]), renamed, 'context')).toThrow()
    expect(() => unseal(ring(['one', key(2)]), sealed, 'context')).toThrow()
  })

  it('says nothing of the secret or the key in its errors', () => {
    const attempts = [
      () => unseal(RING, seal(RING, SECRET, 'a'), 'b'),
      () => unseal(ring(['two', key(2)]), seal(RING, SECRET, 'a'), 'a'),
      () => unseal(RING, SECRET, 'a'),
    ]
    for (const attempt of attempts) {
      expect(attempt).toThrow(expect.objectContaining({ message: expect.not.stringContaining('secret') }))
    }
  })
})

describe('keys and digests', () => {
  it('takes the first key of a ring as the current one, and refuses an empty ring', () => {
    expect(currentKey(ring(['b', key(2)], ['a', key(1)])).id).toBe('b')
    expect(() => currentKey(ring())).toThrow('the key ring is empty')
    expect(() => seal(ring(), 'x', 'context')).toThrow('the key ring is empty')
  })

  it('compares secrets', () => {
    expect(secretsEqual('same', 'same')).toBe(true)
    expect(secretsEqual('', '')).toBe(true)
    for (const other of ['', 'Same', 'sam', 'same ', 'samé']) expect(secretsEqual('same', other)).toBe(false)
  })

  it('digests as the standards say', () => {
    expect(sha256Hex('abc')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad')
    expect(sha256Hex(new Uint8Array([0x61, 0x62, 0x63]))).toBe(sha256Hex('abc'))
    // RFC 4231, test case 2.
    expect(hmacSha256Hex(new TextEncoder().encode('Jefe'), 'what do ya want for nothing?')).toBe(
      '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843',
    )
  })
})
