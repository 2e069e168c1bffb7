import type { Next } from 'hono'
import { PartReader } from '../../lib/bytes/read-bytes.ts'
import type { AppContext } from '../context.ts'
import { drain } from '../request-body.ts'

/**
 * Reads the rest of a body that was not needed, such as one with an invalid key or a length over the limit. A sender that
 * is still writing when the connection closes gets a reset instead of the answer.
 */
export async function drainBody(context: AppContext, next: Next): Promise<void> {
  await next()
  const { body } = context.req.raw
  if (body && !body.locked && !context.req.raw.bodyUsed) await drain(new PartReader(body))
}
