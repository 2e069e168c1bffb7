import { describe, expect, it } from 'vitest'
import { type Json, listOf, objectOf } from '../../../../../src/gateway/protocols/json.ts'
import { constrainedSchema, fitsStrictChat } from '../../../../../src/gateway/translation/requests/schemas.ts'
import {
  chatInstructsJson,
  fromChat,
  fromMessages,
  functionTool,
  messagesInstructsJson,
  refusal,
  target,
  text,
} from './requests.ts'

const CLOSED = { additionalProperties: false }
const POINT = { type: 'object', properties: { x: { type: 'number' } }, required: ['x'] }

describe('schemas that the messages protocol takes', () => {
  it.each<[string, Json, Json | null]>([
    ['an object', POINT, { ...POINT, ...CLOSED }],
    [
      'objects within',
      { type: 'array', items: { anyOf: [POINT, { type: 'null' }] }, minItems: 1 },
      { type: 'array', items: { anyOf: [{ ...POINT, ...CLOSED }, { type: 'null' }] }, minItems: 1 },
    ],
    [
      'a member named like a keyword',
      { type: 'object', properties: { minimum: { type: 'string' }, items: POINT } },
      {
        type: 'object',
        properties: { minimum: { type: 'string' }, items: { ...POINT, ...CLOSED } },
        ...CLOSED,
      },
    ],
    [
      'constraints, described instead',
      { type: 'integer', minimum: 1, maximum: 9, description: 'A digit.' },
      { type: 'integer', description: 'A digit. (minimum: 1, maximum: 9)' },
    ],
    [
      'a length',
      { type: 'array', items: {}, minItems: 2 },
      { type: 'array', items: {}, description: '(minItems: 2)' },
    ],
    ['a known format', { type: 'string', format: 'date' }, { type: 'string', format: 'date' }],
    [
      'another format',
      { type: 'string', format: 'iban' },
      { type: 'string', description: '(format: "iban")' },
    ],
    [
      'alternatives',
      { oneOf: [{ type: 'string' }, POINT] },
      { anyOf: [{ type: 'string' }, { ...POINT, ...CLOSED }] },
    ],
    [
      'alternatives beside alternatives',
      { anyOf: [{ type: 'string' }], oneOf: [{ const: 'a' }], description: 'd' },
      { anyOf: [{ type: 'string' }], description: 'd (oneOf: [{"const":"a"}])' },
    ],
    [
      'objects of all',
      {
        allOf: [
          POINT,
          { allOf: [{ type: 'object', properties: { y: { minimum: 1 } }, required: ['y', 'x'] }] },
        ],
        properties: { z: {} },
        description: 'd',
      },
      {
        type: 'object',
        properties: { x: { type: 'number' }, y: { description: '(minimum: 1)' }, z: {} },
        required: ['x', 'y'],
        description: 'd',
        ...CLOSED,
      },
    ],
    [
      'parts that say different things of the same',
      { allOf: [POINT, { properties: { x: { type: 'string' } } }] },
      {
        allOf: [
          { ...POINT, ...CLOSED },
          { properties: { x: { type: 'string' } }, ...CLOSED },
        ],
      },
    ],
    [
      'a reference among all',
      { allOf: [{ $ref: '#/$defs/p' }], title: 'P', $defs: { p: POINT } },
      { $ref: '#/$defs/p', $defs: { p: { ...POINT, ...CLOSED } } },
    ],
    [
      'a reference beside members',
      { ...POINT, allOf: [{ $ref: '#/$defs/p' }] },
      { ...POINT, allOf: [{ $ref: '#/$defs/p' }], ...CLOSED },
    ],
    ['one of all', { allOf: [POINT], title: 'P' }, { ...POINT, title: 'P', ...CLOSED }],
    ['an enum', { enum: ['a', 1, null] }, { enum: ['a', 1, null] }],
    ['an enum of objects', { enum: [{ a: 1 }] }, { description: '(enum: [{"a":1}])' }],
    [
      'references and definitions',
      {
        $schema: 's',
        $defs: { p: POINT },
        type: 'object',
        properties: { p: { $ref: '#/$defs/p', description: 'd' } },
      },
      {
        $defs: { p: { ...POINT, ...CLOSED } },
        type: 'object',
        properties: { p: { $ref: '#/$defs/p' } },
        ...CLOSED,
      },
    ],
    [
      'an object by its alternatives',
      { type: 'object', anyOf: [POINT] },
      { type: 'object', anyOf: [{ ...POINT, ...CLOSED }] },
    ],
    [
      'an object without members',
      { type: 'object', properties: {} },
      { type: 'object', properties: {}, ...CLOSED },
    ],
    ['an object that may have others', { ...POINT, additionalProperties: true }, { ...POINT, ...CLOSED }],
    ['an object of any names', { type: 'object' }, null],
    ['a map', { type: 'object', additionalProperties: { type: 'string' } }, null],
    ['a map beside members', { ...POINT, additionalProperties: { type: 'string' } }, null],
    ['a map within', { type: 'array', items: { type: ['object', 'null'] } }, null],
    ['patterns of names', { ...POINT, patternProperties: { '^x': {} } }, null],
  ])('%s', (_case, schema, said) => {
    const before = JSON.stringify(schema)
    expect(constrainedSchema(schema)).toEqual(said)
    expect(JSON.stringify(schema)).toBe(before)
  })

  it.each<[Json, boolean]>([
    [{ ...POINT, ...CLOSED }, true],
    [POINT, false],
    [{ ...POINT, ...CLOSED, required: [] }, false],
    [{ type: 'array', items: POINT }, false],
    [{ anyOf: [{ type: 'string' }, { ...POINT, ...CLOSED }] }, true],
    [{ $defs: { p: POINT }, type: 'string' }, false],
  ])('chat completions hold an answer to %j: %s', (schema, fits) => {
    expect(fitsStrictChat(schema)).toBe(fits)
  })
})

