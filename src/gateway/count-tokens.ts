import { type Attempt, outcomeOf } from '../governance/audit-record.ts'
import type { GovernedCall } from '../governance/governed-call.ts'
import { ApiError } from '../lib/api-error.ts'
import { BoundedMap } from '../lib/bounded-map.ts'
import { applyEdits, joinBytes } from '../lib/byte-edits.ts'
import { readAll } from '../lib/bytes/read-bytes.ts'
import type { Clock } from '../lib/clock.ts'
import type { PlannedCall, SentCall } from './calls/model-call.ts'
import type { Route } from './catalog/catalog.ts'
import { speaks } from './providers/provider.ts'
import { sendToProvider } from './providers/send-to-provider.ts'
import { countInputTokens } from './token-count/input-tokens.ts'
import { responsesCountRequest } from './token-count/responses-count-request.ts'
import { objectOf, parseJson } from './translation/json.ts'

interface CountDeps {
  clock: Clock
  configuration: { EGRESS_ALLOW: readonly string[] }
}

/** Above this a body is counted here: the other protocol's request would need its tree. */
const LARGEST_ASKED_BYTES = 1024 * 1024
/** A counter that does not answer soon is not waited for. */
const COUNTER_TIMEOUT_MS = 3_000
/** How long a route without a counter is not asked again, and one whose counter failed. */
const NO_COUNTER_MS = 10 * 60_000
const FAILED_COUNTER_MS = 30_000
const LONGEST_COUNT_BYTES = 64 * 1024
const MOST_ROUTES = 1_000
const NO_COUNTER = new Set([404, 405, 501])

/** Until when a route's counter is not asked, in milliseconds since the epoch. */
const silent = new BoundedMap<string, number>(MOST_ROUTES)
const keyOf = ({ provider, upstreamModel }: Route) => `${provider.id} ${upstreamModel}`

/**
 * Counts the tokens of a request for a model whose providers have no counter of the messages protocol: by the counter
 * of their own protocol where they have one, else here, never below what they would charge.
 */
export async function answerTokenCount(
  deps: CountDeps,
  { outline, inspected, model, policy }: PlannedCall,
  { opening }: GovernedCall,
  signal: AbortSignal,
): Promise<SentCall> {
  const [route] = model.routes
  if (!route) throw new Error('a model without routes')
  const edited = applyEdits(outline.body, inspected.edits)
  const body = joinBytes(edited.pieces)
  const attempt = await upstreamCount(deps, signal, route, body)
  const inputTokens = attempt?.tokens ?? countInputTokens(body, { upstreamModel: route.upstreamModel })
  const { released, withheld } = edited
  const outcome = outcomeOf(opening, deps.clock(), {
    status: 200,
    provider: attempt?.record.provider ?? null,
    attempts: attempt ? [attempt.record] : [],
    // Counted here, nothing has left.
    request: attempt ? { ...inspected.counts, released, withheld } : null,
    dlp: { policyVersion: policy.version, findings: policy.findings() },
  })
  const answer = {
    status: 200,
    headers: { 'content-type': 'application/json' },
    body: new TextEncoder().encode(JSON.stringify({ input_tokens: inputTokens })),
  }
  return { kind: 'answered', answer, outcome: Promise.resolve(outcome) }
}

/** @returns null when no counter of the provider was asked; `tokens` is null when it did not answer. */
async function upstreamCount(
  deps: CountDeps,
  signal: AbortSignal,
  route: Route,
  body: Uint8Array,
): Promise<{ tokens: number | null; record: Attempt } | null> {
  const { provider } = route
  if (!speaks(provider, 'input_tokens') || body.length > LARGEST_ASKED_BYTES) return null
  if ((silent.get(keyOf(route)) ?? 0) > deps.clock()) return null
  const request = counterRequest(body, route)
  if (!request) return null
  const startedAt = deps.clock()
  const count = await askCounter(deps, signal, route, request).catch(() => ({ status: null, tokens: null }))
  if (count.tokens === null) rememberSilence(route, count.status, deps.clock())
  const record = {
    provider: provider.name,
    upstreamModel: route.upstreamModel,
    status: count.status,
    failure: count.status === null ? 'unreachable' : null,
    durationMilliseconds: deps.clock() - startedAt,
  }
  return { tokens: count.tokens, record }
}

function rememberSilence(route: Route, status: number | null, now: number): void {
  const absent = status !== null && NO_COUNTER.has(status)
  // A request that this counter refuses says nothing about the next one.
  if (!absent && status !== null && status < 500 && status !== 429) return
  silent.set(keyOf(route), now + (absent ? NO_COUNTER_MS : FAILED_COUNTER_MS))
}

/** @returns null for what the model would refuse: it is counted all the same, as messages upstreams do. */
function counterRequest(body: Uint8Array, { upstreamModel }: Route): Uint8Array | null {
  try {
    const request = objectOf(parseJson(new TextDecoder().decode(body)))
    return new TextEncoder().encode(JSON.stringify(responsesCountRequest(request, upstreamModel)))
  } catch (error) {
    if (error instanceof ApiError) return null
    throw error
  }
}

/** https://platform.openai.com/docs/api-reference/responses/input-tokens */
async function askCounter(
  deps: CountDeps,
  signal: AbortSignal,
  { provider, upstreamModel }: Route,
  bytes: Uint8Array,
): Promise<{ status: number; tokens: number | null }> {
  const response = await sendToProvider(provider, {
    operation: 'input_tokens',
    upstreamModel,
    body: bytes,
    callerHeaders: null,
    stream: false,
    signal: AbortSignal.any([signal, AbortSignal.timeout(COUNTER_TIMEOUT_MS)]),
    onConnected: null,
    allow: deps.configuration.EGRESS_ALLOW,
    now: deps.clock(),
  })
  const answer = response.body ? await readAll(response.body, LONGEST_COUNT_BYTES) : new Uint8Array()
  if (response.status !== 200) return { status: response.status, tokens: null }
  const tokens = objectOf(JSON.parse(new TextDecoder().decode(answer))).input_tokens
  return { status: 200, tokens: Number.isSafeInteger(tokens) ? (tokens as number) : null }
}
