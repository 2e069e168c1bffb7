import { describe, expect, it } from 'vitest'
import { redactCredential, withoutCredential } from '../../../src/lib/secret-spellings.ts'

const KEY = 'sk-our-provider-key+/=$&'
const encoder = new TextEncoder()

describe('redactCredential', () => {
  const redacted = (body: Uint8Array, credential = KEY) =>
    Buffer.from(redactCredential(body, { secrets: [credential] }))

  it('cuts every occurrence, and leaves all other bytes as they are', () => {
    const noise = Uint8Array.from({ length: 256 }, (_, byte) => byte)
    const body = Buffer.concat([noise, encoder.encode(KEY), noise, encoder.encode(KEY), noise])
    const cut = encoder.encode('[redacted]')
    expect(redacted(body)).toEqual(Buffer.concat([noise, cut, noise, cut, noise]))
  })

  it('returns the very same bytes when there is nothing to cut', () => {
    const body = encoder.encode('{"error":"Incorrect API key provided: sk-***"}')
    expect(redactCredential(body, { secrets: [KEY] })).toBe(body)
    expect(redactCredential(body, { secrets: [''] })).toBe(body)
    expect(redactCredential(new Uint8Array(), { secrets: [KEY] })).toHaveLength(0)
  })

  it('reads only its own bytes of a larger buffer', () => {
    const large = encoder.encode(`before ${KEY} |${KEY}| after ${KEY}`)
    const start = large.indexOf(0x7c)
    const view = large.subarray(start, start + KEY.length + 2)
    expect(redacted(view).toString()).toBe('|[redacted]|')
    expect(new TextDecoder().decode(large)).toContain(`|${KEY}|`)
  })

  it('finds a credential that is not ASCII', () => {
    expect(redacted(encoder.encode('x schlüssel-漢 y'), 'schlüssel-漢').toString()).toBe('x [redacted] y')
  })

  const awkward = ['sk-a/b+c=d&e"f\\g-0123456789', 'sk-schlüssel-漢/0123456789', KEY, 'sk-plain-0123456789']
  const json = (text: string) => JSON.stringify(text).slice(1, -1)
  const upper = (text: string) =>
    text.replace(/\\u[0-9a-f]{4}/g, (each) => `\\u${each.slice(2).toUpperCase()}`)
  const ascii = (text: string, more = /[^\0-\x7f]/g) =>
    json(text).replace(more, (each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, '0')}`)
  const spellings: Array<[string, (key: string) => string]> = [
    ['JSON', json],
    ['JSON with escaped slashes', (key) => json(key).replaceAll('/', '\\/')],
    ['JSON in ASCII', (key) => ascii(key)],
    ['JSON in ASCII, as Python and PHP write it', (key) => ascii(key).replaceAll('/', '\\/')],
    ['JSON for HTML, as Go writes it', (key) => ascii(key, /[<>&]/g)],
    ['JSON for HTML, as .NET writes it', (key) => upper(ascii(key, /[^\0-\x7f]|[<>&'+`]/g))],
    ['a component of an address', encodeURIComponent],
    ['an address', encodeURI],
    ['lower case of it', (key) => encodeURIComponent(key).replace(/%../g, (each) => each.toLowerCase())],
    ['a form', (key) => new URLSearchParams({ key }).toString()],
  ]
  it.each(spellings)('cuts it written as %s', (_, write) => {
    for (const key of awkward) {
      const body = encoder.encode(`{"error":"no key ${write(key)}!"}`)
      expect(redacted(body, key).toString()).toMatch(/^\{"error":"no key (key=)?\[redacted\]!"\}$/)
      expect(withoutCredential(write(key), { secrets: [key] })).toMatch(/^(key=)?\[redacted\]$/)
    }
  })

  it.each(['', 'Bearer ', 'x-api-key: ', 'user:', 'u:'])('cuts it in base64 after %j', (before) => {
    for (const key of awkward) {
      for (const format of ['base64', 'base64url'] as const) {
        const written = Buffer.from(`${before}${key}\n`).toString(format)
        const rest = redacted(encoder.encode(written), key).toString()
        expect(rest).toContain('[redacted]')
        // Only bits of the characters at its ends are left.
        expect(rest.length).toBeLessThanOrEqual(written.length - (key.length * 4) / 3 + 14)
      }
    }
  })

  it('cuts every secret of a credential with several, the longer of two that begin alike as a whole', () => {
    const credential = { secrets: ['sk-part', 'sk-part-and-more', 'session/token+'] }
    const body = encoder.encode('sk-part-and-more, sk-part, session%2Ftoken%2B, us-east-1')
    const rest = Buffer.from(redactCredential(body, credential)).toString()
    expect(rest).toBe('[redacted], [redacted], [redacted], us-east-1')
  })

  it('cuts one that is as long as a credential may be, and the beginning of it', () => {
    const key = Buffer.from(
      Array.from({ length: 20_000 }, (_, index) => 65 + ((index * index) % 53)),
    ).toString('latin1')
    for (const written of [key, encodeURIComponent(key), JSON.stringify(key).slice(1, -1)]) {
      expect(redacted(encoder.encode(`a ${written} b`), key).toString()).toBe('a [redacted] b')
      expect(withoutCredential(`a ${written} b ${written}`, { secrets: [key] })).toBe(
        'a [redacted] b [redacted]',
      )
    }
    expect(redacted(encoder.encode(`a ${key.slice(0, 300)} b`), key).toString()).toBe('a [redacted] b')
    expect(redacted(encoder.encode(`a ${key.slice(0, 200)} b`), key).toString()).toContain(key.slice(0, 200))
  })

  it('does not take for one what a short credential is encoded to', () => {
    const body = encoder.encode('YWJj')
    expect(redactCredential(body, { secrets: ['abc'] })).toBe(body)
  })
})
