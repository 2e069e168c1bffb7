import type { Redis } from '@upstash/redis'
import { vi } from 'vitest'
import type { CallRecord } from '../../../src/gateway/call-record.ts'
import type { CatalogDatabase } from '../../../src/gateway/catalog/store.ts'
import type { ModelCall, ModelDeps } from '../../../src/gateway/invoke-model.ts'
import { type ModelTurn, modelTurn } from '../../../src/gateway/model-turn.ts'
import type { ModelEvent } from '../../../src/gateway/translation/model-events.ts'
import type { CallOutcome } from '../../../src/governance/audit-record.ts'
import type { Ledger, OpenCall } from '../../../src/governance/ledger/ledger.ts'
import type { Principal } from '../../../src/governance/principal.ts'
import { seal } from '../../../src/lib/crypto.ts'
import { provideIdentityStream } from './identity-stream.ts'

/**
 * Turns through the one door to a model: the real gateway between a catalogue of models behind each protocol and both,
 * policies, a ledger that admits everything, and upstreams that answer as they are told.
 */

export type Json = Record<string, unknown>

const RING = new Map([['k', new Uint8Array(32).fill(3)]])
export const CREDENTIAL = 'sk-upstream-secret'
/** One catalogue for all tests of a file. */
const EPOCH = 1
/** A micro-credit for each token. */
const PRICE = 1_000_000
const PRICES = {
  input: PRICE,
  output: PRICE,
  cacheRead: PRICE,
  cacheWrite5Minutes: PRICE,
  cacheWrite1Hour: PRICE,
}

const route = (id: string, kind: string, upstreamModel: string, capabilities: readonly string[]) => ({
  id,
  ownedBy: 'o',
  createdAt: new Date(0),
  contextWindow: 200_000,
  maxOutputTokens: 4_000,
  prices: PRICES,
  capabilities,
  upstreamModel,
  providerId: `${kind} of ${id}`,
  providerName: kind,
  providerKind: kind,
  baseUrl: `https://${kind}.example`,
  sealedCredential: seal(RING, CREDENTIAL, `provider:${kind} of ${id}`),
  providerDisabledAt: null,
})

const CHAT = ['openai-compatible', 'plain-chat', ['json_object', 'json_schema', 'vision']] as const
const MESSAGES = ['anthropic', 'claude-sonnet-4-5', ['reasoning', 'json_schema', 'vision']] as const

const CATALOGUE = [
  route('both-model', ...MESSAGES),
  route('both-model', ...CHAT),
  route('chat-model', ...CHAT),
  route('messages-model', ...MESSAGES),
]

/** A query of drizzle that answers rows, whatever is asked of it. */
function answering(rows: unknown[]): unknown {
  const query: unknown = new Proxy(() => query, {
    get: (_target, name) => (name === 'then' ? (resolve: (rows: unknown[]) => void) => resolve(rows) : query),
    apply: () => query,
  })
  return query
}

/** The runtime's stream of a known length; here nobody holds it to that. */
class FixedLengthStreamStandIn extends TransformStream<Uint8Array, Uint8Array> {
  constructor(_length: number) {
    super()
  }
}

interface UpstreamCall {
  url: string
  headers: Headers
  body: Json
  signal: AbortSignal
}

export type Answer = (call: UpstreamCall) => Response | Promise<Response>

export class TurnWorld {
  /** What upstreams were asked, in order. */
  readonly asked: UpstreamCall[] = []
  readonly opened: OpenCall[] = []
  readonly closed: CallOutcome[] = []
  readonly #work: Array<Promise<unknown>> = []
  readonly #policies: Json[]
  readonly #organizationId = crypto.randomUUID()

  /** @param answers of the upstream, in order. @param policies bodies of policies that hold. */
  constructor(answers: Answer[], policies: Json[] = []) {
    provideIdentityStream()
    const runtime = globalThis as Record<string, unknown>
    runtime.FixedLengthStream ??= FixedLengthStreamStandIn
    this.#policies = policies
    vi.stubGlobal('fetch', async (url: URL, init: RequestInit) => {
      const text = await new Response(init.body ?? null).text()
      const call: UpstreamCall = {
        url: String(url),
        headers: new Headers(init.headers),
        body: JSON.parse(text) as Json,
        signal: init.signal as AbortSignal,
      }
      this.asked.push(call)
      const answer = answers.shift()
      if (!answer) throw new Error('no answer is left')
      return answer(call)
    })
  }

