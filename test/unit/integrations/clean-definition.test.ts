import { describe, expect, it } from 'vitest'
import { cleanText, pinnedDefinition } from '../../../src/integrations/catalogue/clean-definition.ts'

const clean = (text: string) => cleanText(text, 4_096)

describe('the text of a definition', () => {
  it.each([
    ['line and paragraph separators', 'a\u2028b\u2029c\r\nd\re', 'a\nb\nc\nd\ne'],
    ['a Braille pattern without dots', 'a\u2800b', 'ab'],
    ['fillers', 'a\u115f\u3164\uffa0\u{16fe4}b', 'ab'],
    ['a note without a head', 'a\u{1d159}b', 'ab'],
    ['format characters', 'a\u00ad\u200b\u2060\u202e\ufeff\u{e0041}b', 'ab'],
    ['variation selectors', 'a\ufe0f\u{e0100}b', 'ab'],
    ['characters without a form', 'a\ue000\uffff\u{f0000}b', 'ab'],
    ['controls', 'a\u0000\u001b\u0085\u009bb', 'ab'],
    ['halves of characters', 'a\ud83db', 'a\ufffdb'],
    ['comments', 'a<!-- x -->b<!---->c', 'abc'],
    ['a comment without an end', 'a<!-- x', 'a'],
    ['comments in halves of others', 'a<!<!-- x -->-- y -->b', 'ab'],
    ['comments that invisible characters cut', 'a<!\u200b-- x --\u200b>b', 'ab'],
  ])('has no %s', (_what, text, expected) => {
    expect(clean(text)).toBe(expected)
  })

  it.each(['Adds numbers.\n\tTwo of them, – “like” <!DOCTYPE>.', 'naïve 数 \u00a0 ⠁⠃', '-->', '<!-'])(
    'has what is seen: %j',
    (text) => {
      expect(clean(text)).toBe(text)
    },
  )

  it('never has the beginning of a comment, whatever is cut out', () => {
    const halves = ['<', '!', '--', '-', '-->', '<!--', '>', 'x']
    for (let number = 0; number < 8 ** 5; number += 7) {
      const text = Array.from({ length: 5 }, (_, place) => halves[Math.floor(number / 8 ** place) % 8]).join(
        '',
      )
      expect(clean(text)).not.toContain('<!--')
    }
  })

  it('is limited, and the beginning of a longer one is read', () => {
    expect(clean('x'.repeat(5_000))).toHaveLength(4_096)
    expect(clean(`${'\u200b'.repeat(12_000)}${'x'.repeat(5_000)}`)).toBe('x'.repeat(4_096))
    expect(clean(`${'\u200b'.repeat(20_000)}x`)).toBe('')
  })
})

describe('a definition', () => {
  const tool = (more: object) => ({ name: 'act', inputSchema: { type: 'object' }, ...more })
  const secrets = ['secret-of-the-account-0123456789']
  const pinned = (more: object) => JSON.stringify(pinnedDefinition(tool(more), null, { secrets }))

  it('has no secret that the cleaning joins', () => {
    const hidden = secrets[0]?.split('').join('\u200b')
    for (const text of [secrets[0], hidden, `<!-- -->${hidden}`]) {
      expect(pinned({ description: `a ${text} b` })).toContain('a [redacted] b')
    }
  })

  it('has no half of a secret at its limit', () => {
    expect(pinned({ description: `${'x'.repeat(4_080)}${secrets[0]}` })).not.toContain('secret-of')
  })

  it('has no half of a secret at the end of what is read', () => {
    const description = `${'\u200b'.repeat(4 * 4_096 - 10)}${secrets[0]}`
    expect(pinned({ description })).not.toContain('secret-of')
  })

  it.each(['a\u2028b', 'a\u2800', `${secrets[0]}`])('is not offered with the name %j', (name) => {
    expect(pinned({ name })).toMatch(/^\{"reason":"its name has/)
  })

  it('is not offered with a schema as deep as a list may be long', () => {
    const inputSchema = JSON.parse(`${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`)
    expect(pinned({ inputSchema })).toBe('{"reason":"its schema is deeper than 32 levels"}')
  })
})
