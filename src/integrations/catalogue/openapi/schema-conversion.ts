import { isRecord, type Json, resolvePointer } from './references.ts'

/**
 * Turns schemas of OpenAPI 3.0 and 3.1 into JSON Schema 2020-12 without references, for the definition of a tool. A
 * reference is replaced by what it refers to; one that contains itself, and what is beyond the limit of a schema, become
 * schemas that accept everything, so that the size is bounded for every document.
 */

/** Schemas in one definition, and in all of a document. */
const MOST_NODES = 1_500
const MOST_OF_DOCUMENT = 200_000
/**
 * Characters that are copied into one definition: a reference can copy the same ones many times. A definition with half of
 * them is too large to be offered.
 */
const MOST_CHARACTERS = 128 * 1024
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
  'title',
  'description',
  'type',
  'enum',
  'const',
  'default',
  'format',
  'deprecated',
  'minimum',
  'maximum',
  'multipleOf',
  'minLength',
  'maxLength',
  'pattern',
  'minItems',
  'maxItems',
  'uniqueItems',
  'minProperties',
  'maxProperties',
  'required',
  'minContains',
  'maxContains',
] as const

/** Schemas that may still be made. */
interface SchemaBudget {
  left: number
  characters: number
  ofDocument: DocumentBudget
}

/** Budget that the definitions of one document share. */
interface DocumentBudget {
  left: number
  /** Characters of values that were measured: the same value may be copied many times. */
  sizes: WeakMap<object, number>
}

interface Conversion {
  document: Json
  budget: SchemaBudget
  /** References that the schema is inside of. */
  inside: readonly string[]
  depth: number
}

export const documentBudget = (): DocumentBudget => ({ left: MOST_OF_DOCUMENT, sizes: new WeakMap() })

/** A converter of the schemas of one definition, which share its limits. */
export function schemaConverter(document: Json, ofDocument: DocumentBudget): (schema: unknown) => Json {
  const budget = { left: MOST_NODES, characters: MOST_CHARACTERS, ofDocument }
  return (schema) => converted(schema, { document, budget, inside: [], depth: 0 })
}

function converted(schema: unknown, conversion: Conversion): Json {
  const { budget, depth } = conversion
  budget.left -= 1
  budget.ofDocument.left -= 1
  if (schema === false) return { not: {} }
  const isOver = budget.left < 0 || budget.characters < 0 || budget.ofDocument.left < 0
  if (!isRecord(schema) || isOver || depth > DEEPEST) return {}
  const reference = schema.$ref
  if (typeof reference === 'string') return referenced(schema, reference, conversion)
  const inner = { ...conversion, depth: depth + 1 }
  const result: Json = {}
  for (const member of COPIED)
    if (schema[member] !== undefined && fits(schema[member], budget)) result[member] = schema[member]
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

/** Whether a value can be copied. What does not fit is left out. */
function fits(value: unknown, budget: SchemaBudget): boolean {
  const size = sizeOf(value, budget.ofDocument.sizes)
  if (size > budget.characters) return false
  budget.characters -= size
  return true
}

function sizeOf(value: unknown, sizes: DocumentBudget['sizes']): number {
  if (typeof value === 'string') return value.length
  if (typeof value !== 'object' || value === null) return 1
  const known = sizes.get(value)
  if (known !== undefined) return known
  const size = JSON.stringify(value).length
  sizes.set(value, size)
  return size
}

/** `additionalProperties` can be a boolean. */
const convertedMember = (value: unknown, conversion: Conversion) =>
  typeof value === 'boolean' ? value : converted(value, conversion)

const convertedMap = (map: Json, conversion: Conversion): Json =>
  Object.fromEntries(
    Object.entries(map).map(([name, each]) => {
      conversion.budget.characters -= name.length
      return [name, converted(each, conversion)]
    }),
  )

/** In 3.1, members beside a reference add to it; its description is the better one for this place. */
function referenced(schema: Json, reference: string, conversion: Conversion): Json {
  const { inside, document, depth, budget } = conversion
  const { description } = schema
  const own = typeof description === 'string' && fits(description, budget) ? { description } : {}
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

/** Read-only members are set by the server alone, so they are no part of a request. */
function withoutReadOnly(result: Json, { properties: given }: Json): Json {
  if (!isRecord(given) || !isRecord(result.properties)) return result
  const isReadOnly = (name: string) =>
    Object.hasOwn(given, name) && isRecord(given[name]) && given[name].readOnly === true
  if (!Object.keys(given).some(isReadOnly)) return result
  const properties = Object.fromEntries(
    Object.entries(result.properties).filter(([name]) => !isReadOnly(name)),
  )
  const { required } = result
  const left = Array.isArray(required) ? required.filter((name) => !isReadOnly(String(name))) : undefined
  return { ...result, properties, ...(left && { required: left }) }
}
