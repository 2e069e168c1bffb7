import { checkLimits } from '../calls/governed-call.ts'
import { withCurrentRights } from '../calls/renew-rights.ts'
import type { OwnedBytes } from '../lib/bytes/owned-bytes.ts'
import type { AppContext } from './context.ts'
import { declaredLength, readBody, readSmallBody } from './request-body.ts'

/** Up to this size a body is read without a check: reading it costs less than a request to the ledger. */
const UNCHECKED_BYTES = 1024 * 1024

/**
 * Reads the body of a call. A large one is read only while the caller's limits leave room, so that a limited caller cannot
 * occupy the gateway with bodies that will be refused.
 * @throws ApiError as `readBody` does, and rate_limited.
 */
export async function readGovernedBody(context: AppContext): Promise<OwnedBytes> {
  if (!isSmallBody(context)) {
    await requireRoom(context)
    return readBody(context)
  }
  return (await readSmallBody(context, declaredLength(context) ?? 0)) ?? readBody(context)
}

/** @throws ApiError rate_limited, or unauthorized for a key that is no longer valid. */
export async function requireRoom(context: AppContext): Promise<void> {
  const { deps } = context.var
  const verdict = await withCurrentRights(deps, context.var.rights, (rights) => {
    context.set('rights', rights)
    return checkLimits(deps, rights)
  })
  if (verdict === null) return
  context.set('rateLimit', verdict.rateLimit ?? null)
  throw verdict.error
}

/** Whether a body may be read without a check: there is none, or it declares a small length and is not compressed. */
export function isSmallBody(context: AppContext): boolean {
  const { raw } = context.req
  const length = declaredLength(context)
  const isSmall = length !== null && length <= UNCHECKED_BYTES && !raw.headers.has('content-encoding')
  return !raw.body || isSmall
}
