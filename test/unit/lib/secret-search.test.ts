import { describe, expect, it } from 'vitest'
import { TextSearch } from '../../../src/lib/secret-search.ts'
import { CredentialWatch, redactAnswer } from '../../../src/lib/secret-spellings.ts'
import { SeededRandom } from './seeded-random.ts'

const encoder = new TextEncoder()

describe('TextSearch', () => {
  it('finds what a plain search finds, in texts that nearly contain the patterns', () => {
    const random = new SeededRandom(12)
    const pick = (count: number) => random.below(count)
    const word = (length: number) => Array.from({ length }, () => 'abAB'[pick(4)]).join('')
    for (let round = 0; round < 3_000; round++) {
      const texts = Array.from({ length: 1 + pick(3) }, () => word(2 + pick(5)))
      const search = new TextSearch(texts.map((text) => encoder.encode(text)))
      const body = word(pick(40))
      const expected = texts.some((text) => body.toLowerCase().includes(text.toLowerCase()))
      expect(search.occursIn(encoder.encode(body)), `${texts} in ${body}`).toBe(expected)
    }
  })

  it('finds a text at every place of a large body that lies in a resizable buffer', () => {
    const text = 'the-credential-of-this-test'
    const search = new TextSearch([encoder.encode(text)])
    for (const at of [0, 1, 16_370, 16_384, 16_400, 49_973]) {
      const body = new Uint8Array(new ArrayBuffer(50_000, { maxByteLength: 60_000 }))
      expect(search.occursIn(body)).toBe(false)
      body.set(encoder.encode(text.toUpperCase()), at)
      expect(search.occursIn(body), String(at)).toBe(true)
    }
  })

  it('finds nothing where there are no texts', () => {
    expect(new TextSearch([]).occursIn(encoder.encode('anything'))).toBe(false)
  })
})

describe('an answer', () => {
  const credential = { secrets: ['sk-a-credential-of-some-length', 'none'] }

  it('is the same array without a credential, and with a secret that may be a word', () => {
    for (const text of ['', 'none of it', '{"content":"sk-a-credential"}']) {
      const body = encoder.encode(text)
      expect(redactAnswer(body, credential)).toBe(body)
    }
    const empty = encoder.encode('x')
    expect(redactAnswer(empty, { secrets: [] })).toBe(empty)
  })

  it('is watched across chunks of any size', () => {
    const stream = encoder.encode(`before ${credential.secrets[0]} after`)
    for (let size = 1; size <= stream.length; size++) {
      const watch = new CredentialWatch(credential)
      for (let at = 0; at < stream.length; at += size) watch.look(stream.subarray(at, at + size))
      expect(watch.found, String(size)).toBe(true)
    }
  })
})
