import { splitIntoPieces } from '../answer-plan.ts'
import type { ScriptRequest } from '../script-request.ts'
import type { Step } from '../script-steps.ts'
import { sendAnswer } from './answer-forms.ts'
import { type AnswerScript, answerScript } from './answer-script.ts'
import { type ChatAnswer, chatAnswer, textDeltas } from './chat-answer.ts'
import { type MessageAnswer, messageAnswer, textBlock } from './message-answer.ts'

const text = 'Every token of this answer is counted.'

const textAnswer: ChatAnswer = { deltas: textDeltas(splitIntoPieces(text)), message: { content: text } }
const spoke: MessageAnswer = { content: [textBlock(text)] }

/**
 * A usage in the terms of both protocols: 550 tokens in, of which 400 were read from the cache and 50 written to it.
 */
const full = {
  messages: { input: 100, created5m: 20, created1h: 30, read: 400, output: 50, thinking: 15 },
  chat: { prompt: 550, cached: 400, cacheWrite: 50, completion: 50, reasoning: 15 },
}

/** A script of messages whose usage is changed in every event that has one; chat has its own answer. */
function changed(chat: ChatAnswer, change: (text: string, type: string) => string): AnswerScript {
  return (request: ScriptRequest): Iterable<Step> => {
    if (request.dialect !== 'messages') return sendAnswer(request, chatAnswer(request, chat))
    const { frames, body } = messageAnswer(request, { ...spoke, usage: full.messages })
    const typeOf = (frame: string) => /^event: (\w+)/.exec(frame)?.[1] ?? ''
    return sendAnswer(request, {
      frames: frames.map((frame) => change(frame, typeOf(frame))),
      body: change(body, 'message'),
    })
  }
}

const startUsage = /"usage":\{.*\}(?=\}\}\n\n$)/
const lastUsage = /,"usage":\{.*\}(?=\}(\n\n)?$)/

/** All counts are zero at the start; only the usage of the last frame is true. */
function knownLate(text: string, type: string): string {
  if (type !== 'message_start') return text
  return text.replace(startUsage, '"usage":{"input_tokens":0,"output_tokens":0}')
}

/** The last frame has output alone and null for the rest, which the first one has. */
function nullAtTheEnd(text: string, type: string): string {
  if (type !== 'message_delta') return text
  const usage =
    '{"input_tokens":null,"cache_creation_input_tokens":null,"cache_read_input_tokens":null,' +
    '"server_tool_use":null,"output_tokens":50}'
  return text.replace(lastUsage, `,"usage":${usage}`)
}

function missing(text: string, type: string): string {
  if (type === 'message_start') return text.replace(startUsage, '"usage":null')
  return text.replace(lastUsage, '')
}

/** Scripts about usage, by name. */
export const usageAnswers: [string, AnswerScript][] = [
  [
    'usage-full',
    answerScript(
      () => ({ ...textAnswer, usage: full.chat }),
      () => ({ ...spoke, usage: full.messages }),
    ),
  ],
  ['usage-late', changed({ ...textAnswer, usage: full.chat, usagePlace: 'finish' }, knownLate)],
  ['usage-nulls', changed({ ...textAnswer, usage: full.chat }, nullAtTheEnd)],
  ['usage-missing', changed({ ...textAnswer, usagePlace: 'none' }, missing)],
]
