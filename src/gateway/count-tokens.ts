import type { GovernedCall } from '../calls/governed-call.ts'
import { type Attempt, callOutcome } from '../ledger/audit-record.ts'
import { ApiError } from '../lib/api-error.ts'
import { BoundedMap } from '../lib/bounded-map.ts'
import { applyEdits, joinBytes } from '../lib/byte-edits.ts'
import { readAll } from '../lib/bytes/read-bytes.ts'
import type { Clock } from '../lib/clock.ts'
import { runSlices } from '../lib/slices.ts'
import type { PlannedCall, SentCall } from './calls/model-call.ts'
import { type CatalogueRoute, routeKey } from './catalogue/model-catalogue.ts'
import { bodyMembersOf, counterOf, speaks, transportOf } from './providers/provider.ts'
import { sendToProvider } from './providers/send-to-provider.ts'
import type { CounterForm } from './providers/transport.ts'
import { counterRequest, countIn } from './token-count/counters.ts'
import { estimateInputTokens } from './token-count/input-tokens.ts'

interface CountDeps {
  clock: Clock
  configuration: { EGRESS_ALLOW: readonly string[] }
}

/** A longer body is estimated: the other protocol's request would be made from a tree of it. */
const LONGEST_SENT_BYTES = 1024 * 1024
const COUNTER_TIMEOUT_MS = 3_000
/** Time for which a route's counter is not called after it was missing, and after it failed. */
const NO_COUNTER_MS = 10 * 60_000
const FAILED_COUNTER_MS = 30_000
const LONGEST_COUNT_BYTES = 64 * 1024
const MOST_ROUTES = 1_000
/** Statuses of a provider that has no counter. */
const NO_COUNTER = new Set([404, 405, 501])

/** Time until which the counter of a route (by `routeKey`) is not called, in milliseconds since the epoch. */
const restingUntil = new BoundedMap<string, number>(MOST_ROUTES)

/** The response header of a count that is an estimate. */
const SOURCE = 'x-headgate-token-count'

/**
 * Counts the tokens of a request for a model whose providers have no counter of the messages protocol: by the counter
 * of another protocol where one has it, else by an estimate, which the header `x-headgate-token-count` names as such.
 */
export async function answerTokenCount(
  deps: CountDeps,
  { outline, inspected, model, policy }: PlannedCall,
  { opening }: GovernedCall,
  signal: AbortSignal,
): Promise<SentCall> {
  const [route] = model.routes
  if (!route) throw new Error('a model without routes')
  const { pieces, released, withheld } = applyEdits(outline.body, inspected.edits)
  const body = joinBytes(pieces)
  const attempt = await upstreamCount(deps, signal, model.routes, body)
  const counted = attempt?.tokens ?? null
  const inputTokens = counted ?? (await runSlices(estimateInputTokens(body, route.upstreamModel)))
  const outcome = callOutcome(opening, deps.clock(), {
    status: 200,
    provider: attempt?.record.provider ?? null,
    attempts: attempt ? [attempt.record] : [],
    // Null when no counter was called: nothing was sent.
    request: attempt ? { ...inspected.counts, released, withheld } : null,
    dlp: policy.record(),
  })
  const answer = {
    status: 200,
    headers: { 'content-type': 'application/json', ...(counted === null && { [SOURCE]: 'estimate' }) },
    body: new TextEncoder().encode(JSON.stringify({ input_tokens: inputTokens })),
  }
  return { kind: 'answered', answer, outcome: Promise.resolve(outcome) }
}

/** @returns null when no counter was called; `tokens` is null when it gave no count. */
async function upstreamCount(
  deps: CountDeps,
  signal: AbortSignal,
  routes: readonly CatalogueRoute[],
  body: Uint8Array,
): Promise<{ tokens: number | null; record: Attempt } | null> {
  const startedAt = deps.clock()
  const route = routes.find(({ provider, upstreamModel }) => counterOf(provider, upstreamModel) !== null)
  const form = route && counterOf(route.provider, route.upstreamModel)
  if (!form || body.length > LONGEST_SENT_BYTES) return null
  if ((restingUntil.get(routeKey(route)) ?? 0) > startedAt) return null
  const request = requestOf(form, body, route)
  if (!request) return null
  const { provider, upstreamModel } = route
  const { status, tokens } = await callCounter(deps, signal, route, form, request).catch(() => NO_ANSWER)
  if (tokens === null) noteFailure(route, status, deps.clock())
  const failure = status === null ? 'unreachable' : null
  const durationMilliseconds = deps.clock() - startedAt
  return { tokens, record: { provider: provider.name, upstreamModel, status, failure, durationMilliseconds } }
}

const NO_ANSWER = { status: null, tokens: null }

function noteFailure(route: CatalogueRoute, status: number | null, now: number): void {
  const absent = status !== null && NO_COUNTER.has(status)
  // Any other 4xx but 429 is about this request alone.
  if (!absent && status !== null && status < 500 && status !== 429) return
  restingUntil.set(routeKey(route), now + (absent ? NO_COUNTER_MS : FAILED_COUNTER_MS))
}

/** @returns null for a request that the model would refuse: it is estimated, as messages upstreams count it. */
function requestOf(
  form: CounterForm,
  body: Uint8Array,
  { provider, upstreamModel }: CatalogueRoute,
): Uint8Array | null {
  const target = { operation: 'messages', upstreamModel, stream: false, callerHeaders: null } as const
  try {
    const members = speaks(provider, 'messages', upstreamModel) ? bodyMembersOf(provider, target) : null
    return counterRequest(form, body, upstreamModel, members)
  } catch (error) {
    if (error instanceof ApiError) return null
    throw error
  }
}

async function callCounter(
  deps: CountDeps,
  signal: AbortSignal,
  { provider, upstreamModel }: CatalogueRoute,
  form: CounterForm,
  body: Uint8Array,
): Promise<{ status: number; tokens: number | null }> {
  const response = await sendToProvider(transportOf(provider), {
    operation: 'input_tokens',
    upstreamModel,
    body,
    callerHeaders: null,
    stream: false,
    signal: AbortSignal.any([signal, AbortSignal.timeout(COUNTER_TIMEOUT_MS)]),
    onConnected: null,
    onSending: null,
    allow: deps.configuration.EGRESS_ALLOW,
    now: deps.clock(),
  })
  const answer = response.body ? await readAll(response.body, LONGEST_COUNT_BYTES) : new Uint8Array()
  if (response.status !== 200) return { status: response.status, tokens: null }
  return { status: 200, tokens: countIn(form, answer) }
}
