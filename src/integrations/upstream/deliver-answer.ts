import { type JSONRPCMessage, parseJSONRPCMessage } from '@modelcontextprotocol/client'
import { BrokenStreamError, PartReader } from '../../lib/bytes/read-bytes.ts'
import { SseReader } from '../../lib/sse.ts'
import { UpstreamError } from './upstream-fetch.ts'

/**
 * Reads the answer to a request of MCP up to the response, and delivers that. It is JSON or an event stream; both fail at the
 * same things, and at once: the client library waits for a stream that ended until the time of its request is over.
 * Requests of the server in between are delivered too. Its notifications are left out, since nothing here reads them.
 * @param response with a status of success. @param id of the request.
 * @throws UpstreamError for an answer without the response, and for one that is not valid; what the body throws.
 */
export async function deliverAnswer(
  response: Response,
  id: unknown,
  deliver: (message: JSONRPCMessage) => void,
): Promise<void> {
  for await (const text of messageTexts(response)) {
    for (const message of messagesIn(text)) {
      if ('method' in message) {
        if ('id' in message) deliver(message)
        continue
      }
      // A request has an exchange of its own, which no other response belongs to.
      if (message.id !== id) throw notValid()
      deliver(message)
      return
    }
  }
  throw new UpstreamError('The upstream of the integration ended its answer without a result.')
}

async function* messageTexts(response: Response): AsyncGenerator<string> {
  // 202 is the answer to notifications: it promises nothing that a request could wait for.
  if (response.status === 202 || response.body === null) return
  const mediaType = response.headers.get('content-type')?.split(';')[0]?.trim().toLowerCase()
  if (mediaType === 'application/json') yield await response.text()
  else if (mediaType === 'text/event-stream') yield* eventTexts(response.body)
  else throw notValid()
}

/** The data of the events that carry messages. The rest of the stream is not read once the caller returns. */
async function* eventTexts(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const parts = new PartReader(body)
  const events = new SseReader()
  try {
    for (let count = 1; ; count++) {
      const part = await parts.next()
      if (part === null) return
      for (const { event, data } of events.push(part.slice())) {
        if (data !== null && (event === null || event === '' || event === 'message'))
          yield decoder.decode(data)
      }
      if (count % PARTS_OF_TURN === 0) await new Promise((resolve) => setTimeout(resolve))
    }
  } catch (error) {
    throw error instanceof BrokenStreamError ? error.cause : error
  } finally {
    parts.cancel()
  }
}

/** The messages of a JSON text, which may be a batch in revisions before 2025-06-18. */
function messagesIn(text: string): JSONRPCMessage[] {
  try {
    const value: unknown = JSON.parse(text)
    return (Array.isArray(value) ? value : [value]).map(parseJSONRPCMessage)
  } catch {
    throw notValid()
  }
}

/** Parts of up to 64 KB that are read in one turn of the event loop: what has arrived is read without one. */
const PARTS_OF_TURN = 8

const notValid = () =>
  new UpstreamError('The upstream of the integration sent an answer that is not valid MCP.')

const decoder = new TextDecoder('utf-8', { fatal: false, ignoreBOM: true })
