import { ApiError } from '../../lib/api-error.ts'
import { withFreshStub } from '../../lib/fresh-stub.ts'
import type { Owner } from '../model/types.ts'
import type { ConnectionOpening } from './socket-connection.ts'

const OPENING_HEADER = 'x-headgate-connection'

/** Opens a connection for a caller. @returns the client's end; null when the user has the most connections already. */
export type OpenSocket = (opening: ConnectionOpening) => Promise<WebSocket | null>

/**
 * The name of the object that has a user's connections.
 * @internal Tests address the object by its name.
 */
export const socketsName = ({ organizationId, userId }: Owner): string => `${organizationId}:${userId}`

/** The client of that object. A WebSocket can only be returned by its `fetch`. @throws ApiError internal */
export const socketClient =
  (namespace: DurableObjectNamespace): OpenSocket =>
  async (opening) => {
    // Header values are limited to ASCII.
    const value = encodeURIComponent(JSON.stringify(opening))
    const upgrade = () =>
      new Request('https://response-sockets/', { headers: { upgrade: 'websocket', [OPENING_HEADER]: value } })
    const open = (object: DurableObjectStub) => object.fetch(upgrade())
    const answer = await withFreshStub(namespace, socketsName(opening.owner), open, () => true).catch(
      (cause) => {
        throw new ApiError('internal', 'The connection could not be opened.', { cause })
      },
    )
    return answer.webSocket
  }

/** Selects the headers that the client sends to the object. */
export const connectionOpeningOf = ({ headers }: Request): ConnectionOpening =>
  JSON.parse(decodeURIComponent(headers.get(OPENING_HEADER) ?? '')) as ConnectionOpening
