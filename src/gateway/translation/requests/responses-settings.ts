import { invalidRequest } from '../../../lib/api-error.ts'
import { type Json, present } from '../json.ts'
import { can, type TargetModel } from '../target-model.ts'
import { jsonInstruction, stripsFences } from './json-mode.ts'
import { type ChatFormat, chatOutputFormat } from './output-format.ts'
import {
  nameAt,
  objectAt,
  optionalFlag,
  optionalNumber,
  optionalObject,
  optionalText,
} from './read-values.ts'
import { ResponsesTools } from './responses-tools.ts'
import { fitsStrictChat } from './schemas.ts'
import { usableToolName } from './tool-names.ts'

/** What a responses request says besides its conversation and tools, in the words of chat completions. */
export interface ResponsesSettings {
  stream: boolean
  maxTokens: number | undefined
  /** Members that tune the sampling, by their names, which both protocols share. */
  sampling: Json
  effort: string | undefined
  /** Whether the caller wants to read what the model thought. */
  summary: string | undefined
  /** `response_format`. */
  format: Json | undefined
  user: string | undefined
  safetyIdentifier: string | undefined
  /** Members that only one vendor knows. */
  ofOpenAi: Json
}

const EFFORTS = new Set(['none', 'minimal', 'low', 'medium', 'high', 'xhigh'])

/** @throws ApiError invalid_request naming a member of another type than it has. */
export function settingsOfResponses(request: Json): ResponsesSettings {
  for (const name of SAMPLING) optionalNumber(request[name], name)
  optionalNumber(request.top_logprobs, 'top_logprobs')
  const reasoning = optionalObject(request.reasoning, 'reasoning') ?? {}
  const effort = optionalText(reasoning.effort, 'reasoning.effort') ?? ''
  const text = optionalObject(request.text, 'text') ?? {}
  const verbosity = optionalText(text.verbosity, 'text.verbosity')
  const safetyIdentifier = optionalText(request.safety_identifier, 'safety_identifier')
  return {
    stream: optionalFlag(request.stream, 'stream') === true,
    maxTokens: optionalNumber(request.max_output_tokens, 'max_output_tokens'),
    sampling: Object.fromEntries(SAMPLING.map((name) => [name, request[name]])),
    // It only tunes: a word of tomorrow is none.
    effort: EFFORTS.has(effort) ? effort : undefined,
    summary: optionalText(reasoning.summary, 'reasoning.summary'),
    format: responseFormat(text.format),
    user: optionalText(request.user, 'user'),
    safetyIdentifier,
    ofOpenAi: {
      // The default, which models that know no other refuse to be told.
      verbosity: verbosity === 'medium' ? undefined : verbosity,
      prompt_cache_key: optionalText(request.prompt_cache_key, 'prompt_cache_key'),
      safety_identifier: safetyIdentifier,
      service_tier: optionalText(request.service_tier, 'service_tier'),
    },
  }
}

const SAMPLING = ['temperature', 'top_p', 'presence_penalty', 'frequency_penalty']

/** `text.format` as `response_format`. Plain text is what there is without one. */
function responseFormat(given: unknown): Json | undefined {
  const format = optionalObject(given, 'text.format')
  if (!format || format.type === 'text') return undefined
  if (format.type === 'json_object') return { type: 'json_object' }
  if (format.type !== 'json_schema') {
    throw invalidRequest("text.format.type: Input should be 'text', 'json_object' or 'json_schema'.")
  }
  const json_schema = present({
    name: usableToolName(nameAt(format.name ?? 'answer', 'text.format.name')),
    description: optionalText(format.description, 'text.format.description'),
    schema: objectAt(format.schema, 'text.format.schema'),
    strict: optionalFlag(format.strict, 'text.format.strict'),
  })
  return { type: 'json_schema', json_schema }
}

/**
 * `response_format` of a chat model, as far as it has it, and what it has to be told instead.
 * @param tools `tools` and `tool_choice` of the chat completion request.
 */
export function chatFormatOf(format: Json | undefined, target: TargetModel, tools: Json): ChatFormat {
  const plain = { responseFormat: undefined, instruction: null }
  if (!format) return plain
  if (format.type === 'json_object') {
    return can(target, 'json_object')
      ? { responseFormat: format, instruction: null }
      : { ...plain, instruction: jsonInstruction({ response_format: format, ...tools }, target) }
  }
  const { schema, strict, ...named } = objectAt(format.json_schema, 'text.format')
  if (!can(target, 'json_schema')) {
    const asked = { output_config: { format: { type: 'json_schema', schema } } }
    return chatOutputFormat(
      { ...asked, tools: tools.tools, tool_choice: { type: tools.tool_choice } },
      target,
    )
  }
  const fits = fitsStrictChat(objectAt(schema, 'text.format.schema'))
  // The vendor refuses what does not fit to be strict.
  const wanted = { ...named, schema, ...(strict === true && fits ? { strict } : {}) }
  return { responseFormat: { type: 'json_schema', json_schema: wanted }, instruction: null }
}

/**
 * Whether the answer to a responses request is to be JSON by instruction, and rid of a code fence around it; by the
 * protocol of the upstream.
 * @throws ApiError invalid_request for what `responsesToChat` and `responsesToMessages` would refuse.
 */
export const stripsFencesOfResponses = {
  messages: (request: Json, target: TargetModel): boolean =>
    stripsFences({ response_format: settingsOfResponses(request).format, ...toolsOf(request) }, target),
  chat_completions: (request: Json, target: TargetModel): boolean =>
    chatFormatOf(settingsOfResponses(request).format, target, toolsOf(request)).instruction !== null,
}

function toolsOf(request: Json): Json {
  const tools = new ResponsesTools(request.tools)
  return { tools: tools.asFunctions(), tool_choice: tools.choice(request.tool_choice) }
}
