import { type ChatUsage, chatUsageJson, createChatFrames, streamEnd } from '../chat-frames.ts'
import { nowInSeconds } from '../identifiers.ts'
import type { JsonRecord } from '../json-value.ts'
import type { ScriptRequest } from '../script-request.ts'
import type { AnswerForms } from './answer-forms.ts'

export interface ChatAnswer {
  /** The deltas after the one that carries the role. */
  deltas: JsonRecord[]
  /** Members of the whole message besides its role. */
  message: JsonRecord
  /** `stop` unless set. */
  finish?: string
  /** The first delta; role and empty content unless set. */
  opening?: JsonRecord
  /** Members of the chunk with `finish_reason`; none by default. */
  lastDelta?: JsonRecord
  /** Frames before the first chunk, as they are. */
  before?: string[]
  /** Further members of every choice. */
  choiceMembers?: JsonRecord
  usage?: Partial<ChatUsage>
  /** Unless set, requested usage streams on a chunk of its own. */
  usagePlace?: 'finish' | 'none'
}

/** Builds an answer of chat completions, streamed and whole, under one id. */
export function chatAnswer(request: ScriptRequest, answer: ChatAnswer): AnswerForms {
  const {
    finish = 'stop',
    choiceMembers = {},
    opening = { role: 'assistant', content: '', refusal: null },
  } = answer
  const usage = usageOf(request, answer)
  const frames = createChatFrames(request.model, request.includeUsage)
  const more = Object.keys(choiceMembers).length === 0 ? '' : `,${JSON.stringify(choiceMembers).slice(1, -1)}`
  const chunk = (delta: JsonRecord, reason: string | null = null) =>
    // Members of the choice go in behind the delta, where every frame has the log probabilities.
    frames.choice(0, `${JSON.stringify(delta)}${more}`, reason)
  const last = chunk(answer.lastDelta ?? {}, finish)
  const output = [...(answer.before ?? []), chunk(opening), ...answer.deltas.map((delta) => chunk(delta))]
  output.push(answer.usagePlace === 'finish' ? withUsage(last, usage) : last)
  if (request.includeUsage && answer.usagePlace === undefined) output.push(frames.usage(usage))
  output.push(streamEnd)
  return { frames: output, body: wholeBody(request, answer, frames.id, finish, usage) }
}

function withUsage(frame: string, usage: ChatUsage): string {
  return `${frame.trimEnd().replace(/,"usage":null\}$|\}$/, '')},"usage":${chatUsageJson(usage)}}\n\n`
}

function wholeBody(
  request: ScriptRequest,
  answer: ChatAnswer,
  id: string,
  finish: string,
  usage: ChatUsage,
): string {
  const message = { role: 'assistant', content: null, refusal: null, annotations: [], ...answer.message }
  const choice = { index: 0, message, ...answer.choiceMembers, logprobs: null, finish_reason: finish }
  const usageMember = answer.usagePlace === 'none' ? '' : `"usage":${chatUsageJson(usage)},`
  return (
    `{"id":"${id}","object":"chat.completion","created":${nowInSeconds()},"model":${JSON.stringify(request.model)},` +
    `"choices":[${JSON.stringify(choice)}],${usageMember}"service_tier":"default","system_fingerprint":"fp_local"}`
  )
}

function usageOf(request: ScriptRequest, answer: ChatAnswer): ChatUsage {
  const completion = Math.max(1, answer.deltas.length)
  return { prompt: request.promptTokens, cached: 0, completion, reasoning: 0, ...answer.usage }
}

/** A delta for each piece of a text. */
export function textDeltas(pieces: string[], member = 'content'): JsonRecord[] {
  return pieces.map((piece) => ({ [member]: piece }))
}
