import { type JsonRecord, toRecord, toText } from '../../json-value.ts'
import { type AwsFault, invalid } from './faults.ts'

// Requests of Converse: what the vendor refuses, and the messages request that the scripted model answers.

/** https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html */
const MEMBERS = new Set([
  'additionalModelRequestFields',
  'additionalModelResponseFieldPaths',
  'inferenceConfig',
  'messages',
  'outputConfig',
  'serviceTier',
  'system',
  'toolConfig',
])
const SETTINGS = new Set(['maxTokens', 'stopSequences', 'temperature', 'topP'])
const IMAGES = new Set(['png', 'jpeg', 'gif', 'webp'])
const DOCUMENTS = new Set(['pdf', 'csv', 'doc', 'docx', 'xls', 'xlsx', 'html', 'txt', 'md'])
const DOCUMENT_NAME = /^(?!.*\s\s)[A-Za-z0-9\s()[\]-]{1,200}$/
const CALL_ID = /^[a-zA-Z0-9_-]{1,64}$/

export const listIn = (value: unknown): JsonRecord[] => (Array.isArray(value) ? value.map(toRecord) : [])

/** @returns the first fault of a request in the vendor's words; null for a valid one. */
export function converseFault(body: JsonRecord | undefined): AwsFault | null {
  if (body === undefined) return invalid('The request body is not valid JSON.')
  const unknown = [
    ...Object.keys(body).filter((name) => !MEMBERS.has(name)),
    ...Object.keys(toRecord(body.inferenceConfig)).filter((name) => !SETTINGS.has(name)),
  ][0]
  if (unknown !== undefined) return invalid(`Unknown parameter in input: "${unknown}"`)
  const messages = listIn(body.messages)
  const wrong = messages.findIndex(({ role }, index) => role !== (index % 2 === 0 ? 'user' : 'assistant'))
  if (wrong === 0) return invalid('A conversation must start with a user message. Try again.')
  if (wrong > 0) return invalid('A conversation must alternate between user and assistant roles.')
  const content = [...listIn(body.system), ...messages.flatMap((message) => listIn(message.content))]
  const usesTools = content.some(({ toolUse, toolResult }) => toolUse ?? toolResult)
  if (usesTools && listIn(toRecord(body.toolConfig).tools).length === 0) {
    return invalid('The toolConfig field must be defined when using toolUse and toolResult content blocks.')
  }
  const faults = [...messages.map(messageFault), ...content.map(blockFault), temperatureFault(body)]
  const fault = faults.find((text) => text !== null)
  return fault === undefined || fault === null ? null : invalid(fault)
}

function temperatureFault({ inferenceConfig }: JsonRecord): string | null {
  const { temperature } = toRecord(inferenceConfig)
  const isValid = temperature === undefined || (Number(temperature) >= 0 && Number(temperature) <= 1)
  return isValid ? null : 'Value at inferenceConfig.temperature failed to satisfy constraint.'
}

function messageFault({ content }: JsonRecord, index: number): string | null {
  const blocks = listIn(content)
  if (blocks.length === 0) return `The content field in the Message object at messages.${index} is empty.`
  const isSilent = !blocks.some(({ text }) => text !== undefined)
  return isSilent && blocks.some(({ document }) => document)
    ? 'A text block must be included when using documents.'
    : null
}

function blockFault(block: JsonRecord): string | null {
  if (typeof block.text === 'string' && block.text.trim() === '') {
    return 'The text field in the ContentBlock object is blank. Add text to the text field, and try again.'
  }
  const { toolUse, toolResult, image, document } = block
  const { toolUseId, input } = toRecord(toolUse ?? toolResult)
  if (toolUseId !== undefined && !CALL_ID.test(toText(toolUseId))) return 'The toolUseId is invalid.'
  if (toolUse && (typeof input !== 'object' || Array.isArray(input))) {
    return 'The format of the value at toolUse.input is invalid. Provide a json object for the field.'
  }
  if (toolResult) return listIn(toRecord(toolResult).content).map(blockFault).find(Boolean) ?? null
  if (image && !IMAGES.has(toText(toRecord(image).format))) return 'The image format is invalid.'
  if (!document) return null
  const { format, name } = toRecord(document)
  if (!DOCUMENTS.has(toText(format))) return 'The document format is invalid.'
  return DOCUMENT_NAME.test(toText(name)) ? null : 'The document file name contains invalid characters.'
}

