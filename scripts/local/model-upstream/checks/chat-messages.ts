import { type JsonRecord, toList, toRecord, toText } from '../json-value.ts'
import type { ModelTraits } from '../model-traits.ts'
import { type Fault, firstFault } from './fault.ts'

const roles = ['system', 'assistant', 'user', 'function', 'tool', 'developer']

/** Types of content parts by role. https://platform.openai.com/docs/api-reference/chat/create#chat_create-messages */
const partsByRole: Record<string, string[]> = {
  user: ['text', 'image_url', 'input_audio', 'file'],
  assistant: ['text', 'refusal'],
  system: ['text'],
  developer: ['text'],
  tool: ['text'],
  function: [],
}
const allParts = ['text', 'image_url', 'input_audio', 'refusal', 'audio', 'file']

const maximumCallId = 40
const maximumName = 64

/** Faults for which OpenAI refuses a list of messages. */
export function findChatMessagesFault(messages: unknown[], traits: ModelTraits): Fault | undefined {
  if (messages.length === 0) {
    return {
      message:
        "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.",
      param: 'messages',
      code: 'empty_array',
    }
  }
  const records = messages.map(toRecord)
  return (
    firstFault(records, (message, index) => messageFault(message, index, traits)) ?? findCallsFault(records)
  )
}

/** "Invalid value" with the values there are, as for roles, types and choices. */
export function valueFault(value: unknown, supported: readonly string[], param: string): Fault {
  const quoted = supported.map((item) => `'${item}'`)
  const list =
    quoted.length === 2 ? quoted.join(' and ') : `${quoted.slice(0, -1).join(', ')}, and ${quoted.at(-1)}`
  return {
    message: `Invalid value: '${String(value)}'. Supported values are: ${list}.`,
    param,
    code: 'invalid_value',
  }
}

/** "Missing required parameter". */
export function missingFault(param: string): Fault {
  return { message: `Missing required parameter: '${param}'.`, param, code: 'missing_required_parameter' }
}

/** "Invalid type", with what was expected and what came. */
export function typeFault(param: string, expected: string, value: unknown): Fault {
  const got = value === null ? 'null' : Array.isArray(value) ? 'an array' : `a ${typeof value}`
  return {
    message: `Invalid type for '${param}': expected ${expected}, but got ${got.replace('a object', 'an object')} instead.`,
    param,
    code: 'invalid_type',
  }
}

function messageFault(message: JsonRecord, index: number, traits: ModelTraits): Fault | undefined {
  const param = `messages[${index}]`
  const { role, content } = message
  if (role === undefined) return missingFault(`${param}.role`)
  if (typeof role !== 'string' || !roles.includes(role)) return valueFault(role, roles, `${param}.role`)
  if (role === 'tool' && typeof message.tool_call_id !== 'string') {
    return missingFault(`${param}.tool_call_id`)
  }
  return contentFault(role, content, message, param, traits) ?? callsFault(message, param)
}

function contentFault(
  role: string,
  content: unknown,
  message: JsonRecord,
  param: string,
  traits: ModelTraits,
): Fault | undefined {
  if (typeof content === 'string') return undefined
  if (Array.isArray(content)) {
    return firstFault(content.map(toRecord), (part, index) =>
      partFault(part, role, `${param}.content[${index}]`, traits),
    )
  }
  if (content !== undefined && content !== null) {
    return typeFault(`${param}.content`, 'one of a string or array of objects', content)
  }
  const otherContent = message.tool_calls ?? message.function_call ?? message.refusal ?? message.audio
  if (role === 'assistant' && otherContent !== undefined) return undefined
  if (content === undefined) return missingFault(`${param}.content`)
  return {
    message: `Invalid value for 'content': expected a string, got null.`,
    param: `${param}.content`,
    code: null,
  }
}

function partFault(part: JsonRecord, role: string, param: string, traits: ModelTraits): Fault | undefined {
  const type = toText(part.type)
  if (part.type === undefined) return missingFault(`${param}.type`)
  if (!allParts.includes(type)) return valueFault(part.type, allParts, param)
  if (partsByRole[role]?.includes(type) !== true) {
    return {
      message: `Invalid content type '${type}' for messages with role '${role}'.`,
      param,
      code: 'invalid_value',
    }
  }
  if (type === 'text' || type === 'refusal') {
    return typeof part[type] === 'string' ? undefined : typeFault(`${param}.${type}`, 'a string', part[type])
  }
  if (!traits.images) {
    return {
      message: `Invalid content type. ${type} is only supported by certain models.`,
      param,
      code: null,
    }
  }
  if (type === 'image_url') return imageFault(toRecord(part.image_url).url, `${param}.image_url.url`)
  return type === 'file' ? fileFault(toRecord(part.file), `${param}.file`) : undefined
}

