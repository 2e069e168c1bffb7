import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { LOCAL_FOLDER } from '../script-environment.ts'

/** What a command cannot go on from. The message is one line for a person. */
export class AdminError extends Error {
  /** 1 for a refusal or failure, 2 for a wrong command line. */
  readonly exitCode: number
  /** What the API answered, when it was the API that refused. */
  readonly status: number | undefined

  constructor(message: string, { exitCode = 1, status }: { exitCode?: number; status?: number } = {}) {
    super(message)
    this.name = 'AdminError'
    this.exitCode = exitCode
    this.status = status
  }
}

export const usageError = (message: string) => new AdminError(message, { exitCode: 2 })

/** An object of the management API, as it came. */
export type Item = Record<string, unknown>

/** A page of a list. */
interface Listing {
  data: Item[]
  has_more: boolean
  next_cursor: string | null
}

/** One gateway, spoken to over HTTP as any other client would. */
export interface GatewayClient {
  /** @throws AdminError with the API's own message. */
  request(method: string, path: string, body?: unknown): Promise<Item>
  /** Reads a list up to `most` items. @returns also whether there are more. */
  list(path: string, query: Query, most: number): Promise<{ items: Item[]; more: boolean }>
}

export type Query = Record<string, string | undefined>

const TIMEOUT_MS = 60_000
const PAGE_SIZE = 200

/**
 * Finds the gateway: HEADGATE_URL with ADMIN_TOKEN, or the local system that `npm run dev` runs.
 * @throws AdminError if neither is there, or if the token would travel unencrypted.
 */
export function gatewayClient(environment: NodeJS.ProcessEnv, note: (line: string) => void): GatewayClient {
  const { baseUrl, token } = findGateway(environment)
  const request = (method: string, path: string, body?: unknown) =>
    send({ baseUrl, token, note }, method, path, body)
  const list: GatewayClient['list'] = async (path, query, most) => {
    const items: Item[] = []
    let cursor: string | null = null
    do {
      const limit = String(Math.min(PAGE_SIZE, most - items.length))
      const parameters = withQuery(path, { ...query, limit, cursor: cursor ?? undefined })
      const page: Listing = (await request('GET', parameters)) as unknown as Listing
      items.push(...page.data)
      cursor = page.next_cursor
    } while (cursor !== null && items.length < most)
    return { items, more: cursor !== null }
  }
  return { request, list }
}

/** A path with those parameters that have a value. */
export function withQuery(path: string, query: Query): string {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) if (value !== undefined) parameters.set(name, value)
  return parameters.size === 0 ? path : `${path}?${parameters}`
}

function findGateway(environment: NodeJS.ProcessEnv): { baseUrl: string; token: string } {
  const address = environment.HEADGATE_URL
  if (address) {
    const token = environment.ADMIN_TOKEN
    if (!token) throw new AdminError('HEADGATE_URL is set, ADMIN_TOKEN is not')
    return { baseUrl: checkAddress(address), token }
  }
  const path = join(LOCAL_FOLDER, 'dev.json')
  try {
    const local = JSON.parse(readFileSync(path, 'utf8'))
    if (typeof local.base_url === 'string' && typeof local.admin_token === 'string') {
      return { baseUrl: local.base_url, token: local.admin_token }
    }
  } catch {
    // No file, an unreadable one and a damaged one have the same error below.
  }
  throw new AdminError('no gateway: start one with npm run dev, or set HEADGATE_URL and ADMIN_TOKEN')
}

function checkAddress(address: string): string {
  const url = URL.canParse(address) ? new URL(address) : null
  if (url === null) throw new AdminError('HEADGATE_URL is not a URL')
  const isLocal = ['localhost', '127.0.0.1', '[::1]'].includes(url.hostname)
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && isLocal)) {
    throw new AdminError('HEADGATE_URL must be https: the administration token would travel in the clear')
  }
  return `${url.origin}${url.pathname}`.replace(/\/+$/, '')
}

interface Gateway {
  baseUrl: string
  token: string
  note: (line: string) => void
}

async function send(gateway: Gateway, method: string, path: string, body: unknown): Promise<Item> {
  const { baseUrl, token, note } = gateway
  let response: Response
  try {
    response = await fetch(`${baseUrl}/api${path}`, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      // A redirect would take the token elsewhere.
      redirect: 'error',
      signal: AbortSignal.timeout(TIMEOUT_MS),
    })
  } catch (error) {
    throw new AdminError(`${baseUrl} does not answer: ${reasonOf(error)}`)
  }
  const text = await response.text()
  const answer = parse(text)
  if (!response.ok) {
    const message = typeof answer?.message === 'string' ? answer.message : 'no reason given'
    const { status } = response
    throw new AdminError(`${method} ${path.split('?', 1)[0]}: ${status} ${message}`, { status })
  }
  if (answer === null) throw new AdminError(`${baseUrl} did not answer with JSON: is it a Headgate?`)
  if (response.headers.get('x-headgate-propagation') === 'delayed') {
    note('The change could not be sent to every ledger: it takes effect everywhere within a minute.')
  }
  return answer
}

function parse(text: string): Item | null {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Item) : null
  } catch {
    return null
  }
}

function reasonOf(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
  const { code, message } = cause as { code?: string; message?: string }
  return code ?? message ?? 'no reason given'
}
