import { type Json, objectOf, textOf } from '../json.ts'
import { can, type TargetModel } from '../target-model.ts'
import { mayCallTools } from './tools.ts'

/**
 * Whether the answer of a messages upstream to a chat completion request is to be raw JSON by instruction, and rid of
 * a code fence that the model may put around it all the same (interface: JSON mode). The protocol has no mode without
 * a schema, whoever serves it. Beside tools that may be called the answer may be prose (case 4), because the
 * instruction would keep models from calling them; beside thinking (case 5) JSON does no harm. A schema is enforced in
 * the same way on models that have no output format.
 */
export function stripsFences(request: Json, target: TargetModel): boolean {
  const format = textOf(objectOf(request.response_format).type)
  if (format === 'json_object') return !mayCallTools(request)
  return format === 'json_schema' && !can(target, 'json_schema')
}

/** The format that a messages request asks for, by its name of today or the older one. */
export const formatOfMessages = (request: Json): Json =>
  objectOf(objectOf(request.output_config).format ?? request.output_format)

/**
 * The same for a messages request to a chat upstream: whether its schema is enforced by instruction, because the model
 * cannot be held to one.
 */
export const stripsFencesOfChat = (request: Json, target: TargetModel): boolean =>
  formatOfMessages(request).type === 'json_schema' && !can(target, 'json_schema')

const RAW = 'Write it as raw JSON: no code fence, no explanation and nothing else before or after it.'

/** The instruction for requests of which `stripsFences` is true; null for all others. */
export function jsonInstruction(request: Json, target: TargetModel): string | null {
  if (!stripsFences(request, target)) return null
  const format = objectOf(request.response_format)
  if (format.type === 'json_object') return `Answer with exactly one JSON object. ${RAW}`
  return schemaInstruction(objectOf(objectOf(format.json_schema).schema), mayCallTools(request))
}

/** Asks for an answer that fits a schema. @param callsTools whether the model may call tools instead. */
export function schemaInstruction(schema: Json, callsTools: boolean): string {
  const unless = callsTools ? ' Tools may still be called before the answer.' : ''
  return `Answer with exactly one JSON value that fits the JSON schema below. ${RAW}${unless}\n\n${JSON.stringify(schema)}`
}
