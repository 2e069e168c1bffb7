import { describe, expect, it } from 'vitest'
import { BUILT_IN_DETECTORS } from '../../../src/dlp/detectors/registry.ts'
import { detect } from '../../../src/dlp/scan/detect.ts'
import type { Action, Profile } from '../../../src/dlp/types.ts'
import { EVERYTHING, found, profileOf } from './finding.ts'

function twoTerms(first: [string, number, Action], second: [string, number, Action]): Profile {
  const all = [first, second].map(([term, score, action], index) => ({
    term,
    score,
    action,
    id: `t${index}`,
  }))
  return {
    ...profileOf([]),
    rules: all.map(({ id, action }) => ({ detector: id, minimumScore: 0, action })),
    custom: all.map(({ id, term, score }) => ({ id, kind: 'pattern', pattern: term, score })),
  }
}

describe('overlapping findings', () => {
  it('the more severe action wins, then the score, then the length', () => {
    expect(found('abcd', twoTerms(['abc', 0.5, 'block'], ['abcd', 0.9, 'warn']))).toEqual(['t0: abc'])
    expect(found('abcd', twoTerms(['abcd', 0.5, 'warn'], ['abc', 0.9, 'warn']))).toEqual(['t1: abc'])
    expect(found('abcd', twoTerms(['abc', 0.9, 'mask'], ['abcd', 0.9, 'mask']))).toEqual(['t1: abcd'])
  })

  it('what an edited finding of the customer has beside the winner stays covered', () => {
    expect(found('abcdef', twoTerms(['cd', 0.9, 'redact'], ['abcdef', 0.5, 'redact']))).toEqual([
      't1: ab',
      't0: cd',
      't1: ef',
    ])
    expect(found('abcdef', twoTerms(['cd', 0.9, 'redact'], ['abcdef', 0.5, 'warn']))).toEqual(['t0: cd'])
  })

  it('the action is the one that the score of a finding brings about, not the most severe of its detector', () => {
    const profile = twoTerms(['abc', 0.5, 'warn'], ['abcd', 0.4, 'mask'])
    const rules = [...profile.rules, { detector: 't0', minimumScore: 0.9, action: 'block' as const }]
    expect(found('abcd', { ...profile, rules })).toEqual(['t1: abcd'])
  })

  it('spans come in order, without overlap, inside of the text', () => {
    const text =
      'password=ghp_abcdefghijklmnopqrstuvwxyz0123456789 https://a:b1c2d3@host.example.com/?card=4111111111111111&x=1 +1 415 555 2671'
    let last = 0
    for (const { start, end } of detect(text, EVERYTHING)) {
      expect(start).toBeGreaterThanOrEqual(last)
      expect(end).toBeGreaterThan(start)
      expect(end).toBeLessThanOrEqual(text.length)
      last = end
    }
    expect(last).toBeGreaterThan(0)
  })
})

describe('profiles', () => {
  const text = 'ada@example.com 4111 1111 1111 1111'

  it('nothing is found without a rule', () => {
    expect(found(text, profileOf([]))).toEqual([])
    expect(found(text, profileOf(['email']))).toEqual(['email: ada@example.com'])
  })

  it('scores below the minimum do not count', () => {
    const strict = { ...EVERYTHING, rules: EVERYTHING.rules.map((rule) => ({ ...rule, minimumScore: 0.99 })) }
    expect(found(text, strict)).toEqual([])
    const lax = {
      ...profileOf(['card']),
      rules: [{ detector: 'card', minimumScore: 0.1, action: 'warn' as const }],
    }
    expect(found('order number 4111111111111111', lax)).toEqual(['card: 4111111111111111'])
  })

  it('of two rules for a detector the lower score counts', () => {
    const rules = [0.99, 0.5].map((minimumScore) => ({
      detector: 'email',
      minimumScore,
      action: 'warn' as const,
    }))
    expect(found(text, { ...profileOf([]), rules })).toEqual(['email: ada@example.com'])
  })

  it('detectors that are not known are passed over', () =>
    expect(found(text, profileOf(['nonsense']))).toEqual([]))
})

describe('the list of detectors', () => {
  it('names each once, with a category and a description', () => {
    expect(new Set(BUILT_IN_DETECTORS.map(({ id }) => id)).size).toBe(BUILT_IN_DETECTORS.length)
    for (const { id, description, minimumScore } of BUILT_IN_DETECTORS) {
      expect(id).toMatch(/^[a-z][a-z0-9_]*$/)
      expect(description.length).toBeGreaterThan(5)
      expect(minimumScore).toBeGreaterThan(0)
      expect(minimumScore).toBeLessThanOrEqual(1)
    }
  })
})
