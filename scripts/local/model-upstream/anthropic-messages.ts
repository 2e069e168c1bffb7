import { fitText, planAnswer, splitIntoPieces, type Turn } from './answer-plan.ts'
import type { Fault } from './checks/fault.ts'
import { nextIdentifier } from './identifiers.ts'
import { instructedFormat } from './instructed-format.ts'
import { contentText, type JsonRecord, toList, toNumber, toRecord, toText } from './json-value.ts'
import {
  blockDeltaFrame,
  blockStartFrame,
  blockStopFrame,
  type MessagesUsage,
  messageDeltaFrame,
  messageStartFrame,
  messageStopFrame,
  messageUsageJson,
  pingFrame,
} from './message-frames.ts'
import { holdThread, openThread } from './message-threads.ts'
import { measureMessagesInput } from './prompt-cache.ts'
import { jsonReply, type Reply, streamReply } from './reply.ts'
import { issueSignature } from './signatures.ts'
import { refusal } from './vendor-errors.ts'

type AnswerBlock =
  | { type: 'thinking'; pieces: string[]; signature: string }
  | { type: 'text'; pieces: string[] }
  | { type: 'tool_use'; id: string; name: string; input: string }

interface MessageAnswer {
  id: string
  blocks: AnswerBlock[]
  stopReason: string
  stopSequence: string | null
  usage: MessagesUsage
}

/** Returns the rule that a body breaks. */
export type MessagesCheck = (body: JsonRecord) => Fault | undefined

/**
 * Answers a checked `POST /v1/messages`, streamed when `stream` is true. `hasMarkers` is whether the raw body mentions
 * `cache_control`, which spares hashing all blocks when it does not; `betas` is the `anthropic-beta` header. A body that
 * continues a thread is `check`ed here, once it is whole.
 * Shape: https://docs.anthropic.com/en/api/messages
 */
export function answerMessages(
  sent: JsonRecord,
  hasMarkers: boolean,
  betas: string,
  check: MessagesCheck,
): Reply {
  const opened = openThread(sent, betas)
  if ('refusal' in opened) return opened.refusal
  const { body } = opened
  const fault = body === sent ? undefined : check(body)
  if (fault !== undefined) return refusal('messages', fault)
  const answer = buildAnswer(body, hasMarkers)
  const content = wholeContent(answer)
  holdThread(body, answer.id, content)
  return body.stream === true ? streamAnswer(body, answer) : wholeAnswer(body, answer, content)
}

/** Answers a checked `POST /v1/messages/count_tokens` with the input tokens the same message would report. */
export function countMessageTokens(body: JsonRecord): Reply {
  return jsonReply('messages', 200, `{"input_tokens":${measureMessagesInput(body, false).input}}`)
}

function readTurn(body: JsonRecord): Turn {
  const messages = toList(body.messages).map(toRecord)
  const last = toRecord(messages.findLast(({ role }) => role !== 'system'))
  const texts = messages.filter(({ role }) => role === 'user').map(({ content }) => lastText(content))
  const result = toList(last.content)
    .map(toRecord)
    .findLast((block) => block.type === 'tool_result')
  return {
    userText: last.role === 'user' ? lastText(last.content) : '',
    instructions: texts.findLast((text) => text !== '') ?? '',
    toolResult: result === undefined ? undefined : contentText(result.content),
    tools: toList(body.tools).flatMap(readTool),
    choice: readChoice(toRecord(body.tool_choice)),
    parallelToolCalls: toRecord(body.tool_choice).disable_parallel_tool_use !== true,
    format: readFormat(toRecord(toRecord(body.output_config).format ?? body.output_format), body.system),
  }
}

/** Coding agents put reminders for the model, which speak of tools, in front of what the user said. */
function lastText(content: unknown): string {
  if (typeof content === 'string') return content
  return toText(toRecord(toList(content).findLast((block) => toRecord(block).type === 'text')).text)
}

/** Only client tools: server tools such as `web_search_20250305` have no schema and run upstream. */
function readTool(tool: unknown): Turn['tools'] {
  const { name, input_schema: schema } = toRecord(tool)
  return typeof name === 'string' && schema !== undefined ? [{ name, kind: 'function', schema }] : []
}

function readChoice({ type, name }: JsonRecord): Turn['choice'] {
  if (type === 'none') return { mode: 'none' }
  if (type === 'any') return { mode: 'required' }
  return type === 'tool' ? { mode: 'named', name: toText(name) } : { mode: 'auto' }
}

function readFormat(format: JsonRecord, system: unknown): Turn['format'] {
  if (format.type === 'json_schema') return { type: 'json_schema', schema: format.schema }
  return instructedFormat(system)
}

