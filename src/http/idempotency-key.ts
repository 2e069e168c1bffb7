import { invalidRequest } from '../lib/api-error.ts'
import type { AppContext } from './context.ts'

/**
 * The Idempotency-Key of a request; null without one
 * (https://datatracker.ietf.org/doc/draft-ietf-httpapi-idempotency-key-header).
 * @throws ApiError invalid_request for one that is empty, too long, or no printable ASCII.
 */
export function idempotencyKey(context: AppContext): string | null {
  const header = context.req.raw.headers.get('idempotency-key')
  if (header === null) return null
  if (/^[\x21-\x7e]([\x20-\x7e]{0,253}[\x21-\x7e])?$/.test(header)) return header
  throw invalidRequest('Idempotency-Key: must be 1 to 255 printable ASCII characters')
}
