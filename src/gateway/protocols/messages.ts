import type { Slices } from '../../lib/slices.ts'
import { encodeFrame } from '../../lib/sse.ts'
import { countTokensRequest, messagesRequest } from '../../wire/model-requests.ts'
import { EventScan } from './event-scan.ts'
import { AlternatingMessagesCheck } from './message-checks.ts'
import { MessagesStreamReader } from './messages-stream-reader.ts'
import type { AnswerContext, AnswerReading, Protocol } from './protocol.ts'
import { usageOfMessages } from './reported-usage.ts'
import { MESSAGES_REQUEST_TEXTS } from './request-inspection.ts'
import { type OutlineRules, outlineRequest } from './request-outline.ts'
import { unsignedThinkingEdits } from './unsigned-thinking.ts'

const PING = encodeFrame('ping', { type: 'ping' })

const REMOVALS = ['metadata', 'litellm_metadata', 'proxy_server_request', 'cache_control']

const rules: OutlineRules = {
  schema: messagesRequest,
  messages: () => new AlternatingMessagesCheck(),
  removals: REMOVALS,
  texts: MESSAGES_REQUEST_TEXTS,
  maximumOutput: (fields) => fields.max_tokens as number,
  budgetIsWithinLimit: true,
  limitsToolUses: true,
  choices: () => 1,
}

/** Messages between equal protocols. */
export const messages: Protocol = {
  outline: (body) => outlineRequest(body, rules),
  requestTexts: MESSAGES_REQUEST_TEXTS,
  removals: REMOVALS,
  usageIsOptional: false,
  ownEdits: unsignedThinkingEdits,
  readAnswer,
  streamReader: (context) => new MessagesStreamReader(context),
  dialect: {
    heartbeat: PING,
    failure(message, isOverload) {
      const type = isOverload ? 'overloaded_error' : 'api_error'
      return [encodeFrame('error', { type: 'error', error: { type, message } })]
    },
  },
}

/** Token counting: the same request, no generation. */
export const countTokens: Protocol = {
  ...messages,
  // The interface allows both members; the upstream's counter takes neither.
  removals: [...messages.removals, 'stream', 'max_tokens'],
  outline: (body) => outlineRequest(body, { ...rules, schema: countTokensRequest, maximumOutput: () => 0 }),
}

function* readAnswer(body: Uint8Array, context: AnswerContext): Slices<AnswerReading> {
  const scan = new EventScan(body, context, false)
  yield* scan.read()
  scan.removeSignatures()
  context.inspection.endUnit(body.length)
  const isError = (scan.parse('error') ?? null) !== null && scan.parse('content') === undefined
  const usage = usageOfMessages(scan.parse('usage'), null)
  return { edits: scan.edits, isError, usage, textBytes: scan.textBytes }
}
