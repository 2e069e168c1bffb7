import { splitIntoPieces } from '../answer-plan.ts'
import { toList, toText } from '../json-value.ts'
import type { ScriptRequest } from '../script-request.ts'
import { type AnswerScript, answerScript } from './answer-script.ts'
import { type ChatAnswer, textDeltas } from './chat-answer.ts'
import { type MessageAnswer, textBlock } from './message-answer.ts'

const half = 'This is the first half of'
const refused = 'I cannot help with that, not even a little.'
const stopDetails = { type: 'refusal', category: 'cyber', explanation: refused }

const textAnswer = (text: string, finish: string): ChatAnswer => ({
  deltas: textDeltas(splitIntoPieces(text)),
  message: { content: text },
  finish,
})

const spoke = (text: string, stopReason: string): MessageAnswer => ({
  content: [textBlock(text)],
  stopReason,
})

/** The first stop sequence of the request; `END` when it has none. */
function stopSequence(request: ScriptRequest): string {
  const { stop, stop_sequences: sequences } = request.json
  return toText(stop) || toText(toList(stop ?? sequences)[0], 'END')
}

/** Scripts about why an answer ends, by name. */
export const endingAnswers: [string, AnswerScript][] = [
  [
    'max-tokens',
    answerScript(
      () => textAnswer(half, 'length'),
      () => spoke(half, 'max_tokens'),
    ),
  ],
  [
    'context-window',
    answerScript(
      () => textAnswer(half, 'length'),
      () => spoke(half, 'model_context_window_exceeded'),
    ),
  ],
  [
    'stop-sequence',
    answerScript(
      () => textAnswer(half, 'stop'),
      (request) => ({ ...spoke(half, 'stop_sequence'), stopSequence: stopSequence(request) }),
    ),
  ],
  [
    'content-filter',
    answerScript(
      () => textAnswer(half, 'content_filter'),
      () => ({
        ...spoke(half, 'refusal'),
        stopDetails: { type: 'refusal', category: null, explanation: null },
      }),
    ),
  ],
  [
    // A refusal in pieces and nothing else: chat has a member for it, messages only a reason to stop.
    'refusal-deltas',
    answerScript(
      () => ({
        opening: { role: 'assistant', content: null, refusal: '' },
        deltas: textDeltas(splitIntoPieces(refused), 'refusal'),
        message: { content: null, refusal: refused },
      }),
      () => ({ content: [], stopReason: 'refusal', stopDetails }),
    ),
  ],
  [
    'refusal-after-text',
    answerScript(
      () => ({
        deltas: [...textDeltas(splitIntoPieces(half)), ...textDeltas(splitIntoPieces(refused), 'refusal')],
        message: { content: half, refusal: refused },
      }),
      () => ({ ...spoke(half, 'refusal'), stopDetails }),
    ),
  ],
  [
    'empty-answer',
    answerScript(
      () => ({ deltas: [], message: { content: '' } }),
      () => ({ content: [] }),
    ),
  ],
]
