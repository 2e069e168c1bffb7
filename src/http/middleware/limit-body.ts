import type { MiddlewareHandler } from 'hono'
import { invalidRequest } from '../../lib/api-error.ts'
import { BrokenStreamError, PartReader, TooLongError } from '../../lib/bytes/read-bytes.ts'
import { GrowingBytes } from '../../lib/growing-bytes.ts'
import { TimeLimitError } from '../../lib/time-limit.ts'
import type { AppEnv } from '../context.ts'
import { declaredLength, drain, LONGEST_PAUSE_MS, tooLarge } from '../request-body.ts'

/** Their bodies have no meaning (RFC 9110, section 9.3) and are drained; a `Request` of these methods takes none. */
const BODILESS = new Set(['GET', 'HEAD'])

/**
 * Limits a body that is read before its sender is known. The rest of a longer body is drained, since the runtime closes
 * the connection of a body that was not read.
 * @param most bytes. @throws ApiError too_large, invalid_request
 */
export function limitBody(most: number): MiddlewareHandler<AppEnv> {
  return async function limitBodyMiddleware(context, next) {
    const declared = declaredLength(context)
    if ((declared ?? 0) > most) throw tooLarge(most)
    const { raw } = context.req
    const { method, headers } = raw
    if (raw.body && declared === null && !BODILESS.has(method)) {
      const bytes = await readChunked(new PartReader(raw.body), most)
      context.req.raw = new Request(raw.url, { method, headers, body: bytes })
    }
    await next()
  }
}

async function readChunked(reader: PartReader, most: number): Promise<Uint8Array<ArrayBuffer>> {
  const bytes = new GrowingBytes()
  try {
    await reader.each((part) => void bytes.append(part), { longest: most, patience: () => LONGEST_PAUSE_MS })
    return bytes.bytes.slice()
  } catch (error) {
    if (error instanceof TooLongError) {
      await drain(reader)
      throw tooLarge(most)
    }
    reader.cancel()
    if (error instanceof BrokenStreamError || error instanceof TimeLimitError)
      throw invalidRequest('The body could not be read.')
    throw error
  }
}
