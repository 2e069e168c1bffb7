import { isRecord, type JsonRecord, toList, toNumber, toRecord, toText } from '../json-value.ts'
import type { ModelTraits } from '../model-traits.ts'
import { missingFault, nameFault, typeFault, valueFault } from './chat-messages.ts'
import { type Fault, firstFault } from './fault.ts'
import { strictSchemaFault } from './schema-rules.ts'

const maximumStops = 4

const bounds: [name: string, minimum: number, maximum: number][] = [
  ['n', 1, 128],
  ['temperature', 0, 2],
  ['top_p', 0, 1],
  ['presence_penalty', -2, 2],
  ['frequency_penalty', -2, 2],
  ['top_logprobs', 0, 20],
  ['max_tokens', 1, Number.POSITIVE_INFINITY],
  ['max_completion_tokens', 1, Number.POSITIVE_INFINITY],
]

/** Faults for which OpenAI refuses members other than messages and tools. */
export function findChatOptionsFault(body: JsonRecord, traits: ModelTraits): Fault | undefined {
  return (
    firstFault(bounds, ([name, minimum, maximum]) => boundFault(body[name], name, minimum, maximum)) ??
    combinationFault(body) ??
    stopFault(body.stop) ??
    maximumFault(body, traits) ??
    (traits.reasoning ? reasoningFault(body, traits) : effortFault(body)) ??
    formatFault(body, traits)
  )
}

function boundFault(value: unknown, name: string, minimum: number, maximum: number): Fault | undefined {
  if (value === undefined || value === null) return undefined
  const number = toNumber(value)
  if (number === undefined) return typeFault(name, 'a number', value)
  if (number >= minimum && number <= maximum) return undefined
  const low = number < minimum
  const [side, limit, word] = low ? ['below minimum', minimum, '>='] : ['above maximum', maximum, '<=']
  return {
    message: `Invalid '${name}': decimal ${side} value. Expected a value ${word} ${limit}, but got ${number} instead.`,
    param: name,
    code: low ? 'decimal_below_min_value' : 'decimal_above_max_value',
  }
}

function combinationFault(body: JsonRecord): Fault | undefined {
  if (isPresent(body.stream_options) && body.stream !== true) {
    return {
      message: "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
      param: 'stream_options',
    }
  }
  if (isPresent(body.max_tokens) && isPresent(body.max_completion_tokens)) {
    return {
      message: "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.",
      code: 'invalid_parameter_combination',
    }
  }
  if (isPresent(body.logprobs) && typeof body.logprobs !== 'boolean') {
    return typeFault('logprobs', 'a boolean', body.logprobs)
  }
  if (isPresent(body.top_logprobs) && body.logprobs !== true) {
    return {
      message: "Invalid value for 'top_logprobs': 'top_logprobs' is only allowed when 'logprobs' is enabled.",
      param: 'top_logprobs',
    }
  }
  return undefined
}

const isPresent = (value: unknown): boolean => value !== undefined && value !== null

function stopFault(stop: unknown): Fault | undefined {
  if (!isPresent(stop) || typeof stop === 'string') return undefined
  if (!Array.isArray(stop)) return typeFault('stop', 'one of a string or array of strings', stop)
  if (stop.length <= maximumStops) return undefined
  return {
    message: `Invalid 'stop': array too long. Expected an array with maximum length ${maximumStops}, but got an array with length ${stop.length} instead.`,
    param: 'stop',
    code: 'array_above_max_length',
  }
}

function maximumFault(body: JsonRecord, { maximumOutput }: ModelTraits): Fault | undefined {
  const name =
    body.max_tokens === undefined || body.max_tokens === null ? 'max_completion_tokens' : 'max_tokens'
  const asked = toNumber(body[name]) ?? 0
  if (asked <= maximumOutput) return undefined
  return {
    message: `${name} is too large: ${asked}. This model supports at most ${maximumOutput} completion tokens, whereas you provided ${asked}.`,
    param: name,
    code: 'invalid_value',
  }
}

const efforts = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh']
const fixedAtOne = ['temperature', 'top_p']
const notWhenReasoning = ['presence_penalty', 'frequency_penalty', 'logprobs', 'top_logprobs', 'stop']

/** https://platform.openai.com/docs/guides/reasoning and latest-model#parameter-compatibility */
function reasoningFault(body: JsonRecord, { toolsWhileReasoning }: ModelTraits): Fault | undefined {
  if (isPresent(body.max_tokens)) {
    return {
      message:
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
      param: 'max_tokens',
      code: 'unsupported_parameter',
    }
  }
  const moved = fixedAtOne.find((name) => isPresent(body[name]) && body[name] !== 1)
  if (moved !== undefined) {
    return {
      message: `Unsupported value: '${moved}' does not support ${String(body[moved])} with this model. Only the default (1) value is supported.`,
      param: moved,
      code: 'unsupported_value',
    }
  }
  const refused = notWhenReasoning.find(
    (name) => isPresent(body[name]) && body[name] !== 0 && body[name] !== false,
  )
  if (refused !== undefined) {
    return {
      message: `Unsupported parameter: '${refused}' is not supported with this model.`,
      param: refused,
      code: 'unsupported_parameter',
    }
  }
  const { reasoning_effort: effort } = body
  // https://github.com/openai/openai-openapi/issues/541
  if (!toolsWhileReasoning && toList(body.tools).length > 0 && effort !== 'none') {
    return {
      message: `Function tools with reasoning_effort are not supported for ${toText(body.model)} in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'.`,
      param: 'reasoning_effort',
    }
  }
  if (!isPresent(effort) || efforts.includes(toText(effort))) return undefined
  return valueFault(effort, efforts, 'reasoning_effort')
}

function effortFault(body: JsonRecord): Fault | undefined {
  if (!isPresent(body.reasoning_effort)) return undefined
  return { message: 'Unrecognized request argument supplied: reasoning_effort', param: null, code: null }
}

function formatFault(body: JsonRecord, traits: ModelTraits): Fault | undefined {
  const { response_format: format } = body
  if (!isPresent(format)) return undefined
  const { type, json_schema: definition } = toRecord(format)
  const types = ['json_object', 'json_schema', 'text']
  if (type === undefined) return missingFault('response_format.type')
  if (!types.includes(toText(type))) return valueFault(type, types, 'response_format.type')
  const supported = { json_object: traits.jsonObject, json_schema: traits.jsonSchema }[toText(type)] ?? true
  if (!supported) {
    return {
      message: `Invalid parameter: 'response_format' of type '${toText(type)}' is not supported with this model.`,
      param: 'response_format',
    }
  }
  if (type === 'json_object') return jsonWordFault(body)
  return type === 'json_schema' ? definitionFault(definition) : undefined
}

function jsonWordFault(body: JsonRecord): Fault | undefined {
  const contents = toList(body.messages).map((message) => toRecord(message).content)
  if (/json/i.test(JSON.stringify(contents))) return undefined
  return {
    message:
      "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.",
    param: 'messages',
  }
}

function definitionFault(definition: unknown): Fault | undefined {
  if (!isRecord(definition)) return missingFault('response_format.json_schema')
  const { name, schema, strict } = definition
  const named = nameFault(name, 'response_format.json_schema.name')
  if (named !== undefined) return named
  if (schema === undefined) return missingFault('response_format.json_schema.schema')
  const fault = strict === true ? strictSchemaFault(schema) : undefined
  if (fault === undefined) return undefined
  return {
    message: `Invalid schema for response_format '${toText(name)}': ${fault}`,
    param: 'response_format',
  }
}
