import { gateway } from '../../harness/gateway.ts'
import { type Answer, jsonOf, type SendOptions, send } from '../../harness/send.ts'
import { bearer } from '../../harness/tenant.ts'
import { RESPONSES_ROUTE } from '../../matrices/routes.ts'

export type Json = Record<string, unknown>

/** A response as far as tests look into it. */
export interface ToldResponse extends Json {
  id: string
  status: string
  conversation: { id: string } | null
  output: Array<Json & { id: string; type: string }>
}

/** A list of items. */
export interface ToldList {
  object: string
  data: Array<Json & { id: string; type: string }>
  first_id: string | null
  last_id: string | null
  has_more: boolean
}

/** Asks a gateway, the shared one by default. @param path below the base URL, with its query. */
export function ask(
  key: string,
  method: string,
  path: string,
  options: SendOptions & { baseUrl?: string } = {},
): Promise<Answer> {
  const { baseUrl = gateway().baseUrl, ...rest } = options
  return send(baseUrl + path, { ...rest, method, headers: { ...bearer(key), ...rest.headers } })
}

/** Makes a response. @throws unless that succeeds. */
export async function createResponse(
  key: string,
  body: Json,
  address: { baseUrl?: string } = {},
): Promise<ToldResponse> {
  const request = JSON.stringify({ ...RESPONSES_ROUTE.request('Hello'), ...body })
  return expectJson<ToldResponse>(await ask(key, 'POST', '/v1/responses', { ...address, body: request }))
}

export async function listItems(key: string, path: string): Promise<ToldList> {
  return expectJson<ToldList>(await ask(key, 'GET', path))
}

/** @throws for an answer that is not 200 with JSON. */
export function expectJson<Body>(answer: Answer): Body {
  if (answer.status !== 200) throw new Error(`status ${answer.status}: ${answer.text.slice(0, 500)}`)
  return jsonOf(answer) as Body
}
