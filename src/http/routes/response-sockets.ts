import { Hono } from 'hono'
import { callerHeaders } from '../../gateway/calls/caller-headers.ts'
import { ApiError, invalidRequest } from '../../lib/api-error.ts'
import { regionOf } from '../../responses/pool/regions.ts'
import { MOST_HEADER_BYTES } from '../../responses/sockets/socket-connection.ts'
import { selectedCompatibility } from '../compatibility.ts'
import type { AppContext, AppEnv } from '../context.ts'
import { ownerOf } from './response-answers.ts'

/** Retry-After for a caller with too many connections: one of them may end at any time. */
const RETRY_SECONDS = 5

/**
 * Responses over a WebSocket (https://www.openresponses.org/specification, WebSocket transport). The upgrade is a call like
 * any other; so is each message that the connection gets afterwards.
 */
export const responseSocketRoutes = new Hono<AppEnv>().get('/v1/responses', connect)

async function connect(context: AppContext): Promise<Response> {
  const { deps, caller, rights } = context.var
  if (context.req.raw.method !== 'GET' || context.req.header('upgrade')?.toLowerCase() !== 'websocket') {
    throw notAWebSocket(context)
  }
  const headers = callerHeaders(context.req.raw.headers)
  if (JSON.stringify(headers).length > MOST_HEADER_BYTES) {
    throw invalidRequest(
      `The headers for the model may have at most ${MOST_HEADER_BYTES} bytes.`,
      'invalid_header',
    )
  }
  const webSocket = await deps.openSocket({
    owner: ownerOf(context),
    credential: rights.principal.credential,
    ip: caller.identity.actor.ip,
    headers,
    compatibility: selectedCompatibility(context),
    region: regionOf(context.req.raw.cf),
  })
  if (webSocket === null) throw tooManyConnections(deps.configuration.SOCKET_USER_LIMIT)
  // An answer has both the socket and the headers of the middleware only when it is created like this.
  return new Response(null, { status: 101, webSocket, headers: context.body(null).headers })
}

/** Without an upgrade, the path takes POST only (interface: Responses). */
function notAWebSocket(context: AppContext): ApiError {
  context.header('allow', 'POST')
  const takes = 'this path takes POST, and GET with `Upgrade: websocket` to open a WebSocket.'
  return new ApiError('not_found', `Route ${context.req.method} /v1/responses not found: ${takes}`, {
    code: 'not_found',
  })
}

const tooManyConnections = (most: number) =>
  new ApiError(
    'rate_limited',
    `You have ${most} WebSocket connections, the most that a user may have. Close one.`,
    {
      retryAfterSeconds: RETRY_SECONDS,
      limit: 'user',
    },
  )
