import { type ClientRequest, type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http'
import type { GatewayAddress } from './start-gateway.ts'

/** A kind of model call: an endpoint, streamed or not. */
export interface CallKind {
  name: string
  path: string
  stream: boolean
  envelope: 'nested' | 'messages'
  model: string
  /** The body around a text of a user; `count_tokens` takes no `max_tokens`. */
  body: (text: string) => Record<string, unknown>
}

const conversation = (text: string) => [{ role: 'user', content: text }]

function kind(name: string, path: string, envelope: CallKind['envelope'], more: object): CallKind {
  const model = envelope === 'nested' ? 'scripted-chat' : 'scripted-messages'
  const stream = 'stream' in more
  const body = (text: string) => ({ model, messages: conversation(text), ...more })
  return { name, path, stream, envelope, model, body }
}

/** Every kind of call that the base URL serves. */
export const CALL_KINDS: readonly CallKind[] = [
  kind('chat', '/v1/chat/completions', 'nested', { max_tokens: 100 }),
  kind('chat stream', '/v1/chat/completions', 'nested', { max_tokens: 100, stream: true }),
  kind('messages', '/v1/messages', 'messages', { max_tokens: 100 }),
  kind('messages stream', '/v1/messages', 'messages', { max_tokens: 100, stream: true }),
  kind('count_tokens', '/v1/messages/count_tokens', 'messages', {}),
]

/** Kinds of call whose answer a script can set. */
export const SCRIPTED_KINDS = CALL_KINDS.filter(({ name }) => name !== 'count_tokens')

export function callKind(name: string): CallKind {
  const found = CALL_KINDS.find((candidate) => candidate.name === name)
  if (found === undefined) throw new Error(`no kind of call is named ${name}`)
  return found
}

/** When a client leaves: so many milliseconds after it sent its request, or with so many pieces of the body. */
export type Leaving = { afterMilliseconds: number } | { afterPieces: number }

export interface CallOptions {
  key: string
  text: string
  leaving?: Leaving
  /** Makes the client leave when it fires. */
  signal?: AbortSignal
  /** After which the call counts as hung. */
  boundMilliseconds?: number
  /** Members over those of the kind. */
  body?: Record<string, unknown>
}

/** Result of a call for its client. */
export interface CallResult {
  kind: CallKind
  /** Null when it got no headers. */
  status: number | null
  headers: IncomingHttpHeaders
  requestId: string | null
  text: string
  /** `complete`: the answer came to its end; `left`: by the client's own will; `broken`: the connection ended; `hung`: over its bound. */
  end: 'complete' | 'left' | 'broken' | 'hung'
  milliseconds: number
}

const DEFAULT_BOUND_MS = 15_000

/**
 * Makes one call on a connection of its own, which is reset when the client leaves: that is how a Worker behind the
 * platform's edge learns of it at once. Never rejects.
 */
export function callModel(
  address: Pick<GatewayAddress, 'baseUrl'>,
  kind: CallKind,
  options: CallOptions,
): Promise<CallResult> {
  return new Promise((resolve) => new RunningCall(kind, options, resolve).send(address.baseUrl))
}

class RunningCall {
  readonly #kind: CallKind
  readonly #options: CallOptions
  readonly #resolve: (result: CallResult) => void
  readonly #startedAt = Date.now()
  readonly #timers: NodeJS.Timeout[] = []
  readonly #pieces: Buffer[] = []
  #outgoing: ClientRequest | null = null
  #incoming: IncomingMessage | null = null
  #ended = false

  constructor(kind: CallKind, options: CallOptions, resolve: (result: CallResult) => void) {
    this.#kind = kind
    this.#options = options
    this.#resolve = resolve
  }

  send(baseUrl: string): void {
    const { key, text, leaving, boundMilliseconds = DEFAULT_BOUND_MS, body } = this.#options
    const bytes = Buffer.from(JSON.stringify({ ...this.#kind.body(text), ...body }))
    const outgoing = request(baseUrl + this.#kind.path, {
      method: 'POST',
      agent: false,
      headers: {
        authorization: `Bearer ${key}`,
        'content-type': 'application/json',
        'content-length': bytes.length,
        'anthropic-version': '2023-06-01',
      },
    })
    this.#outgoing = outgoing
    this.#timers.push(setTimeout(() => this.#leave('hung'), boundMilliseconds))
    if (leaving && 'afterMilliseconds' in leaving) {
      this.#timers.push(setTimeout(() => this.#leave('left'), leaving.afterMilliseconds))
    }
    this.#options.signal?.addEventListener('abort', () => this.#leave('left'))
    outgoing.on('response', (incoming) => this.#receive(incoming))
    outgoing.on('error', () => this.#finish('broken'))
    outgoing.end(bytes)
  }

  #receive(incoming: IncomingMessage): void {
    this.#incoming = incoming
    const { leaving } = this.#options
    const last = leaving && 'afterPieces' in leaving ? leaving.afterPieces : Number.POSITIVE_INFINITY
    if (last === 0) this.#leave('left')
    incoming.on('data', (piece: Buffer) => {
      this.#pieces.push(piece)
      if (this.#pieces.length >= last) this.#leave('left')
    })
    incoming.on('error', () => this.#finish('broken'))
    incoming.on('end', () => this.#finish(incoming.complete ? 'complete' : 'broken'))
    incoming.on('close', () => this.#finish('broken'))
  }

  #leave(end: 'left' | 'hung'): void {
    this.#finish(end)
    if (this.#outgoing?.socket) this.#outgoing.socket.resetAndDestroy()
    else this.#outgoing?.destroy()
  }

  #finish(end: CallResult['end']): void {
    if (this.#ended) return
    this.#ended = true
    for (const timer of this.#timers) clearTimeout(timer)
    const headers = this.#incoming?.headers ?? {}
    const requestId = headers['x-request-id']
    this.#resolve({
      kind: this.#kind,
      status: this.#incoming?.statusCode ?? null,
      headers,
      requestId: typeof requestId === 'string' ? requestId : null,
      text: Buffer.concat(this.#pieces).toString(),
      end,
      milliseconds: Date.now() - this.#startedAt,
    })
  }
}

/** The error an answer tells, in either envelope; null for a body that is no error. */
export function errorOf(result: CallResult): { type?: string; code?: string; message?: string } | null {
  try {
    const body = JSON.parse(result.text) as { type?: string; error?: unknown }
    if (result.kind.envelope === 'messages' && body.type !== 'error') return null
    return typeof body.error === 'object' ? (body.error as { type?: string }) : null
  } catch {
    return null
  }
}

/** Whether a stream came to its own end, as its protocol defines it. */
export function streamEnded(result: CallResult): boolean {
  const end = result.kind.envelope === 'nested' ? /data: \[DONE\]\n\n$/ : /event: message_stop\ndata: .*\n\n$/
  return end.test(result.text) && !/^event: error$/m.test(result.text)
}
