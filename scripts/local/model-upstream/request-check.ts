import type { IncomingHttpHeaders } from 'node:http'
import { checkChat, checkCompletion } from './checks/chat-check.ts'
import type { CheckedRequest } from './checks/fault.ts'
import { checkMessages } from './checks/messages-check.ts'
import { type JsonRecord, toRecord, toText } from './json-value.ts'
import type { ModelTraits } from './model-traits.ts'

export interface RequestContext {
  headers: IncomingHttpHeaders
  traits: ModelTraits
  /** Whether the top level may have members unknown to the vendor. */
  acceptUnknown: boolean
}

export type RequestCheck = (body: JsonRecord, context: RequestContext) => CheckedRequest

const unchecked: CheckedRequest = { fault: undefined, unknownMembers: [] }

/** The vendor's checks of a body by the endpoint that got it. */
export const requestChecks = {
  chat: (body, { traits }) => checkChat(body, traits),
  completions: (body, { traits }) => checkCompletion(body, traits),
  messages: checkUnlessContinued,
  count: (body, context) => checkWhole(body, context, true),
} satisfies Record<string, RequestCheck>

/** Checks a messages request; one that continues a thread is whole only once it has been put together. */
function checkUnlessContinued(body: JsonRecord, context: RequestContext): CheckedRequest {
  const continues = toRecord(body.thread).type === 'continue' && betasOf(context).includes('message-threads-')
  return continues ? unchecked : checkWhole(body, context, false)
}

/** Checks a messages request or token count whose conversation is whole. */
export function checkWhole(body: JsonRecord, context: RequestContext, counting: boolean): CheckedRequest {
  const { headers, traits, acceptUnknown } = context
  const version = toText(headers['anthropic-version'])
  return checkMessages(body, { traits, version, betas: betasOf(context), counting, acceptUnknown })
}

const betasOf = ({ headers }: RequestContext): string => toText(headers['anthropic-beta'])