function buildAnswer(body: JsonRecord, hasMarkers: boolean): MessageAnswer {
  const plan = planAnswer(readTurn(body))
  const blocks = thinkingBlocks(body)
  const thinking = blocks.reduce(
    (sum, block) => sum + (block.type === 'thinking' ? block.pieces.length + 2 : 0),
    0,
  )
  const stops = toList(body.stop_sequences).map((stop) => toText(stop))
  const maximum = toNumber(body.max_tokens) ?? Number.POSITIVE_INFINITY
  const fitted = fitText(plan.text, stops, maximum - thinking)
  if (plan.calls.length === 0) blocks.push({ type: 'text', pieces: fitted.pieces })
  for (const call of plan.calls) {
    blocks.push({ type: 'tool_use', id: nextIdentifier('toolu_'), name: call.name, input: call.input })
  }
  const callTokens = plan.calls.reduce((sum, call) => sum + 8 + splitIntoPieces(call.input).length, 0)
  const reasons = { natural: 'end_turn', length: 'max_tokens', stop_sequence: 'stop_sequence' }
  return {
    id: nextIdentifier('msg_'),
    blocks: omitThinkingText(body, blocks),
    stopReason: plan.calls.length > 0 ? 'tool_use' : reasons[fitted.end],
    stopSequence: fitted.stopSequence,
    usage: {
      ...measureMessagesInput(body, hasMarkers),
      output: Math.max(1, fitted.pieces.length + callTokens + thinking),
      thinking,
    },
  }
}

const thoughts = 'The user wrote to me, so I will think for a moment and then answer.'

function thinkingBlocks(body: JsonRecord): AnswerBlock[] {
  const { type } = toRecord(body.thinking)
  if (type !== 'enabled' && type !== 'adaptive') return []
  const signature = issueSignature(thoughts, JSON.stringify(toList(body.messages).at(-1)))
  return [{ type: 'thinking', pieces: splitIntoPieces(thoughts), signature }]
}

/** With `display: omitted` the block stays, with its signature and no text; its tokens are still counted. */
function omitThinkingText(body: JsonRecord, blocks: AnswerBlock[]): AnswerBlock[] {
  if (toRecord(body.thinking).display !== 'omitted') return blocks
  return blocks.map((block) => (block.type === 'thinking' ? { ...block, pieces: [] } : block))
}

function wholeContent(answer: MessageAnswer): JsonRecord[] {
  return answer.blocks.map((block) => {
    if (block.type === 'text') return { type: 'text', text: block.pieces.join('') }
    if (block.type === 'tool_use') return { ...block, input: JSON.parse(block.input) }
    return { type: 'thinking', thinking: block.pieces.join(''), signature: block.signature }
  })
}

function wholeAnswer(body: JsonRecord, answer: MessageAnswer, content: JsonRecord[]): Reply {
  const json =
    `{"id":"${answer.id}","type":"message","role":"assistant","model":${JSON.stringify(body.model)},` +
    `"content":${JSON.stringify(content)},"stop_reason":"${answer.stopReason}",` +
    `"stop_sequence":${JSON.stringify(answer.stopSequence)},"stop_details":null,"container":null,` +
    `"usage":${messageUsageJson(answer.usage)}}`
  return jsonReply('messages', 200, json)
}

function streamAnswer(body: JsonRecord, answer: MessageAnswer): Reply {
  const frames = [messageStartFrame(answer.id, toText(body.model), answer.usage)]
  answer.blocks.forEach((block, index) => {
    frames.push(blockStartFrame(index, emptyBlock(block)))
    if (index === 0) frames.push(pingFrame)
    frames.push(...blockDeltas(block, index), blockStopFrame(index))
  })
  frames.push(messageDeltaFrame(answer.stopReason, answer.stopSequence, answer.usage), messageStopFrame)
  return streamReply('messages', frames)
}

function emptyBlock(block: AnswerBlock): string {
  if (block.type === 'text') return '{"type":"text","text":""}'
  if (block.type === 'thinking') return '{"type":"thinking","thinking":"","signature":""}'
  return JSON.stringify({ type: 'tool_use', id: block.id, name: block.name, input: {} })
}

function blockDeltas(block: AnswerBlock, index: number): string[] {
  if (block.type === 'text') {
    return block.pieces.map((piece) => blockDeltaFrame(index, 'text_delta', 'text', piece))
  }
  if (block.type === 'thinking') {
    const frames = block.pieces.map((piece) => blockDeltaFrame(index, 'thinking_delta', 'thinking', piece))
    return [...frames, blockDeltaFrame(index, 'signature_delta', 'signature', block.signature)]
  }
  // Input streams as an empty fragment first; a tool called without arguments sends nothing more.
  const pieces = block.input === '{}' ? [''] : ['', ...splitIntoPieces(block.input)]
  return pieces.map((piece) => blockDeltaFrame(index, 'input_json_delta', 'partial_json', piece))
}
