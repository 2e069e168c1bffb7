import createClient, { type Client } from 'openapi-fetch'
import { ENDPOINTS, type Endpoint, type EndpointName } from '../wire/endpoints/endpoints.ts'
import type { operations, paths } from './management-api.d.ts'

/**
 * The client of the management API, for the command line and browsers: `openapi-fetch` over types that are generated from the
 * OpenAPI document, and calls by the name of an endpoint. It needs `fetch` and nothing of Node.js.
 */

type ManagementClient = Client<paths>

type Parameters<Name extends EndpointName> = operations[Name]['parameters']
type Part<Name extends EndpointName, Kind extends 'path' | 'query'> =
  Parameters<Name> extends { [Key in Kind]?: infer Value } ? NonNullable<Value> : never
type BodyOf<Name extends EndpointName> = operations[Name] extends {
  requestBody: { content: { 'application/json': infer Body } }
}
  ? Body
  : never
type Given<Key extends string, Value> = [Value] extends [never] ? unknown : { [Name in Key]: Value }

/** What a request to an endpoint is made of: parameters of its path, its query, its body. */
export type RequestOf<Name extends EndpointName> = Given<'path', Part<Name, 'path'>> &
  Given<'body', BodyOf<Name>> & { query?: Part<Name, 'query'> }

type Success<Responses> = Responses extends { 200: { content: { 'application/json': infer Answer } } }
  ? Answer
  : Responses extends { 201: { content: { 'application/json': infer Answer } } }
    ? Answer
    : never

/** What an endpoint answers with when it succeeds. */
export type AnswerOf<Name extends EndpointName> = Success<operations[Name]['responses']>

/** A refusal of the gateway. */
export class Refusal extends Error {
  readonly endpoint: EndpointName
  readonly status: number
  /** The method and path of the request, as `GET /organizations`. */
  readonly request: string
  /** Seconds after which the gateway takes the request again; undefined where it does not say. */
  readonly retryAfter: number | undefined
  /** The id of the request, by which its record is found. */
  readonly requestId: string | undefined
  /** What the gateway says besides the message, such as `code` and `permission`. */
  readonly details: Record<string, unknown>

  constructor(
    endpoint: EndpointName,
    request: string,
    { status, headers }: Pick<Response, 'status' | 'headers'>,
    error: unknown,
  ) {
    super(messageOf(error) ?? 'no reason given')
    this.name = 'Refusal'
    this.endpoint = endpoint
    this.status = status
    this.request = request
    const seconds = Number(headers.get('retry-after') ?? Number.NaN)
    this.retryAfter = Number.isFinite(seconds) ? seconds : undefined
    this.requestId = headers.get('x-request-id') ?? undefined
    this.details = detailsOf(error)
  }
}

/** An answer that is no JSON: what answers is no gateway. */
export class ForeignAnswer extends Error {
  constructor() {
    super('the answer is not JSON')
    this.name = 'ForeignAnswer'
  }
}

/** @param headers of every request, such as `authorization`; a browser with a session needs none. */
export function managementClient(options: {
  baseUrl: string
  headers?: Record<string, string>
  fetch?: (request: Request) => Promise<Response>
}): ManagementClient {
  return createClient<paths>({ ...options, pathSerializer: filledPath })
}

/**
 * Calls an endpoint by its name.
 * @throws Refusal with the gateway's message; ForeignAnswer; what `fetch` throws where nothing answers.
 */
export async function callEndpoint<Name extends EndpointName>(
  client: ManagementClient,
  name: Name,
  { path, query, body }: { path?: object; query?: object; body?: unknown },
): Promise<AnswerOf<Name>> {
  const endpoint: Endpoint = ENDPOINTS[name]
  // The name of the endpoint decides the types of path and init, which a variable name cannot.
  const request = client.request as unknown as (
    method: string,
    path: string,
    init: object,
  ) => Promise<{ data?: unknown; error?: unknown; response: Response }>
  const { data, error, response } = await request(endpoint.method.toLowerCase(), `/api${endpoint.path}`, {
    params: { path, query },
    ...(body !== undefined && { body }),
  }).catch((reason: unknown) => {
    throw reason instanceof SyntaxError ? new ForeignAnswer() : reason
  })
  if (!response.ok) {
    const asked = `${endpoint.method} ${filledPath(endpoint.path, { ...path })}`
    throw new Refusal(name, asked, response, error)
  }
  if (typeof data !== 'object' || data === null) throw new ForeignAnswer()
  return data as AnswerOf<Name>
}

/** A path with its parameters. The ids of models hold slashes, which the gateway takes as they are. */
function filledPath(path: string, parameters: Record<string, unknown>): string {
  return path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const text = String(parameters[name] ?? '')
    return (name === 'modelId' ? text.split('/') : [text]).map(encodeURIComponent).join('/')
  })
}

function messageOf(error: unknown): string | undefined {
  const { message } = (typeof error === 'object' && error !== null ? error : {}) as { message?: unknown }
  return typeof message === 'string' ? message : undefined
}

function detailsOf(error: unknown): Record<string, unknown> {
  const { details } = (typeof error === 'object' && error !== null ? error : {}) as { details?: unknown }
  return typeof details === 'object' && details !== null ? { ...details } : {}
}
