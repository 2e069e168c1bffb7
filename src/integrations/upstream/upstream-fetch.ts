import { ApiError } from '../../lib/api-error.ts'
import { BrokenStreamError, PartReader } from '../../lib/bytes/read-bytes.ts'
import { EgressError, safeFetch } from '../../lib/safe-fetch.ts'
import { CredentialsUnavailable, type UpstreamCredential } from '../types.ts'

/** An upstream that cannot be used as it is. The message is safe for callers: it quotes nothing of the upstream's. */
export class UpstreamError extends ApiError {
  /** Whether the upstream may have executed the request. */
  readonly mayBeExecuted: boolean

  constructor(
    message: string,
    { mayBeExecuted = true, cause }: { mayBeExecuted?: boolean; cause?: unknown } = {},
  ) {
    super('upstream', message, { code: 'upstream_failed', ...(cause !== undefined && { cause }) })
    this.name = 'UpstreamError'
    this.mayBeExecuted = mayBeExecuted
  }
}

interface UpstreamFetchOptions {
  /** `host:port` exceptions (configuration EGRESS_ALLOW). */
  allow: readonly string[]
  credential: UpstreamCredential
  /** Bytes of all answers together, after decompression. */
  mostBytes: number
}

/**
 * Makes a fetch for one upstream. It sends the credential of the connection and no other one, follows no redirect, and
 * limits what it reads. Its errors can be shown to callers.
 */
export function upstreamFetch({ allow, credential, mostBytes }: UpstreamFetchOptions) {
  const budget = { left: mostBytes, most: mostBytes }
  return async (address: string | URL, init: RequestInit = {}): Promise<Response> => {
    const headers = new Headers(init.headers)
    for (const [name, value] of Object.entries(credential.headers)) headers.set(name, value)
    const response = await sent(String(address), { ...init, headers, allow })
    const refusal = refusalOf(response)
    if (refusal) {
      await response.body?.cancel().catch(() => {})
      throw refusal
    }
    const { status, statusText } = response
    const body = response.body && limited(response.body, budget)
    return new Response(isBodiless(status) ? null : body, { status, statusText, headers: response.headers })
  }
}

async function sent(address: string, options: Parameters<typeof safeFetch>[1]): Promise<Response> {
  try {
    return await safeFetch(address, options)
  } catch (error) {
    if (options.signal?.aborted) throw error
    if (error instanceof EgressError) {
      const message = `The address of the integration may not be called (${error.message}).`
      throw new UpstreamError(message, { mayBeExecuted: false })
    }
    throw new UpstreamError('The upstream of the integration cannot be reached.', { cause: error })
  }
}

function refusalOf(response: Response): Error | null {
  const { status } = response
  if (status >= 300 && status < 400 && status !== 304) {
    const message =
      'The upstream of the integration redirects. Redirects are not followed: set its final address.'
    return new UpstreamError(message, { mayBeExecuted: false })
  }
  if (status === 401) return new CredentialsUnavailable(null)
  const isInvalidToken = /\berror="?invalid_token\b/.test(response.headers.get('www-authenticate') ?? '')
  return status === 403 && isInvalidToken ? new CredentialsUnavailable(null) : null
}

const isBodiless = (status: number) => status === 204 || status === 205 || status === 304

/** The body, up to what is left of the budget: an endless or a compressed answer must not fill the isolate. */
function limited(body: ReadableStream<Uint8Array>, budget: { left: number; most: number }) {
  const reader = new PartReader(body)
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const part = await reader.next()
        if (part === null) return controller.close()
        budget.left -= part.length
        if (budget.left < 0) throw new UpstreamError(tooLong(budget.most))
        controller.enqueue(part.slice())
      } catch (error) {
        reader.cancel()
        controller.error(error instanceof BrokenStreamError ? brokenStream(error.cause) : error)
      }
    },
    cancel: (reason) => reader.cancel(reason),
  })
}

const tooLong = (bytes: number) => `The upstream of the integration sent more than ${bytes} bytes.`

const brokenStream = (cause: unknown) =>
  new UpstreamError('The upstream of the integration broke off its answer.', { cause })
