import { isRecord, type JsonRecord, toList, toRecord } from '../json-value.ts'

/** A place in a JSON schema, with the names on the way to it. */
interface SchemaPlace {
  schema: JsonRecord
  path: string[]
}

const maximumPlaces = 5000

/** A schema and all schemas in it, outer ones first. */
export function* schemasWithin(root: unknown): Iterable<SchemaPlace> {
  const open: SchemaPlace[] = isRecord(root) ? [{ schema: root, path: [] }] : []
  for (let seen = 0; open.length > 0 && seen < maximumPlaces; seen += 1) {
    const place = open.shift()
    if (place === undefined) return
    yield place
    open.push(...childrenOf(place))
  }
}

function childrenOf({ schema, path }: SchemaPlace): SchemaPlace[] {
  const named = ['properties', '$defs', 'definitions'].flatMap((member) =>
    Object.entries(toRecord(schema[member])).map(([name, child]) => ({
      child,
      path: [...path, member, name],
    })),
  )
  const listed = ['anyOf', 'oneOf', 'allOf'].flatMap((member) =>
    toList(schema[member]).map((child, index) => ({ child, path: [...path, member, String(index)] })),
  )
  const items = { child: schema.items, path: [...path, 'items'] }
  return [...named, ...listed, items].flatMap(({ child, path }) =>
    isRecord(child) ? [{ schema: child, path }] : [],
  )
}

function isObjectSchema(schema: JsonRecord): boolean {
  return schema.type === 'object' || (Array.isArray(schema.type) && schema.type.includes('object'))
}

const contextOf = (path: string[]): string =>
  `(${path.map((name) => `'${name}'`).join(', ')}${path.length === 1 ? ',' : ''})`

/**
 * Faults of a schema in OpenAI's strict mode: every object must be closed and every property required.
 * https://platform.openai.com/docs/guides/structured-outputs#supported-schemas
 */
export function strictSchemaFault(root: unknown): string | undefined {
  if (!isObjectSchema(toRecord(root))) {
    return `schema must be a JSON Schema of 'type: "object"', got 'type: "${String(toRecord(root).type ?? 'None')}"'.`
  }
  for (const { schema, path } of schemasWithin(root)) {
    if (!isObjectSchema(schema)) continue
    if (schema.additionalProperties !== false) {
      return `In context=${contextOf(path)}, 'additionalProperties' is required to be supplied and to be false.`
    }
    const required = toList(schema.required)
    const missing = Object.keys(toRecord(schema.properties)).find((name) => !required.includes(name))
    if (missing !== undefined) {
      return `In context=${contextOf(path)}, 'required' is required to be supplied and to be an array including every key in properties. Missing '${missing}'.`
    }
  }
  return undefined
}

/** The fault that OpenAI finds in the parameters of a function: they must be an object, and arrays must have `items`. */
export function parametersFault(root: unknown): string | undefined {
  const record = toRecord(root)
  if (Object.keys(record).length === 0) return undefined
  if (record.type !== 'object') {
    return `schema must be a JSON Schema of 'type: "object"', got 'type: "${String(record.type ?? 'None')}"'.`
  }
  for (const { schema, path } of schemasWithin(root)) {
    if (schema.type === 'array' && schema.items === undefined && schema.prefixItems === undefined) {
      return `In context=${contextOf(path)}, array schema missing items.`
    }
  }
  return undefined
}

/** Keywords that Anthropic's structured output lacks, by type. */
const unsupported = new Map([
  ['number', ['exclusiveMaximum', 'exclusiveMinimum', 'maximum', 'minimum', 'multipleOf']],
  ['integer', ['exclusiveMaximum', 'exclusiveMinimum', 'maximum', 'minimum', 'multipleOf']],
  ['string', ['maxLength', 'minLength']],
  ['array', ['maxItems', 'uniqueItems']],
])

/**
 * Faults of a schema in Anthropic's structured output: objects must be closed, and bounds are not supported.
 * https://docs.claude.com/en/docs/build-with-claude/structured-outputs#json-schema-limitations
 */
export function outputSchemaFault(root: unknown): string | undefined {
  for (const { schema } of schemasWithin(root)) {
    if (isObjectSchema(schema) && schema.additionalProperties !== false) {
      return schema.additionalProperties === undefined
        ? "For 'object' type, 'additionalProperties' must be explicitly set to false"
        : `For 'object' type, 'additionalProperties: ${JSON.stringify(schema.additionalProperties)}' is not supported. Please set 'additionalProperties' to false`
    }
    const type = String(schema.type)
    const found = (unsupported.get(type) ?? []).filter((keyword) => keyword in schema)
    if (found.length > 0) return `For '${type}' type, properties ${found.join(', ')} are not supported`
    if (type === 'array' && Number(schema.minItems ?? 0) > 1) {
      return "For 'array' type, 'minItems' values other than 0 or 1 are not supported"
    }
  }
  return undefined
}
