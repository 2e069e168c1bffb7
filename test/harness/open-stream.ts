import { type ClientRequest, type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http'
import { vi } from 'vitest'

/** An answer that is being received, so that a test can leave, or read no further, in the middle of it. */
export interface OpenStream {
  status: number
  headers: IncomingHttpHeaders
  /** The text received so far. */
  text(): string
  /** When the newest bytes arrived, in milliseconds since the epoch. */
  lastReceivedAt(): number
  /** Resolves when the text satisfies the check. @throws after five seconds. */
  until(check: (text: string) => boolean, timeout?: number): Promise<string>
  /** Resolves with everything when the answer has ended. @throws if the connection breaks. */
  end(): Promise<string>
  /** Stops reading, so that what arrives stays in the socket; `resume` goes on. */
  pause(): void
  resume(): void
  /** Breaks the connection off. @returns when, in milliseconds since the epoch. */
  leave(): number
}

/** Sends a request and resolves with its head; the body is read as it comes. @throws if there is no answer. */
export async function openStream(
  url: string,
  headers: Record<string, string>,
  body: string,
  method = 'POST',
): Promise<OpenStream> {
  const { outgoing, answered } = beginRequest(url, headers, body, method)
  const incoming = await answered
  let text = ''
  let lastReceivedAt = Date.now()
  incoming.setEncoding('utf8')
  const ended = new Promise<string>((resolve, reject) => {
    incoming.on('end', () => resolve(text))
    incoming.on('error', reject)
  })
  // A test that leaves early does not wait for the end: its rejection is handled here.
  ended.catch(() => {})
  incoming.on('data', (chunk: string) => {
    text += chunk
    lastReceivedAt = Date.now()
  })
  return {
    status: incoming.statusCode ?? 0,
    headers: incoming.headers,
    text: () => text,
    lastReceivedAt: () => lastReceivedAt,
    until: (check, timeout = 5_000) =>
      vi.waitFor(
        () => {
          if (!check(text)) throw new Error(`not in what has arrived: ${text.slice(-500)}`)
          return text
        },
        { timeout, interval: 10 },
      ),
    end: () => ended,
    pause: () => incoming.pause(),
    resume: () => incoming.resume(),
    leave: () => leave(outgoing),
  }
}

/** A request on a connection of its own, whose answer is waited for apart. */
export function beginRequest(
  url: string,
  headers: Record<string, string>,
  body: string,
  method = 'POST',
): { outgoing: ClientRequest; answered: Promise<IncomingMessage>; leave: () => number } {
  const outgoing = request(url, { method, headers, agent: false })
  const answered = new Promise<IncomingMessage>((resolve, reject) => {
    outgoing.on('response', resolve)
    outgoing.on('error', reject)
  })
  answered.catch(() => {})
  outgoing.end(body)
  return { outgoing, answered, leave: () => leave(outgoing) }
}

function leave(outgoing: ClientRequest): number {
  outgoing.destroy()
  return Date.now()
}
