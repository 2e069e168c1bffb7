import { invalidRequest } from '../../lib/api-error.ts'
import { OwnedBytes } from '../../lib/bytes/owned-bytes.ts'
import { BrokenStreamError, PartReader } from '../../lib/bytes/read-bytes.ts'
import { type ResponseRequest, readResponseRequest } from './request.ts'

/** Interface, Limits. The Worker counts as well; this bounds what the object takes in. */
const MAXIMUM_BODY_BYTES = 52_428_800

/** A request without its body, and the place that its body had: what was made of it takes that until it is released. */
export interface LoadedRequest {
  request: ResponseRequest
  place: OwnedBytes
}

/**
 * Reads the body of a request.
 * @throws ApiError invalid_request, and rate_limited when this isolate holds too many bytes already.
 */
export async function loadRequest(
  { configuration }: { configuration: { BUFFER_LIMIT_BYTES: number } },
  stream: ReadableStream<Uint8Array>,
  organizationId: string,
): Promise<LoadedRequest> {
  const room = { limitBytes: configuration.BUFFER_LIMIT_BYTES, holder: organizationId }
  const body = new OwnedBytes(MAXIMUM_BODY_BYTES, room)
  const reader = new PartReader(stream)
  try {
    await reader.each((part) => body.append(part))
    const request = readResponseRequest(body.bytes)
    body.free()
    return { request, place: body }
  } catch (error) {
    body.release()
    reader.cancel(error)
    // Of a body that is too large or no gzip, or whose sender left: the Worker knows which, and tells it.
    throw error instanceof BrokenStreamError ? invalidRequest('The body broke off.') : error
  }
}
