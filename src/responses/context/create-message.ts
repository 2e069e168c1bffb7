import { invalidRequest } from '../../lib/api-error.ts'
import { decodeString } from '../../lib/json-string.ts'
import type { ResponseSettings } from '../../wire/responses.ts'
import type { JsonPlace } from '../items/types/item-scan.ts'

/** The only message of a client. */
const CREATE = 'response.create'
/** Members of the message that are no settings of the response, and those that only HTTP has a use for. */
const OF_THE_MESSAGE = ['type', 'generate', 'stream', 'stream_options', 'stream_id'] as const

/**
 * Checks the type of a message of a WebSocket, before its other members: a message of another type has others.
 * @param members of the message. @throws ApiError invalid_request `invalid_body`.
 */
export function checkMessageType(
  source: Uint8Array,
  members: ReadonlyArray<JsonPlace & { name: string }>,
): void {
  const type = members.find(({ name }) => name === 'type')
  const isCreate = type?.kind === 'string' && decodeString(source, type.start + 1, type.end - 1) === CREATE
  if (!isCreate)
    throw invalidRequest(`type: must be ${JSON.stringify(CREATE)}, the only message of a client.`)
}

/**
 * Whether a message requests an answer. With `generate: false` its input is only kept, for a response that continues it.
 * @throws ApiError invalid_request
 */
export function generatesOf({ generate }: ResponseSettings): boolean {
  if (generate === undefined || generate === null) return true
  if (typeof generate === 'boolean') return generate
  throw invalidRequest('generate: must be a boolean.')
}

/**
 * The settings of a response that a message creates. A client that repeats what its HTTP request would have is understood:
 * `stream` is ignored, since a response on a WebSocket is always streamed.
 * @throws ApiError invalid_request for what a WebSocket does not serve.
 */
export function settingsOfMessage(message: ResponseSettings): ResponseSettings {
  if (message.background === true) {
    throw invalidRequest(
      'background: is not served on a WebSocket. A response goes on when its client leaves.',
    )
  }
  if (message.stream_id !== null && message.stream_id !== undefined) {
    throw invalidRequest('stream_id: is not served. Open a connection for each response that runs at a time.')
  }
  const settings: Record<string, unknown> = { ...message }
  for (const name of OF_THE_MESSAGE) delete settings[name]
  return { ...settings, stream: true } as ResponseSettings
}
