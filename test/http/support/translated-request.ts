import type { GatewayAddress } from '../../harness/start-gateway.ts'
import { seenRequest, seenRequests, type UpstreamRequest } from '../../harness/upstream.ts'

type Json = Record<string, unknown>

/** A request as the upstream got it, in its own protocol. */
export interface TranslatedRequest {
  path: string
  body: Json
  headers: UpstreamRequest['headers']
}

const PATHS = { chat: '/v1/chat/completions', messages: '/v1/messages' }

/** The requests with this text that the upstream has seen, oldest first. @throws for one of another protocol. */
export async function translatedRequests(
  address: Pick<GatewayAddress, 'standIns'>,
  protocol: keyof typeof PATHS,
  text: string,
): Promise<TranslatedRequest[]> {
  return (await seenRequests(address, text)).map((request) => parsed(request, protocol))
}

/** The one request with this text, as soon as it has arrived. @throws for one of another protocol. */
export async function translatedRequest(
  address: Pick<GatewayAddress, 'standIns'>,
  protocol: keyof typeof PATHS,
  text: string,
): Promise<TranslatedRequest> {
  return parsed(await seenRequest(address, text), protocol)
}

function parsed(request: UpstreamRequest, protocol: keyof typeof PATHS): TranslatedRequest {
  const [path = ''] = request.path.split('?')
  if (path !== PATHS[protocol]) throw new Error(`${path} was asked instead of ${PATHS[protocol]}`)
  return { path, body: JSON.parse(request.body) as Json, headers: request.headers }
}

/** A picture of one pixel, base64. */
export const PICTURE =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
