import { invalidRequest } from '../../../lib/api-error.ts'
import { type Json, present } from '../../protocols/json.ts'
import {
  nameAt,
  objectAt,
  optionalFlag,
  optionalNumber,
  optionalObject,
  optionalText,
} from './read-values.ts'
import { fitsStrictChat } from './schemas.ts'
import { usableToolName } from './tool-names.ts'

/** Members of a responses request other than its conversation and tools, as in chat completions. */
export interface ResponsesSettings {
  stream: boolean
  maxTokens: number | undefined
  /** Sampling members, which have the same names in both protocols. */
  sampling: Json
  effort: string | undefined
  /** Requests readable thinking. */
  summary: string | undefined
  /** `response_format`. */
  format: Json | undefined
  user: string | undefined
  safetyIdentifier: string | undefined
  /** Members that only OpenAI takes. */
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
    // An unknown effort is dropped: it only tunes the answer.
    effort: EFFORTS.has(effort) ? effort : undefined,
    summary: optionalText(reasoning.summary, 'reasoning.summary'),
    format: responseFormat(text.format),
    user: optionalText(request.user, 'user'),
    safetyIdentifier,
    ofOpenAi: {
      // The default is left out, because models without other values refuse the member.
      verbosity: verbosity === 'medium' ? undefined : verbosity,
      prompt_cache_key: optionalText(request.prompt_cache_key, 'prompt_cache_key'),
      safety_identifier: safetyIdentifier,
      service_tier: optionalText(request.service_tier, 'service_tier'),
    },
  }
}

const SAMPLING = ['temperature', 'top_p', 'presence_penalty', 'frequency_penalty']

/** `text.format` as `response_format`; undefined for plain text. */
function responseFormat(given: unknown): Json | undefined {
  const format = optionalObject(given, 'text.format')
  if (!format || format.type === 'text') return undefined
  if (format.type === 'json_object') return { type: 'json_object' }
  if (format.type !== 'json_schema') {
    throw invalidRequest("text.format.type: Input should be 'text', 'json_object' or 'json_schema'.")
  }
  const schema = objectAt(format.schema, 'text.format.schema')
  const strict = optionalFlag(format.strict, 'text.format.strict') === true
  const json_schema = present({
    name: usableToolName(nameAt(format.name ?? 'answer', 'text.format.name')),
    description: optionalText(format.description, 'text.format.description'),
    schema,
    // Chat models refuse a strict schema that does not fit their rules.
    strict: strict && fitsStrictChat(schema) ? true : undefined,
  })
  return { type: 'json_schema', json_schema }
}
