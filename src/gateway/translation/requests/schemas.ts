import { isPresent, isRawNumber, type Json, objectOf, present, textOf } from '../../protocols/json.ts'
import { mergedSchema } from './merged-schemas.ts'

/** https://platform.claude.com/docs/en/build-with-claude/structured-outputs#json-schema-limitations */
const FORMATS = new Set([
  'date-time',
  'time',
  'date',
  'duration',
  'email',
  'hostname',
  'uri',
  'ipv4',
  'ipv6',
  'uuid',
])
/** Keywords that the vendor takes as they are. */
const PLAIN = new Set(['type', 'enum', 'const', '$ref', 'title', 'description', 'default', 'required'])
/** Keywords that hold schemas by name, and a list of them. */
const NAMED = new Set(['properties', '$defs', 'definitions'])
const LISTED = new Set(['anyOf', 'allOf', 'oneOf'])

/**
 * A schema as the messages protocol takes it for constrained answers: no object has members beyond those listed, and
 * constraints that the vendor cannot enforce move to the description.
 * @returns null when an object must have members of free names, which the vendor cannot express.
 */
export function constrainedSchema(schema: Json): Json | null {
  const found = { freeNames: false }
  const result = constrained(schema, found)
  return found.freeNames ? null : result
}

/** @param merges whether a list of parts that all apply is still to be merged. */
function constrained(given: Json, found: { freeNames: boolean }, merges = true): Json {
  const schema = merges ? mergedSchema(given) : given
  const result: Json = {}
  const unsupported: Json = {}
  const deeper = (value: unknown) => constrained(objectOf(value), found)
  const part = (value: unknown) => constrained(objectOf(value), found, false)
  for (const [keyword, value] of Object.entries(schema)) {
    if (PLAIN.has(keyword) && isSimple(value)) result[keyword] = value
    else if (NAMED.has(keyword)) result[keyword] = mapMembers(objectOf(value), deeper)
    else if (keyword === 'allOf' && Array.isArray(value)) result.allOf = value.map(part)
    else if (keyword === 'anyOf' && Array.isArray(value)) result.anyOf = value.map(deeper)
    // The vendor has one list of alternatives: a second one moves to the description.
    else if (isAlternatives(keyword, schema)) result.anyOf = (value as unknown[]).map(deeper)
    else if (keyword === 'items') result.items = deeper(value)
    else if (keyword === 'format' && FORMATS.has(textOf(value))) result.format = value
    else if (keyword === 'minItems' && (value === 0 || value === 1)) result.minItems = value
    else if (keyword !== 'additionalProperties' && keyword !== '$schema') unsupported[keyword] = value
  }
  if (isPresent(schema.$ref)) return withDefinitions(result)
  // Alternatives close their own objects.
  if (isObjectSchema(schema) && (isPresent(schema.properties) || !hasAlternatives(schema))) {
    if (hasFreeNames(schema)) found.freeNames = true
    result.additionalProperties = false
  }
  return describe(result, unsupported)
}

/** Values within `enum` and `const` are scalars at the vendor. */
const isSimple = (value: unknown): boolean => (Array.isArray(value) ? value.every(isScalar) : isScalar(value))
const isScalar = (value: unknown): boolean =>
  typeof value !== 'object' || value === null || isRawNumber(value)

const isAlternatives = (keyword: string, { oneOf, anyOf }: Json): boolean =>
  keyword === 'oneOf' && Array.isArray(oneOf) && !isPresent(anyOf)

/** The vendor takes nothing beside a reference but the definitions it may refer to. */
const withDefinitions = ({ $ref, $defs, definitions }: Json): Json => present({ $ref, $defs, definitions })

const mapMembers = (members: Json, make: (value: unknown) => Json): Json =>
  Object.fromEntries(Object.entries(members).map(([name, value]) => [name, make(value)]))

/** Whether a schema is one of objects, or of objects among others. */
const isObjectSchema = (schema: Json): boolean =>
  schema.type === 'object' ||
  (Array.isArray(schema.type) && schema.type.includes('object')) ||
  isPresent(schema.properties)

/** Whether a schema allows only objects, judging by its own keywords. */
export const isOfObjectsAlone = ({ type, properties }: Json): boolean =>
  type === 'object' || (type === undefined && isPresent(properties))

const hasAlternatives = (schema: Json): boolean => [...LISTED].some((keyword) => isPresent(schema[keyword]))

/** An object of which any member is allowed is more than its listed members when it lists none, or types the others. */
function hasFreeNames(schema: Json): boolean {
  if (isPresent(schema.patternProperties)) return true
  const others = schema.additionalProperties
  if (others === false) return false
  const typed = Object.keys(objectOf(others)).length > 0
  return typed || !isPresent(schema.properties)
}

function describe(schema: Json, unsupported: Json): Json {
  const constraints = Object.entries(unsupported).map(([name, value]) => `${name}: ${JSON.stringify(value)}`)
  if (constraints.length === 0) return schema
  const note = `(${constraints.join(', ')})`
  const described = textOf(schema.description)
  return { ...schema, description: described === '' ? note : `${described} ${note}` }
}

/**
 * Whether chat completions take the schema for strict answers: each object lists all its members as required and
 * allows no others (https://platform.openai.com/docs/guides/structured-outputs#supported-schemas).
 */
export function fitsStrictChat(schema: Json): boolean {
  if (isObjectSchema(schema)) {
    const names = Object.keys(objectOf(schema.properties))
    const required = new Set(Array.isArray(schema.required) ? schema.required : [])
    if (schema.additionalProperties !== false || names.some((name) => !required.has(name))) return false
  }
  return innerSchemas(schema).every(fitsStrictChat)
}

function innerSchemas(schema: Json): Json[] {
  return Object.entries(schema).flatMap(([keyword, value]) => {
    if (NAMED.has(keyword)) return Object.values(objectOf(value)).map(objectOf)
    if (LISTED.has(keyword) && Array.isArray(value)) return value.map(objectOf)
    return keyword === 'items' ? [objectOf(value)] : []
  })
}
