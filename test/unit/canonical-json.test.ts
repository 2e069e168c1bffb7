import { describe, expect, it } from 'vitest'
import { canonicalJson } from '../../src/lib/canonical-json.ts'

describe('canonicalJson', () => {
  it('gives one text whatever the order of members, at every depth', () => {
    const left = { b: [{ y: 1, x: null }], a: { d: true, c: 'é' } }
    const right = { a: { c: 'é', d: true }, b: [{ x: null, y: 1 }] }
    expect(canonicalJson(left)).toBe('{"a":{"c":"é","d":true},"b":[{"x":null,"y":1}]}')
    expect(canonicalJson(right)).toBe(canonicalJson(left))
  })

  it('sorts by code unit, not by locale or by number', () => {
    expect(canonicalJson({ b: 1, B: 1, é: 1, 10: 1, 9: 1, '\u{1f600}': 1, '\ufb33': 1 })).toBe(
      '{"10":1,"9":1,"B":1,"b":1,"é":1,"\u{1f600}":1,"\ufb33":1}',
    )
  })

  it('leaves out undefined members and reads back as the same value', () => {
    const value = { text: 'line\n"quoted" \u2028 \\u0000', numbers: [0, -0, 1.5e-7, 2 ** 53], empty: {} }
    expect(JSON.parse(canonicalJson({ ...value, absent: undefined }))).toEqual({
      ...value,
      numbers: [0, 0, 1.5e-7, 2 ** 53],
    })
  })

  it('replaces what Postgres cannot store', () => {
    expect(canonicalJson({ 'a\0': 'x\0y\ud800z\u{1f600}' })).toBe('{"a\ufffd":"x\ufffdy\ufffdz\u{1f600}"}')
  })

  it.each([Number.NaN, Number.POSITIVE_INFINITY, 1n, () => 1, Symbol('s')])('refuses %s', (value) => {
    expect(() => canonicalJson({ value })).toThrow(TypeError)
  })

  it('refuses undefined where a member cannot be left out', () => {
    expect(() => canonicalJson([undefined])).toThrow(TypeError)
    expect(() => canonicalJson(undefined)).toThrow(TypeError)
  })
})
