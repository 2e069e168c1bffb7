import { SseReader } from '../../lib/sse.ts'
import type { CounterForm, HeaderRecord, RequestTarget, Transport, UpstreamOperation } from './transport.ts'

interface FixedHeaderOptions {
  baseUrl: string
  /** Paths under the base URL; an operation that is absent is not supported. */
  paths: Readonly<Partial<Record<UpstreamOperation, string>>>
  /** Headers of every request, the one that authorizes it included. */
  headers: HeaderRecord
  /** The form of the counter at the path of `input_tokens`. */
  counter?: CounterForm
  /** Headers of the caller to forward: under the upstream's name, the names that callers may use. */
  forwarded: Readonly<Record<string, readonly string[]>>
}

/** The transport of providers that take JSON, answer JSON or Server-Sent Events, and take a fixed credential header. */
export function fixedHeaderTransport(options: FixedHeaderOptions): Transport {
  const forwarded = Object.entries(options.forwarded)
  const urls: Partial<Record<UpstreamOperation, string>> = Object.fromEntries(
    Object.entries(options.paths).map(([operation, path]) => [operation, options.baseUrl + path]),
  )
  const whole = { 'content-type': 'application/json', 'user-agent': 'headgate', ...options.headers }
  const headers = {
    whole: { ...whole, accept: 'application/json' },
    stream: { ...whole, accept: 'text/event-stream' },
  }
  return {
    speaks: (operation) => urls[operation] !== undefined,
    counter: () => options.counter ?? null,
    prepare(target, body) {
      const url = urls[target.operation]
      if (url === undefined) throw new Error(`the provider does not speak ${target.operation}`)
      const fixed = target.stream ? headers.stream : headers.whole
      return { url, headers: withForwarded(fixed, forwarded, target), body }
    },
    authorize: null,
    streamType: 'text/event-stream',
    frames: () => new SseReader(),
  }
}

/** Returns the shared record where the caller sent none of the headers. */
function withForwarded(
  fixed: HeaderRecord,
  forwarded: ReadonlyArray<[name: string, sources: readonly string[]]>,
  { callerHeaders }: RequestTarget,
): HeaderRecord {
  if (!callerHeaders) return fixed
  let headers = fixed
  for (const [name, sources] of forwarded) {
    const value = sources.map((source) => callerHeaders.get(source)).find((found) => found)
    if (value) headers = { ...headers, [name]: value }
  }
  return headers
}
