import { randomUUID } from 'node:crypto'
import type { GovernedCall } from '../../../src/calls/governed-call.ts'
import { outcomeOfSent } from '../../../src/gateway/call-outcome.ts'
import type { PlannedCall } from '../../../src/gateway/calls/model-call.ts'
import { planCall } from '../../../src/gateway/calls/plan-call.ts'
import type { Route } from '../../../src/gateway/catalogue/call-routes.ts'
import type { CatalogueModel, CatalogueRoute } from '../../../src/gateway/catalogue/model-catalogue.ts'
import { BufferedResponses } from '../../../src/gateway/relay/buffered-responses.ts'
import type { CallerForm } from '../../../src/gateway/relay/stream-answer.ts'
import { type FailoverResult, sendWithFailover } from '../../../src/gateway/upstreams/failover.ts'
import type { CallOutcome } from '../../../src/ledger/audit-record.ts'
import { somePrincipal } from '../calls/fixtures.ts'
import { someOpening } from '../ledger/memory-ledger.ts'
import { BASIS } from './http-relay.ts'
import { type Answer, type Json, TurnWorld } from './model-turn-harness.ts'

/** Bytes of the request divided by those of a token. */
export const INPUT = 100
const MODEL_ID = 'some-model'

export type RouteKind = 'chat' | 'messages'

/** A route of a new provider, of which this isolate has stored nothing. */
function routeOf(kind: RouteKind, index: number): CatalogueRoute {
  return {
    provider: {
      id: randomUUID(),
      name: `${kind} ${index}`,
      kind: kind === 'chat' ? 'openai-compatible' : 'anthropic',
      baseUrl: `https://${kind}-${index}.example`,
      credential: { parts: { secret: 'sk-secret' }, secrets: ['sk-secret'] },
    },
    upstreamModel: 'upstream-model',
  }
}

export interface FailoverRunOptions {
  routes: RouteKind[]
  /** Answers of the upstreams, in the order of requests. */
  answers: Answer[]
  request?: Json
  policies?: Json[]
  retryWait?: number
  form?: CallerForm
  /** The caller was gone before it began. */
  leftBefore?: boolean
}

export interface FailoverRun {
  world: TurnWorld
  planned: PlannedCall
  call: GovernedCall
  leave: AbortController
  sent: Promise<FailoverResult>
  outcome: Promise<CallOutcome>
}

/** Sends a chat completion over some routes. The charge of its input alone is `INPUT`. */
export async function failoverOf(options: FailoverRunOptions): Promise<FailoverRun> {
  const world = new TurnWorld(options.answers, options.policies)
  const { deps } = world
  const configuration = { ...deps.configuration, UPSTREAM_RETRY_WAIT_MS: options.retryWait ?? 0 }
  const planned = { ...(await plan(world, options)), basis: BASIS }
  const call = { opening: someOpening(), reserve: BASIS.bounds.reserve }
  const leave = new AbortController()
  if (options.leftBefore) leave.abort()
  const buffered = new BufferedResponses()
  const { form = 'http' } = options
  const sent = sendWithFailover({ ...deps, configuration }, planned, call, {
    signal: leave.signal,
    form,
    buffered,
  })
  const outcome = sent.then((result) => outcomeOfSent(deps, planned, call, result))
  return { world, planned, call, leave, sent, outcome }
}

async function plan(world: TurnWorld, { routes, request }: FailoverRunOptions): Promise<PlannedCall> {
  const model: CatalogueModel = {
    id: MODEL_ID,
    ownedBy: 'o',
    created: 0,
    contextWindow: 1_000,
    maxOutputTokens: 1_000,
    prices: BASIS.prices,
    capabilities: [],
    routes: routes.map(routeOf),
  }
  const members = { model: MODEL_ID, messages: [{ role: 'user', content: 'Hi' }], ...request }
  const body = new TextEncoder().encode(JSON.stringify(members))
  const principal = somePrincipal({ models: { all: true, ids: new Set() } })
  const { organizationId: _organization, modelId: _model, ...identity } = someOpening()
  const rights = { principal, catalogueEpoch: 1, learned: null }
  const asked = { operation: 'chat_completions', body, headers: new Headers(), counted: true } as const
  const catalogue = { epoch: 1, models: new Map([[MODEL_ID, model]]) }
  const planned = await planCall(world.deps, { ...asked, identity, principal }, rights, catalogue, null)
  if (planned.kind === 'refused') throw planned.error
  return planned
}

/** The attempts in order: name of the provider, and status or failure. */
export const attemptsOf = ({ attempts }: Pick<CallOutcome, 'attempts'>) =>
  attempts.map(({ provider, status, failure }) => [provider, status ?? failure])

export const providerOf = (route: Route | null) => route?.provider.name ?? null

/** Takes the request and does not answer. */
export const silent: Answer = ({ signal }) =>
  new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)))

export const unreachable: Answer = () => Promise.reject(new TypeError('fetch failed'))

/** A whole answer of chat completions. */
export const chatAnswer = (content: string, promptTokens = 7): Json => ({
  id: 'c',
  choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }],
  usage: { prompt_tokens: promptTokens, completion_tokens: 1 },
})
