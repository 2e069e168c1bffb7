import { describe, expect, it } from 'vitest'
import { countInputTokens } from '../../../src/gateway/token-count/input-tokens.ts'
import { memberCount, toolText } from '../../../src/gateway/token-count/tool-text.ts'

type Body = Record<string, unknown>
const tool = (schema: Body): Body => ({ name: 'look', input_schema: schema })
const inProperty = (schema: Body): Body => ({ type: 'object', properties: { value: schema } })
const textOf = (schema: Body): string | null => toolText(tool(schema), 1_000_000)
const typeOf = (schema: Body): string | undefined =>
  /value\?: (.*),\n/s.exec(textOf(inProperty(schema)) ?? '')?.[1]
const count = (body: Body): number =>
  countInputTokens(new TextEncoder().encode(JSON.stringify(body)), { upstreamModel: 'gpt-4o' })
const countOf = (schema: Body): number =>
  count({ messages: [{ role: 'user', content: 'hi' }], tools: [tool(schema)] })

/** No word of it is less than a token. */
const WORDS = 'river stone bridge '.repeat(50)
const WORDS_TOKENS = 150

/** A schema within itself, so often. */
function nested(depth: number, around: (inner: Body) => Body): Body {
  let schema: Body = { type: 'string', enum: ['north', 'south'] }
  for (let level = 0; level < depth; level++) schema = around(schema)
  return schema
}

const TYPES = ['object', 'array', 'string', 'null', 'object', 'array', 'object']
const REPEATING: Array<[string, (inner: Body) => Body]> = [
  ['lists of types around members', (inner) => ({ type: TYPES, properties: { next: inner } })],
  ['lists of types around items', (inner) => ({ type: ['array', 'array', 'null'], items: inner })],
  [
    'lists of types around both',
    (inner) => ({ type: TYPES, properties: { next: inner }, items: { type: TYPES } }),
  ],
  ['lists of lists of types', (inner) => ({ type: [TYPES, TYPES], properties: { next: inner } })],
  ['choices', (inner) => ({ anyOf: [{ type: ['string', 'string', 'null'] }, inner] })],
  ['choices beside choices', (inner) => ({ anyOf: [inner], oneOf: [{ type: 'null' }], enum: ['x'] })],
  ['choices beside members', (inner) => ({ type: TYPES, anyOf: [inner], properties: { next: {} } })],
  ['definitions', (inner) => ({ $ref: '#/$defs/next', $defs: { next: inner }, type: ['null', 'null'] })],
  ['every keyword of lists', (inner) => ({ allOf: [inner], type: TYPES, prefixItems: [{}], not: {} })],
]

describe('the text of a schema', () => {
  it.each(REPEATING)('grows as the schema does: %s', (_name, around) => {
    for (const depth of [8, 80]) {
      const schema = inProperty(nested(depth, around))
      const text = textOf(schema)
      expect(text).not.toBeNull()
      expect(text?.length).toBeLessThan(2 * JSON.stringify(tool(schema)).length)
      expect(text).toContain('"north"')
      expect(countOf(schema)).toBeLessThan(2 * JSON.stringify(schema).length)
    }
  })

  it.each(REPEATING)('reads each part of the schema a few times: %s', (_name, around) => {
    const reads = (depth: number): number => {
      const counter = { reads: 0 }
      const schema = inProperty(nested(depth, around))
      toolText(tool(counted(schema, counter)), 1_000_000)
      memberCount(counted(schema, counter))
      return counter.reads
    }
    const few = reads(6)
    expect(reads(24)).toBeLessThan(5 * few)
  })

  it('ends where it would be too long', () => {
    const schema = inProperty(nested(80, (inner) => ({ anyOf: [{ enum: [1, 2, 3] }, inner] })))
    const { length } = textOf(schema) ?? ''
    expect(toolText(tool(schema), length)?.length).toBe(length)
    expect(toolText(tool(schema), length - 1)).toBeNull()
    const reads = (longest: number): number => {
      const counter = { reads: 0 }
      toolText(tool(counted(schema, counter)), longest)
      return counter.reads
    }
    expect(reads(100)).toBeLessThan(reads(length) / 4)
  })

  it.each([
    [{ type: ['string', 'null'] }, 'string | null'],
    [{ type: ['integer', 'integer', 'number'] }, 'number | number'],
    [{ type: ['array', 'null'], items: { type: 'string' } }, 'string[] | null'],
    [{ type: ['object', 'null'], properties: { a: { type: 'string' } } }, '{\na?: string,\n} | null'],
    [{ properties: { a: {} }, required: ['a'] }, '{\na: any,\n}'],
    [{ items: { type: 'integer' } }, 'number[]'],
    [{ type: 'array' }, 'any[]'],
    [{ type: [] }, 'any'],
    [{ type: [7, null, ''] }, 'any'],
    [{ anyOf: [], oneOf: [{ type: 'string' }, { const: 5 }] }, 'string | 5'],
    [{ enum: [] }, ''],
  ])('shows %j', (schema, shown) => {
    expect(typeOf(schema)).toBe(shown)
  })

  it.each([
    [
      'properties beside choices',
      { anyOf: [{ required: ['a'] }], properties: { a: { description: WORDS } } },
    ],
    ['choices beside choices', { anyOf: [{ type: 'null' }], oneOf: [{ description: WORDS }] }],
    ['items of a tuple', { type: 'array', items: [{ description: WORDS }] }],
    ['constants beside a list', { enum: ['a'], const: WORDS }],
    ['examples of a choice', { anyOf: [{ type: 'string', examples: [WORDS], default: 'x' }] }],
  ])('leaves out nothing that may be shown: %s', (_name, schema) => {
    expect(countOf(inProperty(schema))).toBeGreaterThan(WORDS_TOKENS)
    expect(countOf({ type: 'object', ...schema })).toBeGreaterThan(WORDS_TOKENS)
  })
})

