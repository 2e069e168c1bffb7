import { describe, expect, it } from 'vitest'
import * as z from 'zod'
import { toolSchema } from '../../../src/lib/tool-schema.ts'

describe('the schema of a tool', () => {
  it('has the bounds that were given, and not those of safe integers', () => {
    const schema = z.object({ any: z.int(), page: z.int().min(1).max(40), list: z.array(z.int().min(0)) })
    expect(toolSchema(schema, 'input')).toEqual({
      type: 'object',
      properties: {
        any: { type: 'integer' },
        page: { type: 'integer', minimum: 1, maximum: 40 },
        list: { type: 'array', items: { type: 'integer', minimum: 0 } },
      },
      required: ['any', 'page', 'list'],
    })
  })

  it('is changed further by its caller', () => {
    const schema = z.object({ name: z.string().min(1).max(9) })
    const changed = toolSchema(schema, 'output', ({ jsonSchema }) => {
      delete jsonSchema.minLength
    })
    expect(changed).toMatchObject({ properties: { name: { type: 'string', maxLength: 9 } } })
    expect(JSON.stringify(changed)).not.toContain('minLength')
  })
})
