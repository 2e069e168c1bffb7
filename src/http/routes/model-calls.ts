import { type Handler, Hono } from 'hono'
import { invokeModel } from '../../gateway/invoke-model.ts'
import type { Operation } from '../../gateway/operations.ts'
import type { AppEnv } from '../context.ts'
import { readBody } from '../request-body.ts'

/** A route that reads a body, makes one model call and sends its answer on. */
function modelCall(operation: Operation): Handler<AppEnv> {
  return async function modelCallHandler(context) {
    const held = await readBody(context)
    try {
      const answer = await invokeModel(context.get('deps'), {
        operation,
        body: held.bytes,
        headers: context.req.raw.headers,
        signal: context.req.raw.signal,
        principal: context.get('principal'),
        catalogueEpoch: context.get('catalogueEpoch'),
        record: context.get('call'),
      })
      const body = answer.body as BodyInit
      return context.newResponse(body as never, answer.status as 200, Object.fromEntries(answer.headers))
    } finally {
      held.release()
    }
  }
}

/** Chat completions (interface: Chat completions). Also on the LLM host, with legacy completions. */
export const chatCompletionRoutes = new Hono<AppEnv>()
  .post('/v1/chat/completions', modelCall('chat_completions'))
  .post('/v1/completions', modelCall('completions'))

/** Messages and token counting (interface: Messages). */
export const messageRoutes = new Hono<AppEnv>()
  .post('/v1/messages', modelCall('messages'))
  .post('/v1/messages/count_tokens', modelCall('count_tokens'))
