import { describe, expect, it } from 'vitest'
import { expressionDelay, parseDuration } from '../../scripts/local/qstash/durations.ts'
import { evaluateExpression } from '../../scripts/local/qstash/expression.ts'

describe('expressions of Upstash-Retry-Delay', () => {
  it.each<[string, number, number]>([
    ['1000', 5, 1000],
    ['1000 * (1 + retried)', 3, 4000],
    ['pow(2, retried) * 1000', 3, 8000],
    ['max(1000, pow(2, retried) * 100)', 2, 1000],
    ['min(5, 3)', 0, 3],
    ['sqrt(16) + abs(-2) + floor(1.9) + ceil(1.1) + round(2.5)', 0, 12],
    ['exp(0)', 0, 1],
    ['2 + 3 * 4', 0, 14],
    ['10 - 3 - 2', 0, 5],
    ['100 / 10 / 2', 0, 5],
    ['7 % 4', 0, 3],
    ['-3 + +5', 0, 2],
    ['--2', 0, 2],
    ['1.5e3 + .5', 0, 1500.5],
    ['\t( ( 1 ) )\n', 0, 1],
  ])('%j with retried = %i is %d', (source, retried, expected) => {
    expect(evaluateExpression(source, { retried })).toBe(expected)
  })

  it.each([
    '',
    '   ',
    '1 +',
    '* 2',
    '(1',
    '1)',
    '1 2',
    'pow(2)',
    'pow(1, 2, 3)',
    'pow',
    'unknown',
    'constructor',
    '__proto__',
    'toString(1)',
    'retried.constructor',
    'process.exit(1)',
    '`1`',
    '"1"',
    '1; 2',
    'a=1',
    '1,2',
    '1..2',
    '('.repeat(10_000),
  ])('%j is refused', (source) => {
    expect(() => evaluateExpression(source, { retried: 0 })).toThrow()
  })

  it('give a delay between nothing and a day', () => {
    expect(expressionDelay('0 - 5', 0)).toBe(0)
    expect(expressionDelay('0 / 0', 0)).toBe(0)
    expect(expressionDelay('1 / 0', 0)).toBe(86_400_000)
    expect(expressionDelay('pow(10, retried)', 20)).toBe(86_400_000)
  })
})

describe('durations', () => {
  it.each<[string, number | undefined]>([
    ['10s', 10_000],
    ['1d10h30m', 124_200_000],
    ['6m5s', 365_000],
    ['250ms', 250],
    ['10', 10_000],
    ['0', 0],
    ['1.5h', 5_400_000],
    ['', undefined],
    ['s', undefined],
    ['10 s', undefined],
    ['-5s', undefined],
    ['10x', undefined],
  ])('%j is %d milliseconds', (text, expected) => {
    expect(parseDuration(text)).toBe(expected)
  })
})
