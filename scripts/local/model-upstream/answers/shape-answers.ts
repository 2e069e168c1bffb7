import { splitIntoPieces } from '../answer-plan.ts'
import type { ScriptRequest } from '../script-request.ts'
import type { Step } from '../script-steps.ts'
import { sendAnswer } from './answer-forms.ts'
import { type AnswerScript, answerScript } from './answer-script.ts'
import { type ChatAnswer, chatAnswer, textDeltas } from './chat-answer.ts'
import { messageAnswer, textBlock, wholeBlock } from './message-answer.ts'

const text = 'This answer has an unusual shape.'
const pieces = splitIntoPieces(text)
const spoken = () => ({ content: [textBlock(text)] })

const safe = { hate: { filtered: false, severity: 'safe' }, violence: { filtered: false, severity: 'safe' } }

/** Azure's first chunk has no choices and hardly any members; its choices carry filter results. */
const azure: ChatAnswer = {
  before: [
    `data: ${JSON.stringify({
      choices: [],
      created: 0,
      id: '',
      model: '',
      object: '',
      prompt_filter_results: [{ prompt_index: 0, content_filter_results: safe }],
    })}\n\n`,
  ],
  opening: { role: 'assistant', content: '' },
  deltas: textDeltas(pieces),
  message: { content: text },
  choiceMembers: { content_filter_results: safe },
}

/** Blocks, deltas and events of unknown types, between those of a plain answer. */
function unknownParts(request: ScriptRequest): Iterable<Step> {
  if (request.dialect !== 'messages') {
    const delta = { content: null, vendor_part: { kind: 'unknown' } }
    const answer = { deltas: [delta, ...textDeltas(pieces)], message: { content: text, vendor_part: {} } }
    return sendAnswer(request, chatAnswer(request, answer))
  }
  const first = textBlock(text)
  const deltas = [{ type: 'vendor_delta', value: 1 }, ...first.deltas]
  const block = {
    ...wholeBlock({ type: 'vendor_block', payload: { a: [1, null] } }),
    deltas: [{ type: 'vendor_delta' }],
  }
  const answer = messageAnswer(request, { content: [block, { ...first, deltas }] })
  const [start = '', ...rest] = answer.frames
  const event = 'event: vendor_event\ndata: {"type":"vendor_event","index":0}\n\n'
  return sendAnswer(request, { ...answer, frames: [start, event, ...rest] })
}

/** Scripts about the form of chunks, by name. A form that only chat completions has is a plain answer on messages. */
export const shapeAnswers: [string, AnswerScript][] = [
  ['azure', answerScript(() => azure, spoken)],
  [
    'role-only',
    answerScript(
      () => ({ opening: { role: 'assistant' }, deltas: textDeltas(pieces), message: { content: text } }),
      spoken,
    ),
  ],
  [
    'no-role',
    answerScript(
      () => ({ opening: { content: '' }, deltas: textDeltas(pieces), message: { content: text } }),
      spoken,
    ),
  ],
  [
    'finish-with-content',
    answerScript(
      () => ({
        deltas: textDeltas(pieces.slice(0, -1)),
        lastDelta: { content: pieces.at(-1) },
        message: { content: text },
      }),
      spoken,
    ),
  ],
  ['unknown-parts', unknownParts],
  [
    'several-texts',
    answerScript(
      () => ({ deltas: textDeltas([text, '\n\n', text]), message: { content: `${text}\n\n${text}` } }),
      () => ({ content: [textBlock(text), textBlock('\n\n'), textBlock(text)] }),
    ),
  ],
]
