import { describe, expect, it } from 'vitest'
import { includesOf, itemListQuery, retrieveQuery } from '../../../src/wire/response-queries.ts'

const taken = (query: object) => retrieveQuery.safeParse(query)

describe('starting_after', () => {
  it.each([
    ['0', 0],
    ['7', 7],
    ['0012', 12],
    ['4503599627370496', 2 ** 52],
    // Beyond the end of every stream, where one place is like any other.
    ['4503599627370497', 2 ** 52],
    ['9'.repeat(400), 2 ** 52],
  ])('takes %s', (text, number) => {
    expect(taken({ starting_after: text }).data?.starting_after).toBe(number)
  })

  it.each(['', '-1', '+1', '1.0', '1e3', '0x10', ' 1', '1 ', '١', 'NaN', 'null'])('refuses %j', (text) => {
    expect(taken({ starting_after: text }).success).toBe(false)
  })

  it('refuses two of them', () => {
    expect(taken({ starting_after: ['1', '2'] }).success).toBe(false)
  })
})

it('takes true and false for stream, and nothing else', () => {
  for (const stream of ['true', 'True', 'TRUE']) expect(taken({ stream }).data?.stream).toBe(true)
  for (const stream of ['false', 'False']) expect(taken({ stream }).data?.stream).toBe(false)
  expect(taken({}).data?.stream).toBeUndefined()
  for (const stream of ['', '1', 'yes']) expect(taken({ stream }).success).toBe(false)
})

it('finds what is included in every form that clients send', () => {
  const sealed = 'reasoning.encrypted_content'
  for (const query of [
    { include: sealed },
    { include: ['message.output_text.logprobs', sealed] },
    { 'include[]': sealed },
    { include: 'other', 'include[]': ['other', sealed] },
  ]) {
    expect(includesOf(itemListQuery.parse(query))).toContain('reasoning.encrypted_content')
  }
  expect(includesOf(itemListQuery.parse({ include: 'other' }))).toEqual(new Set(['other']))
  expect(includesOf(itemListQuery.parse({}))).toEqual(new Set())
})

describe('pages', () => {
  it('are the newest 20 unless the caller says otherwise', () => {
    expect(itemListQuery.parse({})).toEqual({ limit: 20, order: 'desc' })
  })

  it.each([
    { limit: '0' },
    { limit: '101' },
    { limit: '-1' },
    { limit: '1.5' },
    { limit: '' },
    { limit: 'ten' },
    { limit: '1e1' },
    { order: 'up' },
    { order: 'DESC' },
    { order: '' },
    { after: '' },
    { after: 'x'.repeat(201) },
  ])('refuses %j', (query) => {
    expect(itemListQuery.safeParse(query).success).toBe(false)
  })

  it.each([1, 100])('take a limit of %d', (limit) => {
    expect(itemListQuery.parse({ limit: String(limit) }).limit).toBe(limit)
  })
})
