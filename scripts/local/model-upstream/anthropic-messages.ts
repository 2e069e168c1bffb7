import { fitText, type PlanRequest, planAnswer, splitIntoPieces } from './answer-plan.ts'
import {
  type AnswerBlock,
  type BuiltMessage,
  buildMessage,
  textBlock,
  thinkingBlock,
  toolUseBlock,
} from './answers/message-answer.ts'
import type { Fault } from './checks/fault.ts'
import { instructedFormat } from './instructed-format.ts'
import { contentText, type JsonRecord, toList, toNumber, toRecord, toText } from './json-value.ts'
import { holdThread, openThread } from './message-threads.ts'
import { measureMessagesInput } from './prompt-cache.ts'
import { jsonReply, type Reply, streamReply } from './reply.ts'
import { issueSignature } from './signatures.ts'
import { refusal } from './vendor-errors.ts'

/** Returns the rule that a body breaks. */
export type BodyCheck = (body: JsonRecord) => Fault | undefined

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
  check: BodyCheck,
): Reply {
  const opened = openThread(sent, betas)
  if ('refusal' in opened) return opened.refusal
  const { body } = opened
  const fault = body === sent ? undefined : check(body)
  if (fault !== undefined) return refusal('messages', fault)
  const { id, content, frames, body: whole } = buildAnswer(body, hasMarkers)
  holdThread(body, id, content)
  return body.stream === true ? streamReply('messages', frames) : jsonReply('messages', 200, whole)
}

/** Answers a checked `POST /v1/messages/count_tokens` with the input tokens the same message would report. */
export function countMessageTokens(body: JsonRecord): Reply {
  return jsonReply('messages', 200, `{"input_tokens":${measureMessagesInput(body, false).input}}`)
}

function readTurn(body: JsonRecord): PlanRequest {
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

/** Coding agents put reminders that mention tools before the user's text. */
function lastText(content: unknown): string {
  if (typeof content === 'string') return content
  return toText(toRecord(toList(content).findLast((block) => toRecord(block).type === 'text')).text)
}

/** Only client tools: server tools such as `web_search_20250305` have no schema and run upstream. */
function readTool(tool: unknown): PlanRequest['tools'] {
  const { name, input_schema: schema } = toRecord(tool)
  return typeof name === 'string' && schema !== undefined ? [{ name, kind: 'function', schema }] : []
}

function readChoice({ type, name }: JsonRecord): PlanRequest['choice'] {
  if (type === 'none') return { mode: 'none' }
  if (type === 'any') return { mode: 'required' }
  return type === 'tool' ? { mode: 'named', name: toText(name) } : { mode: 'auto' }
}

function readFormat(format: JsonRecord, system: unknown): PlanRequest['format'] {
  if (format.type === 'json_schema') return { type: 'json_schema', schema: format.schema }
  return instructedFormat(system)
}

function buildAnswer(body: JsonRecord, hasMarkers: boolean): BuiltMessage {
  const plan = planAnswer(readTurn(body))
  const thoughts = thinkingBlocks(body)
  const thinking = thoughts.length === 0 ? 0 : splitIntoPieces(THOUGHTS).length + 2
  const stops = toList(body.stop_sequences).map((stop) => toText(stop))
  const maximum = toNumber(body.max_tokens) ?? Number.POSITIVE_INFINITY
  const fitted = fitText(plan.text, stops, maximum - thinking)
  const callTokens = plan.calls.reduce((sum, call) => sum + 8 + splitIntoPieces(call.input).length, 0)
  const reasons = { natural: 'end_turn', length: 'max_tokens', stop_sequence: 'stop_sequence' }
  const calls = plan.calls.map(({ name, input }) => toolUseBlock(name, JSON.parse(input)))
  return buildMessage(toText(body.model), {
    content: [...thoughts, ...(calls.length > 0 ? calls : [textBlock(fitted.pieces.join(''))])],
    stopReason: calls.length > 0 ? 'tool_use' : reasons[fitted.end],
    stopSequence: fitted.stopSequence,
    usage: {
      ...measureMessagesInput(body, hasMarkers),
      output: Math.max(1, fitted.pieces.length + callTokens + thinking),
      thinking,
    },
  })
}

const THOUGHTS = 'The user wrote to me, so I will think for a moment and then answer.'

/** With `display: omitted` the block stays, with its signature and no text; its tokens are still counted. */
function thinkingBlocks(body: JsonRecord): AnswerBlock[] {
  const { type, display } = toRecord(body.thinking)
  if (type !== 'enabled' && type !== 'adaptive') return []
  const signature = issueSignature(THOUGHTS, JSON.stringify(toList(body.messages).at(-1)))
  return [thinkingBlock(THOUGHTS, signature, display === 'omitted' ? '' : THOUGHTS)]
}
