import type { IncomingMessage, ServerResponse } from 'node:http'
import {
  type LoopbackServer,
  listenOnLoopback,
  readBody,
  sendJson,
} from '../../../scripts/node/loopback-server.ts'
import { type ApiRequest, CLOUDFLARE_TOKEN, cloudflareRoutes } from './cloudflare-routes.ts'
import { type CloudflareAnswer, CloudflareState } from './cloudflare-state.ts'
import { DeployedGateway } from './deployed-gateway.ts'
import { NEON_KEY, NeonState, UPSTASH_EMAIL, UPSTASH_KEY, UpstashState } from './services-routes.ts'

/** What happens to a request that fits. `cut after`: it has its effect, and its answer is lost. */
export interface CloudFault {
  /** Of `POST /client/v4/accounts/…`. */
  matches: RegExp
  kind: 'cut before' | 'cut after' | 403 | 429 | 500 | 502
  /** How many requests; every one if left out. */
  times?: number
  /** Seconds, of 429. */
  retryAfter?: number
}

export interface SeenRequest {
  method: string
  path: string
  isChange: boolean
}

const LARGEST_BODY = 64 * 1024 * 1024
const HTTP_CODES = {
  403: [10000, 'Authentication error'],
  429: [971, 'Please wait'],
  500: [10001, 'Internal error'],
  502: [10001, 'Bad gateway'],
} as const

/**
 * Stands in for the APIs of Cloudflare, Neon and Upstash, on loopback, and for the gateway that they deploy. A path that it
 * does not know is answered 404 and listed in `unknown`, which must stay empty.
 */
export class Cloud {
  readonly cloudflare = new CloudflareState()
  readonly neon: NeonState
  readonly upstash = new UpstashState()
  readonly gateway = new DeployedGateway(this.cloudflare)
  readonly requests: SeenRequest[] = []
  readonly unknown: string[] = []
  readonly faults: CloudFault[] = []
  /** Called before each request is answered. */
  onRequest: (request: SeenRequest) => void | Promise<void> = () => {}
  /** While true, every connection is cut: no network. */
  isAway = false
  #server: LoopbackServer | undefined
  readonly #routes: Array<{ prefix: string; pattern: RegExp; method: string; answer: Answerer }> = []

  constructor(databaseUrl: string) {
    this.neon = new NeonState(databaseUrl)
    const cloudflare = cloudflareRoutes(this.cloudflare)
    for (const [route, handler] of Object.entries(cloudflare)) {
      this.#add('/client/v4', route, async (names, request) =>
        cloudflareAnswer(await handler(names, request)),
      )
    }
    for (const [route, handler] of Object.entries(this.neon.routes())) this.#add('/neon', route, handler)
    for (const [route, handler] of Object.entries(this.upstash.routes()))
      this.#add('/upstash', route, handler)
  }

  async start(): Promise<void> {
    this.#server = await listenOnLoopback(0, (request, response) => this.#handle(request, response))
    await this.gateway.start()
  }

  async stop(): Promise<void> {
    await Promise.all([this.#server?.close(), this.gateway.stop()])
  }

  /** Variables with which a deployment reaches the stand-ins. */
  get environment(): Record<string, string> {
    const url = this.#server?.url ?? ''
    return {
      CLOUDFLARE_API_BASE_URL: `${url}/client/v4`,
      CLOUDFLARE_API_TOKEN: CLOUDFLARE_TOKEN,
      NEON_API_BASE_URL: `${url}/neon`,
      NEON_API_KEY: NEON_KEY,
      UPSTASH_API_BASE_URL: `${url}/upstash`,
      UPSTASH_EMAIL,
      UPSTASH_API_KEY: UPSTASH_KEY,
    }
  }

  /** The requests that change something, as `PUT /client/v4/…`. */
  get changes(): string[] {
    return this.requests.filter(({ isChange }) => isChange).map(({ method, path }) => `${method} ${path}`)
  }

  #add(prefix: string, route: string, answer: Answerer): void {
    const [method = '', path = ''] = route.split(' ')
    const pattern = new RegExp(`^${prefix}${path.replace(/:[a-z]+/g, '([^/]+)')}$`)
    this.#routes.push({ prefix, pattern, method, answer })
  }

  async #handle(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = (incoming.url ?? '').split('?', 1)[0] ?? ''
    const method = incoming.method ?? ''
    const body = await readBody(incoming, LARGEST_BODY)
    const seen = { method, path, isChange: !['GET', 'HEAD'].includes(method) }
    await this.onRequest(seen)
    const fault = this.isAway ? undefined : this.#faultOf(`${method} ${path}`)
    if (!this.isAway) this.requests.push(seen)
    if (this.isAway || fault?.kind === 'cut before') response.destroy()
    else if (typeof fault?.kind === 'number') sendFault(response, fault.kind, fault.retryAfter)
    else await this.#respond({ method, path, headers: headersOf(incoming), body }, response, fault)
  }

  async #respond(
    request: ApiRequest,
    response: ServerResponse,
    fault: CloudFault | undefined,
  ): Promise<void> {
    const answer = await this.#answer(request)
    if (fault?.kind === 'cut after' || this.isAway) response.destroy()
    else sendJson(response, answer.status, answer.body)
  }

  async #answer(request: ApiRequest): Promise<{ status: number; body: unknown }> {
    const { method, path, headers } = request
    for (const route of this.#routes) {
      const match = route.method === method ? route.pattern.exec(path) : null
      if (match === null) continue
      if (!isAuthorized(route.prefix, headers)) return { status: 401, body: { message: 'unauthorized' } }
      return route.answer(match.slice(1).map(decodeURIComponent), request)
    }
    this.unknown.push(`${method} ${path}`)
    return {
      status: 404,
      body: { success: false, errors: [{ code: 7000, message: `No route for ${path}` }] },
    }
  }

  #faultOf(line: string): CloudFault | undefined {
    const fault = this.faults.find(({ matches, times }) => matches.test(line) && times !== 0)
    if (fault?.times !== undefined) fault.times -= 1
    return fault
  }
}

const headersOf = ({ headers }: IncomingMessage): Headers =>
  new Headers(Object.entries(headers).map(([name, value]) => [name, String(value)]))

type Answerer = (
  names: string[],
  request: ApiRequest,
) => { status: number; body: unknown } | Promise<{ status: number; body: unknown }>

function cloudflareAnswer(answer: CloudflareAnswer): { status: number; body: unknown } {
  const { status } = answer
  if ('result' in answer) {
    return { status, body: { success: true, errors: [], messages: [], result: answer.result } }
  }
  const { code, message } = answer
  return { status, body: { success: false, errors: [{ code, message }], messages: [], result: null } }
}

/** Uploads of static files carry the token of their session. */
function isAuthorized(prefix: string, headers: Headers): boolean {
  const given = headers.get('authorization')
  if (prefix === '/neon') return given === `Bearer ${NEON_KEY}`
  const basic = `Basic ${Buffer.from(`${UPSTASH_EMAIL}:${UPSTASH_KEY}`).toString('base64')}`
  if (prefix === '/upstash') return given === basic
  return given === `Bearer ${CLOUDFLARE_TOKEN}` || given === 'Bearer assets-session'
}

function sendFault(
  response: ServerResponse,
  status: keyof typeof HTTP_CODES,
  retryAfter: number | undefined,
): void {
  const [code, message] = HTTP_CODES[status]
  if (retryAfter !== undefined) response.setHeader('retry-after', String(retryAfter))
  sendJson(response, status, { success: false, errors: [{ code, message }], messages: [], result: null })
}
