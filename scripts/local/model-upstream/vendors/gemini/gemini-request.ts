import { type JsonRecord, toList, toRecord, toText } from '../../json-value.ts'
import { signatureFault } from './thought-signatures.ts'

/** Members of a request (https://ai.google.dev/api/generate-content#request-body). */
const MEMBERS = new Set([
  'cachedContent',
  'contents',
  'generationConfig',
  'safetySettings',
  'systemInstruction',
  'toolConfig',
  'tools',
])

/**
 * @param hasIds whether the API has ids of calls.
 * @returns the message of the vendor for a body that breaks its rules; null for others.
 */
export function requestFault(body: JsonRecord, hasIds: boolean): string | null {
  const unknown = Object.keys(body).find((name) => !MEMBERS.has(name))
  if (unknown) return `Invalid JSON payload received. Unknown name "${unknown}": Cannot find field.`
  const contents = toList(body.contents).map(toRecord)
  if (contents.length === 0) return '* GenerateContentRequest.contents: contents is not specified'
  if (!hasIds && contents.some(hasCallId)) {
    return 'Invalid JSON payload received. Unknown name "id" at \'contents[0].parts[0].function_call\': Cannot find field.'
  }
  return contentsFault(contents) ?? configFault(toRecord(body.generationConfig)) ?? signatureFault(contents)
}

function contentsFault(contents: readonly JsonRecord[]): string | null {
  for (const [index, { role, parts }] of contents.entries()) {
    if (role !== 'user' && role !== 'model') return 'Please use a valid role: user, model.'
    const given = toList(parts).map(toRecord)
    if (given.some(isEmpty)) return 'Unable to submit request because it must have a text parameter.'
    const calls = given.filter((part) => part.functionCall !== undefined)
    const next = toList(contents[index + 1]?.parts).map(toRecord)
    const results = next.filter((part) => part.functionResponse !== undefined)
    if (calls.length > 0 && calls.length !== results.length) {
      return 'Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.'
    }
  }
  return null
}

const hasCallId = ({ parts }: JsonRecord): boolean =>
  toList(parts)
    .map(toRecord)
    .some(({ functionCall, functionResponse }) => toRecord(functionCall ?? functionResponse).id !== undefined)

const isEmpty = (part: JsonRecord): boolean => part.text === '' && part.thoughtSignature === undefined

function configFault({ thinkingConfig, responseJsonSchema, responseMimeType }: JsonRecord): string | null {
  const { thinkingBudget, thinkingLevel } = toRecord(thinkingConfig)
  if (thinkingBudget !== undefined && thinkingLevel !== undefined) {
    return 'You can only set only one of thinking budget and thinking level.'
  }
  const isTyped = responseJsonSchema === undefined || responseMimeType === 'application/json'
  return isTyped ? null : "response_mime_type must be 'application/json' when a schema is set."
}

/** A request as a chat completion request of this server. */
export function chatRequestOf(body: JsonRecord, stream: boolean): JsonRecord {
  const { temperature, topP, maxOutputTokens, stopSequences, seed, responseMimeType, responseJsonSchema } =
    toRecord(body.generationConfig)
  const system = partsOf(body.systemInstruction).map(({ text }) => toText(text))
  const tools = functionsOf(body)
  const format = responseJsonSchema
    ? { type: 'json_schema', json_schema: { name: 'answer', schema: responseJsonSchema } }
    : responseMimeType && { type: 'json_object' }
  return defined({
    model: 'scripted-chat',
    messages: [
      ...(system.length > 0 ? [{ role: 'system', content: system.join('\n\n') }] : []),
      ...toList(body.contents).map(toRecord).flatMap(messagesOf),
    ],
    stream: stream || undefined,
    stream_options: stream ? { include_usage: true } : undefined,
    temperature,
    top_p: topP,
    max_completion_tokens: maxOutputTokens,
    stop: stopSequences,
    seed,
    tools: tools.length > 0 ? tools : undefined,
    tool_choice: tools.length > 0 ? choiceOf(toRecord(body.toolConfig)) : undefined,
    response_format: format,
  })
}

const partsOf = (content: unknown): JsonRecord[] => toList(toRecord(content).parts).map(toRecord)

const defined = (record: JsonRecord): JsonRecord =>
  Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined))

const functionsOf = (body: JsonRecord): JsonRecord[] =>
  toList(body.tools)
    .flatMap((tool) => toList(toRecord(tool).functionDeclarations))
    .map(toRecord)
    .map(({ name, description, parametersJsonSchema }) => ({
      type: 'function',
      function: defined({ name, description, parameters: parametersJsonSchema }),
    }))

function choiceOf({ functionCallingConfig }: JsonRecord): unknown {
  const { mode, allowedFunctionNames } = toRecord(functionCallingConfig)
  const [name, ...others] = toList(allowedFunctionNames)
  if (mode === 'NONE') return 'none'
  if (mode !== 'ANY') return undefined
  return name !== undefined && others.length === 0 ? { type: 'function', function: { name } } : 'required'
}

/** Calls without an id, and their results in the next content, are matched by their order. */
function messagesOf(content: JsonRecord, index: number): JsonRecord[] {
  const parts = partsOf(content)
  if (content.role === 'model') return [assistantMessage(parts, index)]
  const results = parts.flatMap(({ functionResponse }) =>
    functionResponse ? [toRecord(functionResponse)] : [],
  )
  const shown = parts.filter(({ functionResponse }) => !functionResponse).map(userPart)
  let order = 0
  return [
    ...results.map(({ id = `call-${index - 1}-${order++}`, response }) => {
      const { output, error } = toRecord(response)
      return { role: 'tool', tool_call_id: id, content: toText(output ?? error) }
    }),
    ...(shown.length > 0 ? [{ role: 'user', content: shown }] : []),
  ]
}

function userPart({ text, inlineData }: JsonRecord): JsonRecord {
  if (inlineData === undefined) return { type: 'text', text }
  const { mimeType, data } = toRecord(inlineData)
  return { type: 'image_url', image_url: { url: `data:${toText(mimeType)};base64,${toText(data)}` } }
}

function assistantMessage(parts: readonly JsonRecord[], index: number): JsonRecord {
  const text = parts.map((part) => toText(part.text)).join('')
  const calls = parts.flatMap(({ functionCall }) => (functionCall ? [toRecord(functionCall)] : []))
  const tool_calls = calls.map(({ id, name, args }, order) => ({
    id: id ?? `call-${index}-${order}`,
    type: 'function',
    function: { name, arguments: JSON.stringify(args ?? {}) },
  }))
  return defined({
    role: 'assistant',
    content: text === '' ? null : text,
    tool_calls: tool_calls.length > 0 ? tool_calls : undefined,
  })
}