describe('response_format for the messages protocol', () => {
  const schemaFormat = (schema: unknown) => ({
    response_format: { type: 'json_schema', json_schema: { name: 'p', strict: true, schema } },
  })
  const jsonObject = { response_format: { type: 'json_object' } }
  const system = (request: Json) => listOf(request.system).map((block) => String(block.text))

  it('is an output format where the model has one', () => {
    const request = fromChat(schemaFormat(POINT))
    expect(request.output_config).toEqual({
      format: { type: 'json_schema', schema: { ...POINT, ...CLOSED } },
    })
    expect(request).not.toHaveProperty('system')
  })

  it('refuses what would come out different', () => {
    expect(refusal(() => fromChat(schemaFormat({ type: 'object' })))).toMatch(
      /^response_format.json_schema.schema: objects with members of any name are not supported/,
    )
    expect(refusal(() => fromChat(schemaFormat(undefined)))).toBe(
      'response_format.json_schema.schema: Field required.',
    )
  })

  it('is an instruction with the schema where it has none', () => {
    const request = fromChat({ ...schemaFormat(POINT), tools: [functionTool('f')] }, target())
    expect(request).not.toHaveProperty('output_config')
    expect(system(request)).toHaveLength(1)
    expect(system(request)[0]).toContain(JSON.stringify(POINT))
    expect(system(request)[0]).toContain('Tools may still be called')
    expect(chatInstructsJson(schemaFormat(POINT), target())).toBe(true)
    expect(chatInstructsJson(schemaFormat(POINT), target('json_schema'))).toBe(false)
  })

  it('is an instruction after the system prompt for json_object', () => {
    const messages = [
      { role: 'system', content: [text('Be brief.', { cache_control: { type: 'ephemeral' } })] },
      { role: 'user', content: 'x' },
    ]
    const request = fromChat({ ...jsonObject, messages })
    expect(listOf(request.system)[0]).toEqual(text('Be brief.', { cache_control: { type: 'ephemeral' } }))
    expect(system(request)[1]).toContain('exactly one JSON object')
    expect(request).not.toHaveProperty('output_config')
  })

  it.each<[string, Json, boolean]>([
    ['alone', {}, true],
    ['with tools', { tools: [functionTool('f')] }, false],
    ['with tools that may not be called', { tools: [functionTool('f')], tool_choice: 'none' }, true],
    ['with no tools', { tools: [] }, true],
    ['with reasoning', { reasoning_effort: 'low' }, true],
  ])('json_object %s: enforced by instruction: %s', (_case, members, enforced) => {
    const asked = { ...jsonObject, ...members }
    expect(chatInstructsJson(asked, target('json_schema', 'reasoning'))).toBe(enforced)
    const request = fromChat(asked, target('json_schema', 'reasoning'))
    expect(system(request).length).toBe(enforced ? 1 : 0)
    expect(listOf(request.tools)).toHaveLength(listOf(members.tools).length)
    expect(request.thinking !== undefined).toBe('reasoning_effort' in members)
  })

  it.each([{ type: 'text' }, null, undefined])('asks for nothing with %j', (response_format) => {
    expect(fromChat({ response_format })).not.toHaveProperty('system')
    expect(chatInstructsJson({ response_format }, target())).toBe(false)
  })
})

