import { describe, expect, it } from 'vitest'
import { operationTools } from '../../../src/integrations/catalogue/openapi/operation-tools.ts'
import { drained } from '../../../src/lib/slices.ts'

type Json = Record<string, unknown>

const toolsOf = (paths: Json, components: Json = {}) =>
  drained(operationTools({ openapi: '3.0.3', paths, components: { schemas: components } }))

const bodyOf = (schema: Json, components: Json = {}) => {
  const requestBody = { content: { 'application/json': { schema } } }
  const { operations } = toolsOf({ '/a': { post: { requestBody } } }, components)
  return propertiesOf(operations[0]).body
}

const propertiesOf = (operation: { tool: Json } | undefined) =>
  (operation?.tool.inputSchema as { properties: Json } | undefined)?.properties ?? {}

describe('schemas of OpenAPI', () => {
  it.each<[string, Json, Json]>([
    ['nullable', { type: 'string', nullable: true }, { type: ['string', 'null'] }],
    [
      'a nullable enumeration',
      { type: 'string', enum: ['a'], nullable: true },
      { type: ['string', 'null'], enum: ['a', null] },
    ],
    [
      'an exclusive limit',
      { type: 'number', minimum: 0, exclusiveMinimum: true },
      { type: 'number', exclusiveMinimum: 0 },
    ],
    ['extensions and examples', { type: 'string', 'x-a': 1, example: 'b', xml: {} }, { type: 'string' }],
    [
      'members that are read-only',
      {
        type: 'object',
        required: ['id', 'a'],
        properties: { id: { readOnly: true }, a: { type: 'string' } },
      },
      { type: 'object', required: ['a'], properties: { a: { type: 'string' } } },
    ],
  ])('%s become JSON Schema', (_what, schema, expected) => {
    expect(bodyOf(schema)).toEqual(expected)
  })

  it('that contain themselves end', () => {
    const Node = { type: 'object', properties: { next: { $ref: '#/components/schemas/Node' } } }
    const next = { description: 'As Node above.' }
    expect(bodyOf({ $ref: '#/components/schemas/Node' }, { Node })).toEqual({
      type: 'object',
      properties: { next },
    })
  })

  it('that grow exponentially have a bounded size', () => {
    const names = Array.from({ length: 20 }, (_, index) => `S${index}`)
    const components = Object.fromEntries(
      names.map((name, index) => {
        const inner = { $ref: `#/components/schemas/S${index + 1}` }
        return [
          name,
          index === 19 ? { type: 'string' } : { type: 'object', properties: { a: inner, b: inner } },
        ]
      }),
    )
    const size = JSON.stringify(bodyOf({ $ref: '#/components/schemas/S0' }, components)).length
    expect(size).toBeLessThan(100_000)
  })
})

describe('operations', () => {
  it('have names that models take, each its own', () => {
    const { operations } = toolsOf({
      '/a/{b}': { get: {}, delete: { operationId: 'pets.delete all!' } },
      '/c': { get: { operationId: 'same' }, put: { operationId: 'same' } },
    })
    expect(operations.map(({ tool }) => tool.name)).toEqual(['get_a_b', 'pets_delete_all', 'same', 'same_2'])
  })

  it('keep apart arguments of one name, and leave credentials to the connection', () => {
    const parameter = (place: string, name: string) => ({ in: place, name, schema: { type: 'string' } })
    const parameters = [
      parameter('path', 'id'),
      parameter('query', 'id'),
      parameter('header', 'X-Trace'),
      parameter('header', 'Authorization'),
      parameter('query', 'body'),
    ]
    const requestBody = { required: true, content: { 'text/plain': { schema: { type: 'string' } } } }
    const { operations } = toolsOf({ '/a/{id}': { post: { parameters, requestBody } } })
    expect(Object.keys(propertiesOf(operations[0]))).toEqual([
      'id',
      'id_query',
      'X-Trace',
      'body',
      'request_body',
    ])
    expect(operations[0]?.tool.inputSchema).toMatchObject({ required: ['id', 'request_body'] })
    expect(operations[0]?.binding.body).toEqual({ argument: 'request_body', mediaType: 'text/plain' })
  })

  it('that cannot be tools do not hide the others', () => {
    const upload = { requestBody: { content: { 'multipart/form-data': {} } } }
    const { operations, left } = toolsOf({ '/a': { post: upload, get: { operationId: 'read' } } })
    expect(operations.map(({ tool }) => tool.name)).toEqual(['read'])
    expect(left).toEqual(['post /a: its body can only be multipart/form-data'])
  })
})
