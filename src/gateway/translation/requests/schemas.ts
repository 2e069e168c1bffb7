import { isPresent, type Json, objectOf, present, textOf } from '../json.ts'

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
/** Keywords that hold schemas by name, or a list of them, or one. */
const NAMED = new Set(['properties', '$defs', 'definitions'])
const LISTED = new Set(['anyOf', 'allOf'])

/**
 * A schema as the messages protocol takes it for constrained answers: no object has members beyond those listed, and
 * constraints that the vendor cannot hold an answer to are told in the description instead.
 * @returns null when an object must have members of free names, which cannot be said there.
 */
export function constrainedSchema(schema: Json): Json | null {
  const found = { freeNames: false }
  const result = constrained(schema, found)
  return found.freeNames ? null : result
}

function constrained(schema: Json, found: { freeNames: boolean }): Json {
  const [only, second] = Array.isArray(schema.allOf) ? schema.allOf : []
  if (only !== undefined && second === undefined) {
    const { allOf: _allOf, ...rest } = schema
    return constrained({ ...rest, ...objectOf(only) }, found)
  }
  const result: Json = {}
  const untold: Json = {}
  const deeper = (value: unknown) => constrained(objectOf(value), found)
  for (const [keyword, value] of Object.entries(schema)) {
    if (PLAIN.has(keyword) && isSimple(value)) result[keyword] = value
    else if (NAMED.has(keyword)) result[keyword] = mapMembers(objectOf(value), deeper)
    else if (LISTED.has(keyword) && Array.isArray(value)) result[keyword] = value.map(deeper)
    else if (keyword === 'oneOf' && Array.isArray(value)) result.anyOf = value.map(deeper)
    else if (keyword === 'items') result.items = deeper(value)
    else if (keyword === 'format' && FORMATS.has(textOf(value))) result.format = value
    else if (keyword === 'minItems' && (value === 0 || value === 1)) result.minItems = value
    else if (keyword !== 'additionalProperties' && keyword !== '$schema') untold[keyword] = value
  }
  if (isPresent(schema.$ref)) return withDefinitions(result)
  // Alternatives close their own objects.
  if (isObjectSchema(schema) && (isPresent(schema.properties) || !hasAlternatives(schema))) {
    if (hasFreeNames(schema)) found.freeNames = true
    result.additionalProperties = false
  }
  return describe(result, untold)
}

/** Values within `enum` and `const` are scalars at the vendor. */
const isSimple = (value: unknown): boolean => (Array.isArray(value) ? value.every(isScalar) : isScalar(value))
const isScalar = (value: unknown): boolean => typeof value !== 'object' || value === null

/** The vendor takes nothing beside a reference but the definitions it may refer to. */
const withDefinitions = ({ $ref, $defs, definitions }: Json): Json => present({ $ref, $defs, definitions })

const mapMembers = (members: Json, make: (value: unknown) => Json): Json =>
  Object.fromEntries(Object.entries(members).map(([name, value]) => [name, make(value)]))

const isObjectSchema = (schema: Json): boolean =>
  schema.type === 'object' ||
  (Array.isArray(schema.type) && schema.type.includes('object')) ||
  isPresent(schema.properties)

const hasAlternatives = (schema: Json): boolean =>
  ['anyOf', 'oneOf', 'allOf'].some((keyword) => isPresent(schema[keyword]))

/** An object of which any member is allowed is more than its listed members when it lists none, or types the others. */
function hasFreeNames(schema: Json): boolean {
  if (isPresent(schema.patternProperties)) return true
  const others = schema.additionalProperties
  if (others === false) return false
  const typed = typeof others === 'object' && others !== null && Object.keys(others).length > 0
  return typed || !isPresent(schema.properties)
}

function describe(schema: Json, untold: Json): Json {
  const constraints = Object.entries(untold).map(([name, value]) => `${name}: ${JSON.stringify(value)}`)
  if (constraints.length === 0) return schema
  const told = `(${constraints.join(', ')})`
  const described = textOf(schema.description)
  return { ...schema, description: described === '' ? told : `${described} ${told}` }
}

/**
 * Whether chat completions take the schema for strict answers: each object lists all its members as required and
 * allows no others (https://platform.openai.com/docs/guides/structured-outputs#supported-schemas).
 */
export function fitsStrictChat(schema: Json): boolean {
  if (isObjectSchema(schema)) {
    const names = Object.keys(objectOf(schema.properties))
    const required = Array.isArray(schema.required) ? schema.required : []
    if (schema.additionalProperties !== false || names.some((name) => !required.includes(name))) return false
  }
  return innerSchemas(schema).every(fitsStrictChat)
}

function innerSchemas(schema: Json): Json[] {
  return Object.entries(schema).flatMap(([keyword, value]) => {
    if (NAMED.has(keyword)) return Object.values(objectOf(value)).map(objectOf)
    if (['anyOf', 'allOf', 'oneOf'].includes(keyword) && Array.isArray(value)) return value.map(objectOf)
    return keyword === 'items' ? [objectOf(value)] : []
  })
}
