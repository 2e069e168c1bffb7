import { vi } from 'vitest'
import { type CallIdentity, settle } from '../../../src/calls/governed-call.ts'
import type { ModelCatalogueDatabase } from '../../../src/gateway/catalogue/model-catalogue.store.ts'
import type { ModelDeps } from '../../../src/gateway/invoke-model.ts'
import {
  type AdmittedTurn,
  admitTurn,
  type SentTurn,
  sendTurn,
  type TurnRequest,
} from '../../../src/gateway/model-turn.ts'
import type { ModelEvent } from '../../../src/gateway/translation/model-events.ts'
import type { KeyRights } from '../../../src/identity/identity.store.ts'
import type { CallOutcome } from '../../../src/ledger/audit-record.ts'
import { seal } from '../../../src/lib/crypto.ts'
import { somePrincipal } from '../calls/fixtures.ts'
import { MemoryLedger } from '../ledger/memory-ledger.ts'
import { provideIdentityStream } from './identity-stream.ts'

/**
 * Turns through the one door to a model: the real gateway between a catalogue of models behind each protocol and both,
 * policies, a ledger in memory, and upstreams that answer as they are told.
 */

export type Json = Record<string, unknown>

const RING = new Map([['k', new Uint8Array(32).fill(3)]])
export const CREDENTIAL = 'sk-upstream-secret'
/** Epoch of these tests' catalogue, which no other test of the same worker uses. */
export const CATALOGUE_EPOCH = 4_711
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

/** A query of drizzle that returns rows, whatever its parts. */
function answering(rows: unknown[]): unknown {
  const query: unknown = new Proxy(() => query, {
    get: (_target, name) => (name === 'then' ? (resolve: (rows: unknown[]) => void) => resolve(rows) : query),
    apply: () => query,
  })
  return query
}

/** The runtime's stream of a known length; this one does not enforce it. */
class FixedLengthStreamStandIn extends TransformStream<Uint8Array, Uint8Array> {
  constructor(_length: number) {
    super()
  }
}

interface UpstreamCall {
  url: string
  headers: Headers
  /** The body as it was sent, and parsed. */
  text: string
  body: Json
  signal: AbortSignal
}

export type Answer = (call: UpstreamCall) => Response | Promise<Response>

export class TurnWorld {
  /** Requests to upstreams, in order. */
  readonly asked: UpstreamCall[] = []
  readonly ledger = new MemoryLedger()
  /** Contents of Postgres. */
  readonly postgres = {
    catalogueEpoch: CATALOGUE_EPOCH,
    catalogue: CATALOGUE,
    rights: null as KeyRights | null,
  }
  readonly #work: Array<Promise<unknown>> = []
  readonly #policies: Json[]
  readonly organizationId: string

  /** @param answers of the upstream, in order. @param policies bodies of policies that hold in the organization. */
  constructor(answers: Answer[], policies: Json[] = [], organizationId: string = crypto.randomUUID()) {
    provideIdentityStream()
    this.organizationId = organizationId
    this.ledger.epochs.catalogue = CATALOGUE_EPOCH
    const runtime = globalThis as Record<string, unknown>
    runtime.FixedLengthStream ??= FixedLengthStreamStandIn
    this.#policies = policies
    vi.stubGlobal('fetch', async (url: URL, init: RequestInit) => {
      const text = await new Response(init.body ?? null).text()
      const call: UpstreamCall = {
        url: String(url),
        headers: new Headers(init.headers),
        text,
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
    const rows = this.#policies.map((body, index) => ({
      id: `p${index}-${this.organizationId}`,
      version: 1,
      name: 'p',
      body,
    }))
    const { catalogueEpoch, catalogue, rights } = this.postgres
    const keys = rights ? [rights] : []
    const database = {
      select: (fields: object) => answering('keyId' in fields ? keys : rows),
      // Part of a query.
      selectDistinct: () => answering([]),
      batch: async () => [[{ epoch: catalogueEpoch }], catalogue],
    } as unknown as ModelCatalogueDatabase
    return {
      database,
      clock: () => Date.now(),
      waitUntil: (work) => void this.#work.push(work),
      redis: { set: async () => null, del: async () => 0 } as ModelDeps['redis'],
      ledgerOf: this.ledger.of,
      configuration: {
        VAULT_KEYS: RING,
        ORGANIZATION_RATE_LIMIT: 1_000,
        USER_RATE_LIMIT: 1_000,
        EGRESS_ALLOW: [],
        NATIVE_STREAM_HOSTS: [],
        UPSTREAM_CONNECT_TIMEOUT_MS: 5_000,
        UPSTREAM_HEADERS_TIMEOUT_MS: 5_000,
        UPSTREAM_ANSWER_TIMEOUT_MS: 5_000,
        UPSTREAM_READ_ON_MS: 0,
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

  /** Has a turn admitted. @param members of the turn body besides `stream`. @throws the error of a refused turn. */
  async admit(members: Json, more: Partial<TurnRequest> = {}): Promise<AdmittedTurn> {
    const body = new TextEncoder().encode(JSON.stringify({ stream: true, ...members }))
    const models = { all: true, ids: new Set<string>() }
    const principal = somePrincipal({ organizationId: this.organizationId, models })
    const headers = new Headers()
    const request = { body, headers, principal, identity: IDENTITY, counted: true, ...more }
    const admitted = await admitTurn(this.deps, request)
    if (admitted.kind === 'refused') throw admitted.error
    return admitted
  }

  /** Sends an admitted turn, and settles it when it has ended. @throws the error of a turn without an answer. */
  async send({ planned, call }: AdmittedTurn, signal = new AbortController().signal): Promise<Turn> {
    const sent = await sendTurn(this.deps, planned, call, signal)
    this.#work.push(sent.outcome.then((outcome) => settle(this.deps, call, outcome)))
    if (sent.kind === 'failed') throw sent.error
    return sent
  }

  /** Begins a turn as the engine of responses does. */
  async begin(members: Json, more: Partial<TurnRequest> & { signal?: AbortSignal } = {}): Promise<Turn> {
    const { signal, ...request } = more
    return this.send(await this.admit(members, request), signal)
  }

  /** A turn to its end. */
  async events(members: Json): Promise<ModelEvent[]> {
    return (await batchesOf(await this.begin(members))).flat()
  }

  /** The outcome in the ledger, once all work is done. */
  async outcome(): Promise<CallOutcome | undefined> {
    await Promise.all(this.#work)
    return this.ledger.closed[0]?.outcome
  }
}

export type Turn = Extract<SentTurn, { kind: 'answered' }>

export const IDENTITY: CallIdentity = {
  callId: 'call',
  requestId: 'request',
  at: 0,
  actor: { userId: 'u', keyId: 'k', administrator: null, ip: null },
  surface: 'responses',
  action: 'POST /v1/responses',
}

export async function batchesOf(turn: Turn): Promise<ModelEvent[][]> {
  const batches: ModelEvent[][] = []
  for await (const batch of turn.batches) batches.push(batch)
  return batches
}

/** The error that an async function throws. */
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

/** A stream that sends what the test pushes, for as long as it is read. */
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
