import { setTimeout as delay } from 'node:timers/promises'
import {
  type AnswerOf,
  callEndpoint,
  ForeignAnswer,
  managementClient,
  Refusal,
  type RequestOf,
} from '../../src/client/management-client.ts'
import { counted } from '../../src/lib/counted.ts'
import { ENDPOINTS, type EndpointName } from '../../src/wire/endpoints/endpoints.ts'
import { AdminError } from './errors.ts'

/** An object of the management API, as it came. */
export type Item = Record<string, unknown>

/** A request of a command that is made from the table of endpoints. */
export interface AnyRequest {
  path?: object
  query?: object
  body?: unknown
}

/** One gateway, spoken to over HTTP as any other client would. Everything throws AdminError with the API's own message. */
export interface Gateway {
  baseUrl: string
  call<Name extends EndpointName>(name: Name, request: RequestOf<Name>): Promise<AnswerOf<Name>>
  /** The same for a name that is known at run time. */
  send(name: EndpointName, request: AnyRequest): Promise<Item>
  /** The pages of a list. Waits where the gateway limits requests, because a long list makes many. */
  pages<Name extends EndpointName>(name: Name, request: RequestOf<Name>): AsyncGenerator<AnswerOf<Name>>
}

/** Where a gateway is, and the token for it. */
export interface Access {
  baseUrl: string
  token: string
  /** What to do where the token is refused. */
  signIn: string
}

const TIMEOUT_MS = 60_000
/** Longest wait for a limit, in seconds; limits are those of a minute. */
const LONGEST_WAIT = 61

/** @param note prints a line that is no result. */
export function connectGateway({ baseUrl, token, signIn }: Access, note: (line: string) => void): Gateway {
  const client = managementClient({
    baseUrl,
    headers: { authorization: `Bearer ${token}` },
    fetch: async (request) => {
      // A redirect would take the token elsewhere.
      const signal = AbortSignal.timeout(TIMEOUT_MS)
      const response = await fetch(request, { redirect: 'error', signal })
      if (response.headers.get('x-headgate-propagation') === 'delayed') {
        note('The change could not be sent to every ledger: it takes effect everywhere within a minute.')
      }
      return response
    },
  })
  const send = async (name: EndpointName, request: AnyRequest) => {
    try {
      return (await callEndpoint(client, name, request)) as Item
    } catch (error) {
      throw asAdminError(error, baseUrl, signIn)
    }
  }
  return {
    baseUrl,
    send,
    call: (name, request) => send(name, request) as never,
    async *pages(name, request) {
      let cursor: unknown
      do {
        const { path, query, body } = request as AnyRequest
        const page = await patiently(() =>
          send(name, { path, query: { ...query, cursor }, body } as AnyRequest),
        )
        yield page as never
        cursor = page.next_cursor ?? undefined
      } while (cursor !== undefined)
    },
  }
}

/** Repeats a request that a limit refused, which did nothing, once its wait is over. */
export async function patiently<Result>(request: () => Promise<Result>): Promise<Result> {
  for (;;) {
    try {
      return await request()
    } catch (error) {
      const wait = error instanceof LimitedError ? error.seconds : Number.POSITIVE_INFINITY
      if (wait > LONGEST_WAIT) throw error
      await delay(wait * 1000)
    }
  }
}

class LimitedError extends AdminError {
  /** Until the gateway takes requests again. */
  readonly seconds: number

  constructor(message: string, seconds: number) {
    super(message, { status: 429, hint: `Nothing was done. Repeat it in ${counted(seconds, 'second')}.` })
    this.seconds = seconds
  }
}

function asAdminError(error: unknown, baseUrl: string, signIn: string): AdminError {
  if (error instanceof ForeignAnswer) {
    return new AdminError(`${baseUrl} did not answer with JSON: is it a Headgate?`)
  }
  if (!(error instanceof Refusal)) {
    const hint = 'Is it running, and is the address right? npm run dev starts a local one.'
    return new AdminError(`${baseUrl} does not answer: ${reasonOf(error)}`, { hint })
  }
  const message = `${error.request}: ${error.status} ${error.message}`
  if (error.status === 429 && error.retryAfter) return new LimitedError(message, error.retryAfter)
  return new AdminError(message, { status: error.status, hint: hintOf(error, signIn) })
}

function hintOf({ status, endpoint }: Refusal, signIn: string): string | undefined {
  const group = endpoint.split('.')[0]
  if (status === 401) return signIn
  if (status === 403) return `It needs the permission ${ENDPOINTS[endpoint].permission}.`
  if (status === 404 && group && `${group}.list` in ENDPOINTS)
    return 'The list of its group shows what there is.'
  if (status === 409 || status === 422) return 'It does not fit what there is now: look at that first.'
  if (status >= 500) return 'Repeat it; if it stays, the log of the gateway has the reason.'
  return undefined
}

function reasonOf(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
  const { code, message } = cause as { code?: unknown; message?: string }
  return typeof code === 'string' ? code : (message ?? 'no reason given')
}