/** Tokens of an answer whose request gives no limit. */
const DEFAULT_TOKENS = 4_096

/** The messages request that stands for one of Converse. */
export function messagesOfConverse(body: JsonRecord): JsonRecord {
  const { maxTokens, temperature, topP, stopSequences } = toRecord(body.inferenceConfig)
  const { tools, toolChoice } = toRecord(body.toolConfig)
  const { jsonSchema } = toRecord(toRecord(toRecord(body.outputConfig).textFormat).structure)
  const schema = toText(toRecord(jsonSchema).schema)
  const members = {
    max_tokens: maxTokens ?? DEFAULT_TOKENS,
    temperature,
    top_p: topP,
    stop_sequences: stopSequences,
    system: body.system === undefined ? undefined : blocksOf(body.system),
    messages: listIn(body.messages).map(({ role, content }) => ({ role, content: blocksOf(content) })),
    tools: tools === undefined ? undefined : listIn(tools).map(({ toolSpec }) => toolOf(toRecord(toolSpec))),
    tool_choice: choiceOf(toRecord(toolChoice)),
    output_config:
      schema === '' ? undefined : { format: { type: 'json_schema', schema: JSON.parse(schema) } },
  }
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined))
}

const toolOf = ({ name, description, inputSchema }: JsonRecord): JsonRecord => ({
  name,
  ...(description !== undefined && { description }),
  input_schema: toRecord(inputSchema).json,
})

function choiceOf({ any, tool }: JsonRecord): JsonRecord | undefined {
  if (tool) return { type: 'tool', name: toRecord(tool).name }
  return any ? { type: 'any' } : undefined
}

/** A cache point marks the block before it. */
function blocksOf(content: unknown): JsonRecord[] {
  const blocks: JsonRecord[] = []
  for (const block of listIn(content)) {
    const last = blocks[blocks.length - 1]
    if (!block.cachePoint) blocks.push(blockOf(block))
    else if (last) last.cache_control = { type: 'ephemeral' }
  }
  return blocks
}

const base64 = (type: string, source: unknown): JsonRecord => ({
  type: 'base64',
  media_type: type,
  data: toRecord(source).bytes,
})

function blockOf({ text, image, document, toolUse, toolResult, reasoningContent }: JsonRecord): JsonRecord {
  if (text !== undefined) return { type: 'text', text }
  if (image) {
    const { format, source } = toRecord(image)
    return { type: 'image', source: base64(`image/${toText(format)}`, source) }
  }
  if (document) return documentOf(toRecord(document))
  if (toolUse) {
    const { toolUseId, name, input } = toRecord(toolUse)
    return { type: 'tool_use', id: toolUseId, name, input }
  }
  if (toolResult) {
    const { toolUseId, content, status } = toRecord(toolResult)
    return {
      ...{ type: 'tool_result', tool_use_id: toolUseId, content: blocksOf(content) },
      ...(status === 'error' && { is_error: true }),
    }
  }
  const { reasoningText, redactedContent } = toRecord(reasoningContent)
  if (redactedContent !== undefined) return { type: 'redacted_thinking', data: redactedContent }
  const { text: thinking, signature } = toRecord(reasoningText)
  return { type: 'thinking', thinking, signature }
}

/** The scripted model reads PDF, and all other documents as text. */
function documentOf({ format, source }: JsonRecord): JsonRecord {
  if (format === 'pdf') return { type: 'document', source: base64('application/pdf', source) }
  const data = Buffer.from(toText(toRecord(source).bytes), 'base64').toString('utf8')
  return { type: 'document', source: { type: 'text', media_type: 'text/plain', data } }
}
