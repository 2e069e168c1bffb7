import { invalidRequest } from '../../../lib/api-error.ts'
import { isPresent, type Json, objectOf } from '../../protocols/json.ts'
import { can, type TargetModel } from '../target-model.ts'
import { constrainedSchema, fitsStrictChat, isOfObjectsAlone } from './schemas.ts'

/** The way a translated request asks for JSON: by a member, by an instruction, or by both. */
interface OutputFormat {
  format: Json | undefined
  /** To be added to the system prompt. */
  instruction: string | null
}

/** A converted request. */
export interface ConvertedRequest {
  body: Json
  /**
   * Whether only an instruction makes the answer JSON: the model may put a code fence around it, which has to be
   * removed (interface: JSON mode).
   */
  jsonByInstruction: boolean
  /** Members of the request that had to be dropped. */
  dropped: readonly string[]
}

const NO_FORMAT: OutputFormat = { format: undefined, instruction: null }
const RAW = 'Write it as raw JSON: no code fence, no explanation and nothing else before or after it.'
const OBJECT_INSTRUCTION = `Answer with exactly one JSON object. ${RAW}`
const BESIDE_TOOLS = ' Tools may still be called before the answer.'

/** Tools that the model may call beside a format. */
export interface ToolsBeside {
  mayCallTools: boolean
  /** Whether an object is requested by an instruction also then. Responses always have tools; on chat there is none. */
  instructs: boolean
}

const objectInstruction = ({ mayCallTools, instructs }: ToolsBeside): string | null => {
  if (!mayCallTools) return OBJECT_INSTRUCTION
  return instructs ? OBJECT_INSTRUCTION + BESIDE_TOOLS : null
}

function schemaInstruction(schema: Json, { mayCallTools }: ToolsBeside): string {
  const unless = mayCallTools ? BESIDE_TOOLS : ''
  return `Answer with exactly one JSON value that fits the JSON schema below. ${RAW}${unless}\n\n${JSON.stringify(schema)}`
}

/**
 * `response_format` of a chat completion request in the messages protocol, which has no JSON mode without a schema. An
 * instruction beside tools that may be called would keep models from calling them, so there is none on chat (case 4).
 * @param format `response_format`. @param place of the schema in the caller's request, for the error.
 * @throws ApiError for a schema that the vendor cannot enforce without changing what it allows.
 */
export function messagesOutputFormat(
  format: Json,
  target: TargetModel,
  beside: ToolsBeside,
  place = 'response_format.json_schema.schema',
): OutputFormat {
  if (format.type === 'json_object') {
    return { format: undefined, instruction: objectInstruction(beside) }
  }
  if (format.type !== 'json_schema') return NO_FORMAT
  const given = objectOf(format.json_schema).schema
  if (!isPresent(given)) throw invalidRequest(`${place}: Field required.`)
  if (!can(target, 'json_schema')) {
    return { format: undefined, instruction: schemaInstruction(objectOf(given), beside) }
  }
  const schema = constrainedSchema(objectOf(given))
  if (schema) return { format: { type: 'json_schema', schema }, instruction: null }
  throw invalidRequest(
    `${place}: objects with members of any name are not supported by this model: list their properties, or use ` +
      'json_object.',
  )
}

/** The output format of a messages request, under its current or its older name, as `response_format`. */
export function responseFormatOfMessages(request: Json): Json | undefined {
  const format = objectOf(objectOf(request.output_config).format ?? request.output_format)
  if (format.type !== 'json_schema') return undefined
  const schema = objectOf(format.schema)
  return { type: 'json_schema', json_schema: { name: 'answer', strict: fitsStrictChat(schema), schema } }
}

/** @returns a `response_format` as far as the chat model supports it, and an instruction in place of the rest. */
export function chatOutputFormat(
  format: Json | undefined,
  target: TargetModel,
  beside: ToolsBeside,
): OutputFormat {
  if (!format) return NO_FORMAT
  if (can(target, format.type === 'json_object' ? 'json_object' : 'json_schema')) {
    return { format, instruction: null }
  }
  if (format.type === 'json_object') {
    return { format: undefined, instruction: objectInstruction(beside) }
  }
  const schema = objectOf(objectOf(format.json_schema).schema)
  // JSON mode demands an object, which contradicts a schema of anything else.
  const asObject = can(target, 'json_object') && isOfObjectsAlone(schema)
  return {
    format: asObject ? { type: 'json_object' } : undefined,
    instruction: schemaInstruction(schema, beside),
  }
}
