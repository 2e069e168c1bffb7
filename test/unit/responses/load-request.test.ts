import { expect, it } from 'vitest'
import { ApiError } from '../../../src/lib/api-error.ts'
import { loadRequest } from '../../../src/responses/context/load-request.ts'

/** A body that ends with an error after so many bytes. */
function brokenBody(bytes: number): ReadableStream<Uint8Array> {
  let sent = false
  return new ReadableStream({
    type: 'bytes',
    pull(controller) {
      if (sent) controller.error(new Error('disconnected'))
      else controller.enqueue(new Uint8Array(bytes).fill(0x20))
      sent = true
    },
  })
}

it('a body that breaks off is an invalid request, and releases its budget', async () => {
  const deps = { configuration: { BUFFER_LIMIT_BYTES: 1024 * 1024 } }
  for (let attempt = 0; attempt < 5; attempt += 1) {
    const error: unknown = await loadRequest(deps, brokenBody(500_000), 'somebody').catch((reason) => reason)
    expect(error).toBeInstanceOf(ApiError)
    expect(error).toMatchObject({ kind: 'invalid_request', message: 'The body broke off.' })
  }
})
