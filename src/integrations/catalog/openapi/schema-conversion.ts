import { isRecord, type Json, resolvePointer } from './references.ts'

/**
 * Turns schemas of OpenAPI 3.0 and 3.1 into JSON Schema 2020-12 without references, for the definition of a tool. A
 * reference is replaced by what it refers to; one that contains itself, and what is beyond the limit of a schema, become
 * schemas that accept everything, so that the size is bounded for every document.
 */

/** Schemas in one definition, and in all of a document. */
const MOST_NODES = 1_500
const MOST_OF_DOCUMENT = 200_000
/** References and members inside each other. */
const DEEPEST = 24

/** Members that hold one schema, a list of schemas, or schemas by name. */
const ONE = [
  'items',
  'additionalProperties',
  'not',
  'contains',
  'propertyNames',
  'if',
  'then',
  'else',
] as const
const LISTS = ['allOf', 'anyOf', 'oneOf', 'prefixItems'] as const
const MAPS = ['properties', 'patternProperties', 'dependentSchemas'] as const

/** Members that are copied as they are. Others, such as `example`, `xml` and extensions, are left out. */
const COPIED = [
  ...['title', 'description', 'type', 'enum', 'const', 'default', 'format', 'deprecated'],
  ...['minimum', 'maximum', 'multipleOf', 'minLength', 'maxLength', 'pattern', 'minItems', 'maxItems'],
  ...['uniqueItems', 'minProperties', 'maxProperties', 'required', 'minContains', 'maxContains'],
] as const

/** Schemas that may still be made. */
interface SchemaBudget {
  left: number
  ofDocument: { left: number }
}

interface Conversion {
  document: Json
  budget: SchemaBudget
  /** References that the schema is inside of. */
  inside: readonly string[]
  depth: number
}

/** What the definitions of one document share. */
export const documentBudget = (): SchemaBudget['ofDocument'] => ({ left: MOST_OF_DOCUMENT })

/** A converter of the schemas of one definition, which share its limit. */
export function schemaConverter(
  document: Json,
  ofDocument: SchemaBudget['ofDocument'],
): (schema: unknown) => Json {
  const budget = { left: MOST_NODES, ofDocument }
  return (schema) => converted(schema, { document, budget, inside: [], depth: 0 })
}

function converted(schema: unknown, conversion: Conversion): Json {
  const { budget, depth } = conversion
  budget.left -= 1
  budget.ofDocument.left -= 1
  if (schema === false) return { not: {} }
  const isOver = budget.left < 0 || budget.ofDocument.left < 0
  if (!isRecord(schema) || isOver || depth > DEEPEST) return {}
  const reference = schema.$ref
  if (typeof reference === 'string') return referenced(schema, reference, conversion)
  const inner = { ...conversion, depth: depth + 1 }
  const result: Json = {}
  for (const member of COPIED) if (schema[member] !== undefined) result[member] = schema[member]
  for (const member of ONE)
    if (schema[member] !== undefined) result[member] = convertedMember(schema[member], inner)
  for (const member of LISTS) {
    const list = schema[member]
    if (Array.isArray(list)) result[member] = list.map((each) => converted(each, inner))
  }
  for (const member of MAPS) {
    const map = schema[member]
    if (isRecord(map)) result[member] = convertedMap(map, inner)
  }
  return withoutReadOnly(nullableType(exclusiveLimits(result, schema), schema), schema)
}

/** `additionalProperties` can be a boolean. */
const convertedMember = (value: unknown, conversion: Conversion) =>
  typeof value === 'boolean' ? value : converted(value, conversion)

const convertedMap = (map: Json, conversion: Conversion): Json =>
  Object.fromEntries(Object.entries(map).map(([name, each]) => [name, converted(each, conversion)]))

/** In 3.1, members beside a reference add to it; its description is the better one for this place. */
function referenced(schema: Json, reference: string, conversion: Conversion): Json {
  const { inside, document, depth } = conversion
  const { description } = schema
  const own = typeof description === 'string' ? { description } : {}
  if (inside.includes(reference)) return { description: `As ${reference.split('/').at(-1)} above.`, ...own }
  const target = resolvePointer(document, reference)
  const inner = { ...conversion, inside: [...inside, reference], depth: depth + 1 }
  return { ...converted(target, inner), ...own }
}

/** OpenAPI 3.0 has booleans in place of the limits themselves. */
function exclusiveLimits(result: Json, schema: Json): Json {
  const limits = [
    ['exclusiveMinimum', 'minimum'],
    ['exclusiveMaximum', 'maximum'],
  ] as const
  for (const [exclusive, limit] of limits) {
    const value = schema[exclusive]
    if (typeof value === 'number') result[exclusive] = value
    if (value === true && typeof schema[limit] === 'number') {
      result[exclusive] = schema[limit]
      delete result[limit]
    }
  }
  return result
}

/** OpenAPI 3.0 has `nullable` in place of the type `null`. */
function nullableType(result: Json, { nullable }: Json): Json {
  if (nullable !== true) return result
  const { enum: values, type } = result
  if (Array.isArray(values) && !values.includes(null)) result.enum = [...values, null]
  if (typeof type === 'string') return { ...result, type: [type, 'null'] }
  return type === undefined && Object.keys(result).length > 0 ? { anyOf: [result, { type: 'null' }] } : result
}

/** What a server alone sets is no part of a request. */
function withoutReadOnly(result: Json, { properties: given, required }: Json): Json {
  if (!isRecord(given) || !isRecord(result.properties)) return result
  const readOnly = Object.keys(given).filter((name) => isRecord(given[name]) && given[name].readOnly === true)
  if (readOnly.length === 0) return result
  const properties = Object.fromEntries(
    Object.entries(result.properties).filter(([name]) => !readOnly.includes(name)),
  )
  const left = Array.isArray(required)
    ? required.filter((name) => !readOnly.includes(String(name)))
    : undefined
  return { ...result, properties, ...(left && { required: left }) }
}
