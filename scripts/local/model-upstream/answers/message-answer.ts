import { splitIntoPieces } from '../answer-plan.ts'
import { nextIdentifier } from '../identifiers.ts'
import { type JsonRecord, toRecord } from '../json-value.ts'
import {
  blockStartFrame,
  blockStopFrame,
  type MessagesUsage,
  messageDeltaFrame,
  messageFrame,
  messageStartFrame,
  messageStopFrame,
  messageUsageJson,
  pingFrame,
} from '../message-frames.ts'
import type { ScriptRequest } from '../script-request.ts'
import { issueSignature } from '../signatures.ts'
import type { AnswerForms } from './answer-forms.ts'

/** A block of an answer: its form in a whole message, and its start and deltas in a stream. */
export interface AnswerBlock {
  whole: JsonRecord
  start: JsonRecord
  deltas: JsonRecord[]
}

export interface MessageAnswer {
  content: AnswerBlock[]
  /** `end_turn` unless set. */
  stopReason?: string
  stopSequence?: string | null
  stopDetails?: JsonRecord
  usage?: Partial<MessagesUsage>
}

type CountedAnswer = MessageAnswer & { usage: MessagesUsage }

/** An answer of the messages protocol under one id, in both forms. */
export interface BuiltMessage extends AnswerForms {
  id: string
  /** The blocks in their form for a whole message. */
  content: JsonRecord[]
}

/** The answer of a script, with the thinking that the request needs. */
export function messageAnswer(request: ScriptRequest, answer: MessageAnswer): AnswerForms {
  const content = withThinking(request, answer.content)
  return buildMessage(request.model, { ...answer, content, usage: usageOf(request, answer) })
}

/** Builds an answer of the messages protocol, streamed and whole. */
export function buildMessage(
  model: string,
  { content, stopReason = 'end_turn', stopSequence = null, stopDetails, usage }: CountedAnswer,
): BuiltMessage {
  const id = nextIdentifier('msg_')
  const details = JSON.stringify(stopDetails ?? null)
  const { input, created5m, created1h, read } = usage
  const frames = [messageStartFrame(id, model, { input, created5m, created1h, read })]
  content.forEach((block, index) => {
    frames.push(blockStartFrame(index, JSON.stringify(block.start)))
    if (index === 0) frames.push(pingFrame)
    for (const delta of block.deltas) {
      frames.push(messageFrame('content_block_delta', `"index":${index},"delta":${JSON.stringify(delta)}`))
    }
    frames.push(blockStopFrame(index))
  })
  frames.push(messageDeltaFrame(stopReason, stopSequence, usage, details), messageStopFrame)
  const whole = content.map((block) => block.whole)
  const body =
    `{"id":"${id}","type":"message","role":"assistant","model":${JSON.stringify(model)},` +
    `"content":${JSON.stringify(whole)},"stop_reason":"${stopReason}",` +
    `"stop_sequence":${JSON.stringify(stopSequence)},"stop_details":${details},"container":null,` +
    `"usage":${messageUsageJson(usage)}}`
  return { id, content: whole, frames, body }
}

/** With a budget every turn that calls a tool begins with thinking: the next request has to send it back. */
function withThinking(request: ScriptRequest, content: AnswerBlock[]): AnswerBlock[] {
  const { type, display } = toRecord(request.json.thinking)
  const calls = content.some(({ whole }) => whole.type === 'tool_use')
  if (type !== 'enabled' || !calls || String(content[0]?.whole.type).endsWith('thinking')) return content
  const thoughts = 'A tool can tell.'
  const signature = issueSignature(thoughts, nextIdentifier('seed'))
  return [thinkingBlock(thoughts, signature, display === 'omitted' ? '' : thoughts), ...content]
}

function usageOf(request: ScriptRequest, answer: MessageAnswer): MessagesUsage {
  const output = answer.content.reduce((sum, block) => sum + Math.max(1, block.deltas.length), 0)
  const counted = { input: request.promptTokens, created5m: 0, created1h: 0, read: 0, output, thinking: 0 }
  return { ...counted, ...answer.usage }
}

/** Text, with its citations in the order in which they stream after it. */
export function textBlock(text: string, citations?: JsonRecord[]): AnswerBlock {
  const cited = citations === undefined ? {} : { citations }
  return {
    whole: { type: 'text', text, ...cited },
    start: { type: 'text', text: '', ...(citations === undefined ? {} : { citations: [] }) },
    deltas: [
      ...splitIntoPieces(text).map((piece) => ({ type: 'text_delta', text: piece })),
      ...(citations ?? []).map((citation) => ({ type: 'citations_delta', citation })),
    ],
  }
}

/** Thinking with its signature; `shown` is the text the client gets to see, all of it unless set. */
export function thinkingBlock(thinking: string, signature: string, shown = thinking): AnswerBlock {
  return {
    whole: { type: 'thinking', thinking: shown, signature },
    start: { type: 'thinking', thinking: '', signature: '' },
    deltas: [
      ...splitIntoPieces(shown).map((piece) => ({ type: 'thinking_delta', thinking: piece })),
      { type: 'signature_delta', signature },
    ],
  }
}

/** A block that comes whole when it starts, such as redacted thinking and the result of a server's tool. */
export function wholeBlock(block: JsonRecord): AnswerBlock {
  return { whole: block, start: block, deltas: [] }
}

/**
 * A call of a tool.
 *
 * @param fragments how the JSON text of the input streams; by default an empty fragment, then pieces
 */
export function toolUseBlock(
  name: string,
  input: JsonRecord,
  fragments = inputFragments(input),
): AnswerBlock {
  const block = { type: 'tool_use', id: nextIdentifier('toolu_'), name, input, caller: { type: 'direct' } }
  return callBlock(block, fragments)
}

/** A call that the provider runs itself; its id must be given, since a paused turn repeats it. */
export function serverToolBlock(id: string, name: string, input: JsonRecord): AnswerBlock {
  const block = { type: 'server_tool_use', id, name, input, caller: { type: 'direct' } }
  return callBlock(block, inputFragments(input))
}

function callBlock(block: JsonRecord, fragments: string[]): AnswerBlock {
  const deltas = fragments.map((fragment) => ({ type: 'input_json_delta', partial_json: fragment }))
  return { whole: block, start: { ...block, input: {} }, deltas }
}

/** The JSON text of an input as it streams: an empty fragment first, then pieces that may cut anywhere. */
export function inputFragments(input: JsonRecord): string[] {
  const text = JSON.stringify(input)
  return text === '{}' ? [''] : ['', ...splitIntoPieces(text)]
}