describe('the output format for chat completions', () => {
  const closed = { ...POINT, ...CLOSED }
  const asked = (schema: Json) => ({ output_config: { format: { type: 'json_schema', schema } } })
  const wanted = (strict: boolean, schema: Json) => ({
    type: 'json_schema',
    json_schema: { name: 'answer', strict, schema },
  })

  it('is response_format, strict where the schema allows', () => {
    expect(fromMessages(asked(closed)).response_format).toEqual(wanted(true, closed))
    expect(fromMessages(asked(POINT)).response_format).toEqual(wanted(false, POINT))
    expect(fromMessages({ output_format: { type: 'json_schema', schema: closed } }).response_format).toEqual(
      wanted(true, closed),
    )
    expect(fromMessages({ output_config: { effort: 'low', format: null } })).not.toHaveProperty(
      'response_format',
    )
  })

  it('asks for an object and for something else in no request', () => {
    for (const [schema, isObject] of [
      [closed, true],
      [{ properties: { x: {} } }, true],
      [{ type: 'array', items: closed }, false],
      [{ type: ['object', 'null'] }, false],
      [{ $ref: '#/$defs/p', $defs: { p: closed } }, false],
      [{ enum: ['a'] }, false],
    ] as const) {
      const request = fromMessages(asked(schema), target('json_object'))
      expect(request.response_format).toEqual(isObject ? { type: 'json_object' } : undefined)
      expect(String(listOf(request.messages)[0]?.content)).toContain(JSON.stringify(schema))
    }
  })

  it('is enforced by instruction and by taking fences off where the model has no schemas', () => {
    for (const [members, model, strips] of [
      [asked(closed), target(), true],
      [{ output_format: asked(closed).output_config.format }, target('json_object'), true],
      [asked(closed), target('json_schema'), false],
      [{}, target(), false],
    ] as const) {
      expect(messagesInstructsJson(members, model)).toBe(strips)
    }
  })

  it('is an instruction where the model has no such format', () => {
    for (const [model, format] of [
      [target('json_object'), { type: 'json_object' }],
      [target(), undefined],
    ] as const) {
      const request = fromMessages({ ...asked(closed), system: 'Be brief.' }, model)
      expect(request.response_format).toEqual(format)
      const [first] = listOf(request.messages)
      expect(first?.role).toBe('system')
      expect(String(objectOf(first).content)).toMatch(/^Be brief\.\n\nAnswer with exactly one JSON value/)
      expect(String(objectOf(first).content)).toContain(JSON.stringify(closed))
    }
  })
})
