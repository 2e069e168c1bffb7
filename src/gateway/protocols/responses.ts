import * as z from 'zod'
import type { JsonPath } from '../../lib/json-visitor.ts'
import { encodeFrame, HEARTBEAT_COMMENT } from '../../lib/sse.ts'
import type { Protocol, RequestTexts } from './protocol.ts'
import { type OutlineRules, outlineRequest, type RequestOutline } from './request-outline.ts'
import type { TextKind } from './streamed-texts.ts'
import { ITEMS_STRUCTURE } from './technical-members.ts'
import { OWN_DATA } from './text-fields.ts'

/**
 * One turn of a response, as requested by `src/responses`: the members of a responses request, with all items of the
 * context as `input`. The answer is a stream of model events. Turns are always translated, so no upstream has this
 * protocol.
 */

const turn = z.looseObject({
  model: z.string('model is required and must be a string').min(1, 'model must not be empty'),
  stream: z.literal(true, 'stream must be true'),
  max_output_tokens: z
    .int('max_output_tokens must be an integer')
    .positive('max_output_tokens must be a positive integer')
    .nullish(),
  tools: z.array(z.unknown(), 'tools must be an array').nullish(),
  reasoning: z.unknown().optional(),
  service_tier: z.unknown().optional(),
})

/** Members of a call that hold its tool and its input. */
const ARGUMENTS_OF_ITEMS = new Set(['input', 'name', 'namespace'])

const texts: RequestTexts = {
  // Here `input` is the list of items; in other protocols it is the input of a tool.
  ownData: new Set([...OWN_DATA].filter((name) => name !== 'input')),
  members: ITEMS_STRUCTURE,
  messageTextKind: itemTextKind,
  thinkingOf: (path) => (path[0] === 'input' && path[2] === 'content' ? String(path[1]) : null),
  signatureOf: (path) => (isOfItem(path) ? String(path[1]) : null),
}

const rules: OutlineRules = {
  schema: turn,
  messages: null,
  removals: [],
  texts,
  hasItems: true,
  maximumOutput: ({ max_output_tokens: limit }) => (typeof limit === 'number' ? limit : null),
  choices: () => 1,
}

/** Whether a value is a member of an item. */
const isOfItem = (path: JsonPath): boolean => path[0] === 'input' && path.length === 3

function itemTextKind(path: JsonPath, { toolMessages }: RequestOutline): TextKind {
  if (path[0] !== 'input' || typeof path[1] !== 'number') return { kind: 'request', json: false }
  if (toolMessages.has(path[1]) || path[2] === 'output') return { kind: 'tool_result', json: false }
  if (path[2] === 'arguments') return { kind: 'tool_arguments', json: true }
  const isArgument = ARGUMENTS_OF_ITEMS.has(String(path[2]))
  return { kind: isArgument ? 'tool_arguments' : 'request', json: false }
}

export const responses: Protocol = {
  outline: (body) => outlineRequest(body, rules),
  requestTexts: texts,
  removals: [],
  usageIsOptional: false,
  readAnswer: notAnUpstreamProtocol,
  streamReader: notAnUpstreamProtocol,
  dialect: {
    heartbeat: HEARTBEAT_COMMENT,
    failure(message) {
      const error = { message, type: 'server_error', code: 'stream_error' }
      return [encodeFrame('error', { type: 'error', error })]
    },
  },
}

function notAnUpstreamProtocol(): never {
  throw new Error('turns of responses are not an upstream protocol')
}
