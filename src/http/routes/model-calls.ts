import { Hono } from 'hono'
import { settle } from '../../calls/governed-call.ts'
import type { ModelAnswer } from '../../gateway/calls/model-call.ts'
import { admitModelCall, sendModelCall } from '../../gateway/invoke-model.ts'
import type { Operation } from '../../gateway/protocols/operations.ts'
import type { AppContext, AppEnv } from '../context.ts'
import { readGovernedBody } from '../governed-body.ts'
import { rateLimitHeaders } from '../rate-limit-headers.ts'
import { requestIdHeaders } from '../surfaces.ts'

/** Reads a body, makes one governed model call and returns its answer. */
type ModelCallHandler = (context: AppContext) => Promise<Response>

function modelCall(operation: Operation): ModelCallHandler {
  return async function modelCallHandler(context) {
    const held = await readGovernedBody(context)
    // Resolves when no upstream needs the body any more.
    let sending: Promise<unknown> | undefined
    try {
      const sent = await sendCall(context, operation, held.bytes)
      sending = sent.sending
      return modelResponse(context, sent.answer)
    } finally {
      if (sending) context.get('deps').waitUntil(sending.finally(() => held.release()))
      else held.release()
    }
  }
}

/** @throws the error that is rendered in place of an answer. */
async function sendCall(context: AppContext, operation: Operation, body: Uint8Array) {
  const [deps, caller, rights] = [context.get('deps'), context.get('caller'), context.get('rights')]
  const { headers, signal } = context.req.raw
  const { identity } = caller
  const request = { operation, body, headers, identity, principal: rights.principal, counted: true }
  const admitted = await admitModelCall(deps, request)
  context.set('isRecorded', true)
  context.set('rateLimit', admitted.rateLimit ?? null)
  if (admitted.kind === 'refused') throw admitted.error
  const sent = await sendModelCall(deps, admitted.planned, admitted.call, signal)
  const { call } = admitted
  deps.waitUntil(sent.outcome.then((outcome) => settle(deps, call, outcome)))
  if (sent.kind === 'failed') throw sent.error
  return sent
}

/** The response is not created through Hono's context, which would copy the headers twice. */
function modelResponse(context: AppContext, { status, headers, body }: ModelAnswer): Response {
  const requestId = context.get('requestId')
  for (const name of requestIdHeaders(context.get('surface'))) headers[name] = requestId
  Object.assign(headers, rateLimitHeaders(context))
  return new Response(body as BodyInit, { status, headers })
}

const chatCompletions = modelCall('chat_completions')
const completions = modelCall('completions')
const messages = modelCall('messages')
const countTokens = modelCall('count_tokens')

/** Routes of chat completions (interface: Chat completions). The LLM host serves them too, with legacy completions. */
export const chatCompletionRoutes = new Hono<AppEnv>()
  .post('/v1/chat/completions', chatCompletions)
  .post('/v1/completions', completions)

/** Messages and token counting (interface: Messages). */
export const messageRoutes = new Hono<AppEnv>()
  .post('/v1/messages', messages)
  .post('/v1/messages/count_tokens', countTokens)

/** The handlers of these routes by path. */
export const MODEL_CALLS: ReadonlyArray<[path: string, handle: ModelCallHandler]> = [
  ['/v1/chat/completions', chatCompletions],
  ['/v1/completions', completions],
  ['/v1/messages', messages],
  ['/v1/messages/count_tokens', countTokens],
]
