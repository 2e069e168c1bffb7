import { isRecord, type JsonRecord, toList, toNumber, toRecord, toText } from './json-value.ts'

const maximumDepth = 12

/**
 * A value that satisfies a simple JSON schema: required members filled by type, strings `"example"`.
 * Understands `$ref` into the same document, `enum`, `const`, `default`, `anyOf`/`oneOf`/`allOf`, lists of types,
 * and the bounds of numbers, strings and arrays. Patterns and most formats are not solved.
 */
export function exampleFromSchema(schema: unknown): unknown {
  return exampleOf(schema, toRecord(schema), 0)
}

function exampleOf(schema: unknown, root: JsonRecord, depth: number): unknown {
  if (!isRecord(schema) || depth > maximumDepth) return 'example'
  if ('const' in schema) return schema.const
  if (Array.isArray(schema.enum) && schema.enum.length > 0) return schema.enum[0]
  if ('default' in schema) return schema.default
  if (typeof schema.$ref === 'string') return exampleOf(resolveReference(root, schema.$ref), root, depth + 1)
  const alternatives = toList(schema.anyOf ?? schema.oneOf)
  if (alternatives.length > 0) return exampleOf(alternatives[0], root, depth + 1)
  if (Array.isArray(schema.allOf)) return exampleOf(mergeSchemas(schema.allOf, root), root, depth + 1)
  return exampleOfType(typeOf(schema), schema, root, depth)
}

function typeOf(schema: JsonRecord): string {
  if (Array.isArray(schema.type))
    return toText(
      schema.type.find((type) => type !== 'null'),
      'null',
    )
  if (typeof schema.type === 'string') return schema.type
  return 'properties' in schema ? 'object' : 'string'
}

function exampleOfType(type: string, schema: JsonRecord, root: JsonRecord, depth: number): unknown {
  switch (type) {
    case 'object':
      return exampleObject(schema, root, depth)
    case 'array': {
      const length = Math.min(
        Math.max(1, toNumber(schema.minItems) ?? 1),
        toNumber(schema.maxItems) ?? 100,
        100,
      )
      return Array.from({ length }, () => exampleOf(schema.items, root, depth + 1))
    }
    case 'integer':
      return Math.ceil(exampleNumber(schema, 1))
    case 'number':
      return exampleNumber(schema, 1.5)
    case 'boolean':
      return true
    case 'null':
      return null
    default:
      return exampleString(schema)
  }
}

function exampleObject(schema: JsonRecord, root: JsonRecord, depth: number): JsonRecord {
  const properties = toRecord(schema.properties)
  const result: JsonRecord = {}
  for (const name of toList(schema.required)) {
    if (typeof name === 'string') result[name] = exampleOf(properties[name], root, depth + 1)
  }
  return result
}

function exampleNumber(schema: JsonRecord, preferred: number): number {
  const exclusive = toNumber(schema.exclusiveMinimum)
  const minimum = exclusive === undefined ? toNumber(schema.minimum) : exclusive + 1
  const maximum = toNumber(schema.maximum) ?? toNumber(schema.exclusiveMaximum)
  const value = minimum !== undefined && minimum > preferred ? minimum : preferred
  return maximum !== undefined && value > maximum ? (minimum ?? maximum - 1) : value
}

const formattedExamples = new Map([
  ['date', '2026-01-01'],
  ['date-time', '2026-01-01T00:00:00Z'],
  ['email', 'user@example.com'],
  ['uri', 'https://example.com/'],
  ['uuid', '00000000-0000-4000-8000-000000000000'],
])

function exampleString(schema: JsonRecord): string {
  const text = formattedExamples.get(toText(schema.format)) ?? 'example'
  const padded = text.padEnd(Math.min(toNumber(schema.minLength) ?? 0, 10_000), 'x')
  return padded.slice(0, toNumber(schema.maxLength) ?? padded.length)
}

function resolveReference(root: JsonRecord, reference: string): unknown {
  let target: unknown = root
  for (const part of reference.replace(/^#\/?/, '').split('/')) {
    if (part !== '') target = toRecord(target)[part.replaceAll('~1', '/').replaceAll('~0', '~')]
  }
  return target
}

function mergeSchemas(schemas: unknown[], root: JsonRecord): JsonRecord {
  const merged: JsonRecord = {}
  const properties: JsonRecord = {}
  const required: unknown[] = []
  for (const item of schemas) {
    const record = toRecord(item)
    const schema = typeof record.$ref === 'string' ? toRecord(resolveReference(root, record.$ref)) : record
    Object.assign(merged, schema)
    Object.assign(properties, toRecord(schema.properties))
    required.push(...toList(schema.required))
  }
  return { ...merged, properties, required }
}
