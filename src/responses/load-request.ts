import { invalidRequest } from '../lib/api-error.ts'
import { BodyCollector } from '../lib/body-collector.ts'
import { type ResponseRequest, readResponseRequest } from './request.ts'

/** Interface, Limits. The Worker counts as well; this bounds what the object takes in. */
const MAXIMUM_BODY_BYTES = 52_428_800
const READ_BYTES = 64 * 1024

/**
 * Reads the body of a request. What is made of it takes its place in the isolate's budget.
 * @returns `release` gives that place back.
 * @throws ApiError invalid_request, and rate_limited when this isolate holds too many bytes already.
 */
export async function loadRequest(
  { configuration }: { configuration: { BUFFER_LIMIT_BYTES: number } },
  body: ReadableStream<Uint8Array>,
  organizationId: string,
): Promise<{ request: ResponseRequest; release: () => void }> {
  const collector = new BodyCollector(MAXIMUM_BODY_BYTES, configuration.BUFFER_LIMIT_BYTES, organizationId)
  try {
    await eachPart(body, (part) => collector.add(part))
    const request = readResponseRequest(collector.finish().bytes)
    collector.freeBytes()
    return { request, release: () => collector.release() }
  } catch (error) {
    collector.release()
    throw error
  }
}

/** All parts are read into one space: left to itself the runtime makes a new one for each, which lies about for long. */
async function eachPart(body: ReadableStream<Uint8Array>, take: (part: Uint8Array) => void): Promise<void> {
  const reader = body.getReader({ mode: 'byob' })
  try {
    for (let space = new Uint8Array(READ_BYTES); ; ) {
      const { done, value } = await reader.read(space).catch(brokenOff)
      if (done) return
      take(value)
      space = new Uint8Array(value.buffer)
    }
  } catch (error) {
    reader.cancel(error).catch(() => {})
    throw error
  }
}

/** Of a body that is too large or no gzip, or whose sender left: the Worker knows which, and tells it. */
function brokenOff(): never {
  throw invalidRequest('The body broke off.')
}
