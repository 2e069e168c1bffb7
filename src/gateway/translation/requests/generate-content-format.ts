import { isPresent, type Json, objectOf, present, textOf } from '../../protocols/json.ts'
import { can, type TargetModel } from '../target-model.ts'
import type { CanonicalFormat } from './canonical-request.ts'
import { formatsBesideTools, geminiModel } from './generate-content-models.ts'
import { mergedSchema } from './merged-schemas.ts'
import { chatOutputFormat, type ToolsBeside } from './output-format.ts'

/** Members of `generationConfig` for the format of an answer, and an instruction in place of what the model lacks. */
interface GeminiFormat {
  members: Json
  /** To be added to the system instruction. */
  instruction: string | null
}

/**
 * JSON mode is native to all Gemini models; a schema needs the capability. A generation that takes no format beside tools
 * gets an instruction where tools may be called.
 */
export function geminiFormat(
  format: CanonicalFormat | null,
  target: TargetModel,
  beside: ToolsBeside,
): GeminiFormat {
  if (format === null) return { members: {}, instruction: null }
  const conflicts = beside.mayCallTools && !formatsBesideTools(geminiModel(target.upstreamModel))
  if (!conflicts && format.kind === 'json_object') {
    return { members: { responseMimeType: 'application/json' }, instruction: null }
  }
  if (!conflicts && format.kind === 'json_schema' && can(target, 'json_schema')) {
    return {
      members: { responseMimeType: 'application/json', responseJsonSchema: responseSchema(format.schema) },
      instruction: null,
    }
  }
  const capabilities = conflicts ? [] : ['json_object']
  const { format: mode, instruction } = chatOutputFormat(
    chatFormat(format),
    { ...target, capabilities },
    beside,
  )
  return { members: mode ? { responseMimeType: 'application/json' } : {}, instruction }
}

const chatFormat = (format: CanonicalFormat): Json =>
  format.kind === 'json_object'
    ? { type: 'json_object' }
    : { type: 'json_schema', json_schema: { name: format.name, schema: format.schema } }

/** Keywords of `responseJsonSchema` (https://ai.google.dev/api/generate-content#generationconfig). */
const PLAIN = new Set([
  'type',
  'format',
  'title',
  'description',
  'enum',
  'minItems',
  'maxItems',
  'minimum',
  'maximum',
  'required',
  '$ref',
  '$id',
  '$anchor',
])
const NAMED = new Set(['properties', '$defs'])
const LISTED = new Set(['anyOf', 'oneOf', 'prefixItems'])
/** Keywords without effect on what a schema allows. */
const SILENT = new Set(['$schema', '$comment', 'default', 'examples', 'definitions'])
const OLD_DEFINITIONS = /^#\/definitions\//

/**
 * A schema in the keywords that the vendor has; other constraints move to the description.
 * @internal for tests of the keywords alone.
 */
export function responseSchema(given: Json): Json {
  const schema = mergedSchema(given)
  const result: Json = {}
  const others: Json = {}
  for (const [keyword, value] of Object.entries(schema)) {
    if (keyword === '$ref') result.$ref = textOf(value).replace(OLD_DEFINITIONS, '#/$defs/')
    else if (PLAIN.has(keyword)) result[keyword] = value
    else if (NAMED.has(keyword)) result[keyword] = mapped(value)
    else if (LISTED.has(keyword) && Array.isArray(value)) result[keyword] = value.map(inner)
    else if (keyword === 'items' || keyword === 'additionalProperties') result[keyword] = inner(value)
    else if (keyword === 'const' && !isPresent(schema.enum)) result.enum = [value]
    else if (!SILENT.has(keyword)) others[keyword] = value
  }
  if (isPresent(schema.definitions)) {
    result.$defs = { ...mapped(schema.definitions), ...objectOf(result.$defs) }
  }
  return described(result, others)
}

/** Schemas may be true or false. */
const inner = (value: unknown): unknown =>
  typeof value === 'boolean' ? value : responseSchema(objectOf(value))

const mapped = (members: unknown): Json =>
  Object.fromEntries(Object.entries(objectOf(members)).map(([name, value]) => [name, inner(value)]))

function described(schema: Json, others: Json): Json {
  const notes = Object.entries(others).map(([name, value]) => `${name}: ${JSON.stringify(value)}`)
  if (notes.length === 0) return schema
  const text = [textOf(schema.description), `(${notes.join(', ')})`].filter((part) => part !== '').join(' ')
  return present({ ...schema, description: text })
}
