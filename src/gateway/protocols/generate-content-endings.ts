import { type Json, listOf, objectOf, textOf } from './json.ts'

/** Finish reasons of an answer that cannot be used (https://ai.google.dev/api/generate-content#FinishReason). */
const MALFORMED: ReadonlySet<string> = new Set([
  'MALFORMED_FUNCTION_CALL',
  'UNEXPECTED_TOOL_CALL',
  'TOO_MANY_TOOL_CALLS',
  'MALFORMED_RESPONSE',
  'MISSING_THOUGHT_SIGNATURE',
])

export const isMalformed = (finishReason: unknown): boolean => MALFORMED.has(textOf(finishReason))

/**
 * The message of an answer that ended as no answer: the model wrote a call that cannot be read, for example. Passed on as an
 * answer, it would be an empty one.
 * @param body an answer or a chunk of one. @returns null for any other.
 */
export function malformedAnswer(body: Json): string | null {
  const candidate = listOf(body.candidates).find(({ finishReason }) => isMalformed(finishReason))
  if (!candidate) return null
  const { finishReason, finishMessage } = candidate
  const explanation = textOf(finishMessage)
  return `The model's answer ended with ${textOf(finishReason)}${explanation === '' ? '.' : `: ${explanation}`}`
}

/** The provider answers with status 200 where it does not answer a prompt. @returns null for an answered one. */
export function blockedPrompt(body: Json): string | null {
  const { blockReason, blockReasonMessage } = objectOf(body.promptFeedback)
  const reason = textOf(blockReason)
  if (reason === '') return null
  return textOf(blockReasonMessage) || `The provider blocked the prompt: ${reason}.`
}