function imageFault(url: unknown, param: string): Fault | undefined {
  if (url === undefined) return missingFault(param)
  if (typeof url !== 'string') return typeFault(param, 'a string', url)
  if (/^https?:\/\/\S+$/.test(url)) return undefined
  if (/^data:image\/(png|jpeg|jpg|gif|webp);base64,[A-Za-z0-9+/]/.test(url.slice(0, 100))) return undefined
  return {
    message: `Invalid '${param}'. Expected a valid URL, but got a value with an invalid format.`,
    param,
    code: 'invalid_value',
  }
}

function fileFault(file: JsonRecord, param: string): Fault | undefined {
  if (typeof file.file_id === 'string') return undefined
  if (typeof file.file_data !== 'string') return missingFault(`${param}.file_id`)
  if (typeof file.filename !== 'string') return missingFault(`${param}.filename`)
  if (/^data:[\w.+-]+\/[\w.+-]+;base64,/.test(file.file_data.slice(0, 200))) return undefined
  return {
    message: `Invalid '${param}.file_data'. Expected a base64-encoded data URL with an application/pdf MIME type, but got unsupported MIME type.`,
    param: `${param}.file_data`,
    code: 'invalid_value',
  }
}

function callsFault(message: JsonRecord, param: string): Fault | undefined {
  const { tool_calls: calls } = message
  if (calls === undefined || calls === null) return undefined
  if (!Array.isArray(calls)) return typeFault(`${param}.tool_calls`, 'an array of objects', calls)
  if (calls.length === 0) {
    return {
      message: `Invalid '${param}.tool_calls': empty array. Expected an array with minimum length 1, but got an empty array instead.`,
      param: `${param}.tool_calls`,
      code: 'empty_array',
    }
  }
  return firstFault(calls.map(toRecord), (call, index) => callFault(call, `${param}.tool_calls[${index}]`))
}

function callFault(call: JsonRecord, param: string): Fault | undefined {
  const type = toText(call.type)
  if (call.id === undefined) return missingFault(`${param}.id`)
  if (call.type === undefined) return missingFault(`${param}.type`)
  if (type !== 'function' && type !== 'custom') {
    return valueFault(call.type, ['function', 'custom'], `${param}.type`)
  }
  const id = toText(call.id)
  if (id.length > maximumCallId) return lengthFault(`${param}.id`, maximumCallId, id)
  const made = toRecord(call[type])
  const input = type === 'function' ? 'arguments' : 'input'
  if (typeof made[input] !== 'string') return typeFault(`${param}.${type}.${input}`, 'a string', made[input])
  return nameFault(made.name, `${param}.${type}.name`)
}

function lengthFault(param: string, maximum: number, value: string): Fault {
  return {
    message: `Invalid '${param}': string too long. Expected a string with maximum length ${maximum}, but got a string with length ${value.length} instead.`,
    param,
    code: 'string_above_max_length',
  }
}

/** The fault of a function's name. */
export function nameFault(name: unknown, param: string): Fault | undefined {
  if (name === undefined) return missingFault(param)
  if (typeof name !== 'string') return typeFault(param, 'a string', name)
  if (name.length > maximumName) return lengthFault(param, maximumName, name)
  if (/^[a-zA-Z0-9_-]+$/.test(name)) return undefined
  return {
    message: `Invalid '${param}': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.`,
    param,
    code: 'invalid_value',
  }
}

/** Every call of an assistant message is answered by the tool messages right after it, and none comes without a call. */
function findCallsFault(messages: JsonRecord[]): Fault | undefined {
  let open = new Set<string>()
  let afterCalls = false
  for (const [index, message] of messages.entries()) {
    const param = `messages.[${index}].role`
    if (message.role === 'tool') {
      const id = toText(message.tool_call_id)
      if (!afterCalls) return { message: unaskedResult, param }
      if (!open.delete(id)) {
        const message = `Invalid parameter: 'tool_call_id' of '${id}' not found in 'tool_calls' of previous message.`
        return { message, param: `messages.[${index}].tool_call_id` }
      }
      continue
    }
    if (open.size > 0) return { message: unansweredCalls(open), param }
    const calls = toList(message.tool_calls).map((call) => toText(toRecord(call).id))
    open = new Set(calls)
    afterCalls = calls.length > 0
  }
  return open.size > 0
    ? { message: unansweredCalls(open), param: `messages.[${messages.length}].role` }
    : undefined
}

const unaskedResult =
  "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."

function unansweredCalls(ids: Set<string>): string {
  return (
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. " +
    `The following tool_call_ids did not have response messages: ${[...ids].join(', ')}`
  )
}
