import { splitIntoPieces } from '../answer-plan.ts'
import type { ScriptRequest } from '../script-request.ts'
import type { Step } from '../script-steps.ts'
import { sendAnswer } from './answer-forms.ts'
import { type ChatAnswer, chatAnswer, textDeltas } from './chat-answer.ts'
import { type MessageAnswer, messageAnswer, textBlock } from './message-answer.ts'

export type AnswerScript = (request: ScriptRequest) => Iterable<Step>

/**
 * A script that gives the same answer in both protocols. Legacy completions, which carry only text, get the sentence
 * that ends a tool loop.
 */
export function answerScript(
  chat: (request: ScriptRequest) => ChatAnswer,
  messages: (request: ScriptRequest) => MessageAnswer,
): AnswerScript {
  return (request) => {
    if (request.dialect === 'messages') return sendAnswer(request, messageAnswer(request, messages(request)))
    return sendAnswer(request, chatAnswer(request, chat(request)))
  }
}

/** Makes a script like `answerScript` does; a conversation that ends with tool results is answered in text that quotes them. */
export function toolScript(
  chat: (request: ScriptRequest) => ChatAnswer,
  messages: (request: ScriptRequest) => MessageAnswer,
): AnswerScript {
  const calling = answerScript(chat, messages)
  return (request) =>
    request.toolResults.length > 0 ? sayText(request, closingText(request)) : calling(request)
}

/** A plain text answer. */
export function sayText(request: ScriptRequest, text: string): Iterable<Step> {
  return answerScript(
    () => ({ deltas: textDeltas(splitIntoPieces(text)), message: { content: text } }),
    () => ({ content: [textBlock(text)] }),
  )(request)
}

function closingText(request: ScriptRequest): string {
  return `The tools answered: ${request.toolResults.map((result) => JSON.stringify(result)).join(', ')}.`
}
