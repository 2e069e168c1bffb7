import { type Json, objectOf } from '../json.ts'

/** `json_schema` of chat completions as the messages protocol's output format. */
export function messagesOutputFormat(request: Json): Json | undefined {
  const format = objectOf(request.response_format)
  if (format.type !== 'json_schema') return undefined
  return { type: 'json_schema', schema: objectOf(format.json_schema).schema ?? {} }
}

/** The messages protocol's output format as `response_format`. */
export function chatResponseFormat(request: Json): Json | undefined {
  const format = objectOf(objectOf(request.output_config).format ?? request.output_format)
  if (format.type !== 'json_schema') return undefined
  return { type: 'json_schema', json_schema: { name: 'answer', strict: true, schema: format.schema } }
}
