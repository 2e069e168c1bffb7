import type { Slices } from '../../lib/slices.ts'
import { encodeFrame, HEARTBEAT_COMMENT } from '../../lib/sse.ts'
import { chatCompletionRequest, completionRequest, OTHER_OUTPUT_LIMITS } from '../../wire/model-requests.ts'
import { ChatStreamReader, DONE } from './chat-stream-reader.ts'
import { ChunkScan } from './chunk-scan.ts'
import { markedCallEdits } from './marked-calls.ts'
import { ChatMessagesCheck } from './message-checks.ts'
import type { AnswerContext, AnswerReading, Protocol } from './protocol.ts'
import { usageOfChat } from './reported-usage.ts'
import { CHAT_REQUEST_TEXTS } from './request-inspection.ts'
import { type OutlineRules, outlineRequest } from './request-outline.ts'

const REMOVALS = ['metadata', 'litellm_metadata', 'proxy_server_request']

const chatRules: OutlineRules = {
  schema: chatCompletionRequest,
  messages: () => new ChatMessagesCheck(),
  removals: REMOVALS,
  texts: CHAT_REQUEST_TEXTS,
  maximumOutput: largerOutput,
  choices: mostChoices,
}

const completionRules: OutlineRules = {
  schema: completionRequest,
  messages: null,
  removals: REMOVALS,
  texts: CHAT_REQUEST_TEXTS,
  required: 'prompt',
  // The default of 16 is OpenAI's; other servers generate up to the model's maximum.
  maximumOutput: largerOutput,
  choices: mostChoices,
}

function mostChoices(fields: Record<string, unknown>): number {
  return Math.max(numberOf(fields.n) ?? 1, numberOf(fields.best_of) ?? 1)
}

/** Upstreams differ in which of the members they follow, so the reservation covers the largest one. */
function largerOutput(fields: Record<string, unknown>): number | null {
  const names = ['max_completion_tokens', 'max_tokens', ...OTHER_OUTPUT_LIMITS]
  const limits = names.map((name) => numberOf(fields[name]))
  const given = limits.filter((limit) => limit !== null)
  return given.length === 0 ? null : Math.max(...given)
}

const numberOf = (value: unknown): number | null => (typeof value === 'number' ? value : null)

/** Chat completions between equal protocols. */
export const chatCompletions: Protocol = {
  outline: (body) => outlineRequest(body, chatRules),
  requestTexts: CHAT_REQUEST_TEXTS,
  removals: REMOVALS,
  usageIsOptional: true,
  ownEdits: markedCallEdits,
  readAnswer,
  streamReader: (context) => new ChatStreamReader(context),
  dialect: {
    heartbeat: HEARTBEAT_COMMENT,
    failure(message) {
      const error = { message, type: 'server_error', code: 'stream_error' }
      return [encodeFrame('error', { error }), encodeFrame(null, DONE)]
    },
  },
}

/** Legacy completions: the same frames and usage around `text` instead of messages. */
export const completions: Protocol = {
  ...chatCompletions,
  outline: (body) => outlineRequest(body, completionRules),
}

function* readAnswer(body: Uint8Array, context: AnswerContext): Slices<AnswerReading> {
  const scan = new ChunkScan(body, context, false)
  yield* scan.read()
  context.inspection.endUnit(body.length)
  const isError = (scan.error !== null || scan.isError) && !scan.hasChoices
  return { edits: scan.edits, isError, usage: usageOfChat(scan.usageValue()), textBytes: scan.textBytes }
}
