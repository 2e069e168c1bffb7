import type { ServerResponse } from 'node:http'
import { EventStreamCodec } from '@smithy/eventstream-codec'
import { type JsonRecord, toRecord, toText } from '../../json-value.ts'
import { eventsIn } from '../vendor-request.ts'

const codec = new EventStreamCodec(
  (bytes) => new TextDecoder().decode(bytes),
  (text) => new TextEncoder().encode(text),
)

/** An event or an exception in the binary framing. */
export const encoded = (kind: 'event' | 'exception', type: string, payload: unknown): Uint8Array =>
  codec.encode({
    headers: {
      [`:${kind}-type`]: { type: 'string', value: type },
      ':content-type': { type: 'string', value: 'application/json' },
      ':message-type': { type: 'string', value: kind },
    },
    body: Buffer.from(JSON.stringify(payload)),
  })

/** Types of exceptions by types of errors in a stream of messages. */
const STREAM_EXCEPTIONS: Record<string, string> = {
  rate_limit_error: 'throttlingException',
  overloaded_error: 'serviceUnavailableException',
  invalid_request_error: 'validationException',
}

/** @param event `error` of the messages protocol. */
export function exceptionOf(event: JsonRecord | undefined): Uint8Array {
  const { type, message } = toRecord(event?.error)
  return encoded('exception', STREAM_EXCEPTIONS[toText(type)] ?? 'internalServerException', { message })
}

/** Sends a stream of messages as binary events. @param convert makes the events of one of the messages protocol. */
export async function sendEvents(
  response: ServerResponse,
  answer: Response,
  convert: (event: string, data: string) => Uint8Array[],
): Promise<void> {
  response.writeHead(200, {
    'content-type': 'application/vnd.amazon.eventstream',
    'x-amzn-requestid': 'scripted',
    'x-amzn-bedrock-content-type': 'application/json',
  })
  response.flushHeaders()
  try {
    for await (const { event, data } of eventsIn(answer)) {
      for (const bytes of convert(event, data)) response.write(bytes)
    }
    response.end()
  } catch {
    // The scripted answer was cut off.
    response.destroy()
  }
}
