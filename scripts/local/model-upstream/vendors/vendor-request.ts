import type { IncomingMessage, ServerResponse } from 'node:http'
import { isRecord, type JsonRecord } from '../json-value.ts'

/** A request to a vendor that is played on top of this server's own protocols. */
export interface VendorRequest {
  incoming: IncomingMessage
  response: ServerResponse
  /** The path below the vendor's base URL, still percent-encoded. */
  path: string
  raw: Buffer
  /** The body, or undefined where it is no JSON object. */
  body: JsonRecord | undefined
  /** URL of this server. */
  self: string
}

/** Marks a request of a vendor to this server: it is the same request, which the log has already. */
export const INNER_HEADER = 'x-vendor-inner'

/** Asks a path of this server, until the vendor's client leaves. */
export async function askSelf(
  { self, response }: VendorRequest,
  path: string,
  body: JsonRecord,
  headers: Record<string, string>,
): Promise<Response> {
  const departure = new AbortController()
  response.once('close', () => departure.abort())
  return fetch(self + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', [INNER_HEADER]: '1', ...headers },
    body: JSON.stringify(body),
    signal: departure.signal,
  })
}

/** Asks a path of this server, and answers with its answer as it comes. */
export async function forwardToSelf(
  request: VendorRequest,
  path: string,
  body: JsonRecord,
  headers: Record<string, string>,
): Promise<void> {
  const { response } = request
  const answer = await askSelf(request, path, body, headers)
  const kept = ['content-type', 'retry-after'].flatMap((name) => {
    const value = answer.headers.get(name)
    return value === null ? [] : [[name, value] as const]
  })
  response.writeHead(answer.status, Object.fromEntries(kept))
  response.flushHeaders()
  try {
    for await (const chunk of answer.body as unknown as AsyncIterable<Uint8Array>) response.write(chunk)
    response.end()
  } catch {
    // The scripted answer was cut off.
    response.destroy()
  }
}

/** Sends a body as JSON. */
export function sendVendorJson(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): void {
  const bytes = Buffer.from(JSON.stringify(body))
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': bytes.length,
    ...headers,
  })
  response.end(bytes)
}

/** The JSON object of a body. */
export function recordIn(raw: Buffer): JsonRecord | undefined {
  try {
    const body: unknown = JSON.parse(raw.toString('utf8'))
    return isRecord(body) ? body : undefined
  } catch {
    return undefined
  }
}

/** The events of a stream of Server-Sent Events, as they arrive. */
export async function* eventsIn(answer: Response): AsyncGenerator<{ event: string; data: string }> {
  let rest = ''
  for await (const text of (answer.body as ReadableStream<Uint8Array>).pipeThrough(
    new TextDecoderStream() as never,
  )) {
    const frames = (rest + String(text)).split(/\r?\n\r?\n/)
    rest = frames.pop() ?? ''
    for (const frame of frames) {
      const lines = frame.split(/\r?\n/)
      const field = (name: string) =>
        lines
          .find((line) => line.startsWith(`${name}:`))
          ?.slice(name.length + 1)
          .trim()
      const data = field('data')
      if (data) yield { event: field('event') ?? '', data }
    }
  }
}
