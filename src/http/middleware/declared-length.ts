import type { Next } from 'hono'
import { ApiError } from '../../lib/api-error.ts'
import { errorText, logEvent } from '../../lib/log.ts'
import { MAXIMUM_BODY_BYTES } from '../../wire/body-limit.ts'
import type { AppContext } from '../context.ts'
import { declaredLength, tooLarge } from '../request-body.ts'
import { authenticate } from './authenticate.ts'

/**
 * Refuses a body by its declared length, whatever its key (interface: Errors, Body too large). The key is only looked up
 * so that the refusal is recorded in its organization, as that of a chunked body is.
 */
export async function limitDeclaredLength(context: AppContext, next: Next): Promise<void> {
  if ((declaredLength(context) ?? 0) <= MAXIMUM_BODY_BYTES) return next()
  try {
    await authenticate(context, async () => {})
  } catch (error) {
    // A key that was refused is recorded, or counted by address, as in any other call.
    if (!(error instanceof ApiError) || error.kind === 'internal') {
      logEvent('error', 'caller_not_identified', {
        request_id: context.get('requestId'),
        error: errorText(error),
      })
    }
  }
  throw tooLarge()
}
