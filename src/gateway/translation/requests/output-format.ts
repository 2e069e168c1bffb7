import { invalidRequest } from '../../../lib/api-error.ts'
import { isPresent, type Json, listOf, objectOf } from '../json.ts'
import { can, type TargetModel } from '../target-model.ts'
import { formatOfMessages, schemaInstruction, stripsFencesOfChat } from './json-mode.ts'
import { constrainedSchema, fitsStrictChat, isOfObjectsAlone } from './schemas.ts'

/**
 * `json_schema` of chat completions as the messages protocol's output format, for models that have one.
 * @param place of the schema in the caller's request, for the error.
 * @throws ApiError for a schema that the vendor cannot hold an answer to without changing what it allows.
 */
export function messagesOutputFormat(
  request: Json,
  target: TargetModel,
  place = 'response_format.json_schema.schema',
): Json | undefined {
  const format = objectOf(request.response_format)
  if (format.type !== 'json_schema') return undefined
  const given = objectOf(format.json_schema).schema
  if (!isPresent(given)) throw invalidRequest(`${place}: Field required.`)
  if (!can(target, 'json_schema')) return undefined
  const schema = constrainedSchema(objectOf(given))
  if (schema) return { type: 'json_schema', schema }
  throw invalidRequest(
    `${place}: objects with members of any name are not supported by this model: list their properties, or use ` +
      'json_object.',
  )
}

export interface ChatFormat {
  responseFormat: Json | undefined
  /** What the system message has to say where the model has no such format. */
  instruction: string | null
}

/** The messages protocol's output format as `response_format`, as far as the model has it. */
export function chatOutputFormat(request: Json, target: TargetModel): ChatFormat {
  const format = formatOfMessages(request)
  if (format.type !== 'json_schema') return { responseFormat: undefined, instruction: null }
  const schema = objectOf(format.schema)
  const callsTools = listOf(request.tools).length > 0 && objectOf(request.tool_choice).type !== 'none'
  if (!stripsFencesOfChat(request, target)) {
    const wanted = { name: 'answer', strict: fitsStrictChat(schema), schema }
    return { responseFormat: { type: 'json_schema', json_schema: wanted }, instruction: null }
  }
  // The mode is one of objects: beside a schema of something else it would ask for both.
  const asObject = can(target, 'json_object') && isOfObjectsAlone(schema)
  const responseFormat = asObject ? { type: 'json_object' } : undefined
  return { responseFormat, instruction: schemaInstruction(schema, callsTools) }
}