describe('definitions in great numbers', () => {
  it('are counted as they are written when they are too much for trees', () => {
    const large = tool(inProperty({ type: 'string', enum: Array(200).fill(WORDS) }))
    const messages = [{ role: 'user', content: 'hi' }]
    const some = count({ messages, tools: many(5, large) })
    const all = count({ messages, tools: many(25, large) })
    expect(all).toBeGreaterThan(4.4 * some)
    expect(all).toBeLessThan(8 * some)
  })

  it.each([
    [
      'tools',
      // Blocks count against the same limit, and are read in less time.
      (count: number) => ({
        messages: [{ role: 'user', content: many(99_000, { text: 'a' }) }],
        tools: many(count - 99_000, tool({})),
      }),
    ],
    [
      'blocks',
      (count: number) => ({ messages: [{ role: 'user', content: many(count, { text: 'one two' }) }] }),
    ],
    [
      'blocks in a result',
      (count: number) => {
        const result = { type: 'tool_result', content: many(count, { text: 'one two' }) }
        return { messages: [{ role: 'user', content: [result] }] }
      },
    ],
  ])(
    'are counted by their bytes when there are more than any vendor takes: %s',
    { timeout: 60_000 },
    (_name, body) => {
      const [most, more] = [body(100_000), body(101_000)]
      const byte = JSON.stringify(more).length - JSON.stringify(most).length
      const gained = count(more) - count(most)
      expect(gained).toBeGreaterThan(byte * 0.9)
      expect(gained).toBeLessThanOrEqual(byte + 50)
    },
  )

  it('take no more text than their trees may have', () => {
    const longest = { type: 'string', examples: Array.from({ length: 5_000 }, () => 1e20) }
    const source = JSON.stringify(tool(inProperty(longest))).replaceAll('100000000000000000000', '1e20')
    const text = toolText(JSON.parse(source), 8 * source.length)
    expect(text?.length).toBeGreaterThan(5 * source.length)
  })
})

const many = (count: number, part: Body): Body[] => Array.from({ length: count }, () => part)

/** A value that counts how often its objects and lists are looked at. */
function counted<Value>(value: Value, counter: { reads: number }): Value {
  if (typeof value !== 'object' || value === null) return value
  const inner = Object.entries(value).map(([name, each]) => [name, counted(each, counter)] as const)
  const target = Array.isArray(value) ? inner.map(([, each]) => each) : Object.fromEntries(inner)
  return new Proxy(target, {
    get(object, name, receiver) {
      counter.reads++
      return Reflect.get(object, name, receiver)
    },
    ownKeys(object) {
      counter.reads++
      return Reflect.ownKeys(object)
    },
  }) as Value
}