  get deps(): ModelDeps {
    const rows = this.#policies.map((body, index) => ({ id: `p${index}`, version: 1, name: 'p', body }))
    const database = {
      select: (fields: object) => answering('upstreamModel' in fields ? CATALOGUE : rows),
    } as unknown as CatalogDatabase
    const ledger = {
      open: async (call: OpenCall) => {
        this.opened.push(call)
        return { admitted: true }
      },
      close: async (_id: string, outcome: CallOutcome) => {
        this.closed.push(outcome)
        return { closed: true }
      },
      extend: async () => ({ open: true }),
    } as unknown as Ledger
    return {
      database,
      redis: { get: async () => null, set: async () => 'OK', del: async () => 0 } as unknown as Redis,
      clock: () => Date.now(),
      waitUntil: (work) => void this.#work.push(work),
      ledgerOf: () => ledger,
      configuration: {
        VAULT_KEYS: RING,
        KEY_PEPPERS: RING,
        LIMITS_TIMEOUT_MS: 300,
        EGRESS_ALLOW: [],
        UPSTREAM_CONNECT_TIMEOUT_MS: 5_000,
        UPSTREAM_HEADERS_TIMEOUT_MS: 5_000,
        UPSTREAM_ANSWER_TIMEOUT_MS: 5_000,
        BUFFER_LIMIT_BYTES: 1_000_000,
        UPSTREAM_FIRST_EVENT_TIMEOUT_MS: 5_000,
        UPSTREAM_EVENT_TIMEOUT_MS: 5_000,
        UPSTREAM_RETRY_WAIT_MS: 0,
        STREAM_COMMIT_MS: 5_000,
        STREAM_HEARTBEAT_MS: 5_000,
        LEDGER_LEASE_MS: 60_000,
      },
    }
  }

  /** Begins a turn. @param members of the turn body besides `stream`. */
  begin(members: Json, more: Partial<ModelCall> = {}): Promise<ModelTurn> {
    const body = new TextEncoder().encode(JSON.stringify({ stream: true, ...members }))
    const principal = {
      organizationId: this.#organizationId,
      userId: 'u',
      groupIds: [],
      models: { all: true, ids: new Set() },
      epoch: 1,
    } as unknown as Principal
    return modelTurn(this.deps, {
      body,
      headers: new Headers(),
      signal: new AbortController().signal,
      principal,
      catalogueEpoch: EPOCH,
      record: this.record,
      ...more,
    })
  }

  readonly record: CallRecord = {
    callId: 'call',
    requestId: 'request',
    startedAt: 0,
    actor: { userId: 'u', keyId: 'k', administrator: null, ip: null },
    surface: 'responses',
    action: 'POST /v1/responses',
    modelId: null,
    flags: [],
    opened: false,
  }

  /** A turn to its end. */
  async events(members: Json): Promise<ModelEvent[]> {
    return (await batchesOf(await this.begin(members))).flat()
  }

  /** The outcome in the ledger, once all work is done. */
  async outcome(): Promise<CallOutcome | undefined> {
    await Promise.all(this.#work)
    return this.closed[0]
  }
}

export async function batchesOf(turn: ModelTurn): Promise<ModelEvent[][]> {
  const batches: ModelEvent[][] = []
  for await (const batch of turn.batches) batches.push(batch)
  return batches
}

/** What an async function throws. */
export const thrownBy = async (work: () => Promise<unknown>): Promise<unknown> =>
  work().then(
    () => null,
    (error: unknown) => error,
  )

const STREAM = { headers: { 'content-type': 'text/event-stream' } }

export const streamed =
  (...texts: string[]): Answer =>
  () =>
    new Response(texts.join(''), STREAM)

export const whole =
  (body: Json, status = 200, headers: Record<string, string> = {}): Answer =>
  () =>
    new Response(JSON.stringify(body), {
      status,
      headers: { 'content-type': 'application/json', ...headers },
    })

/** A stream that sends what it is told to, for as long as it is read. */
export function openStream(): { answer: Answer; send: (text: string) => void; cancelled: () => boolean } {
  const encoder = new TextEncoder()
  let cancelled = false
  let controller: ReadableStreamDefaultController<Uint8Array> | null = null
  const body = new ReadableStream<Uint8Array>({
    start: (given) => {
      controller = given
    },
    cancel: () => {
      cancelled = true
    },
  })
  return {
    answer: () => new Response(body, STREAM),
    send: (text) => controller?.enqueue(encoder.encode(text)),
    cancelled: () => cancelled,
  }
}

export const user = (content: unknown): Json => ({ type: 'message', role: 'user', content })

/** The text of all events of a type. */
export const said = (events: readonly ModelEvent[], type: 'text' | 'reasoning'): string =>
  events.map((event) => (event.type === type ? event.text : '')).join('')
