import { errorCodeOf, type GovernedCall, refusalOutcome } from '../calls/governed-call.ts'
import { unpricedUnits } from '../calls/usage.ts'
import { type CallOpening, type CallOutcome, type CallTiming, callOutcome } from '../ledger/audit-record.ts'
import { ApiError } from '../lib/api-error.ts'
import type { Clock } from '../lib/clock.ts'
import { atRoute } from './calls/charge-basis.ts'
import { answerCharge, type Charge, type ChargeBasis, NO_CHARGE, withLost } from './calls/charges.ts'
import { withContainerTime } from './calls/container-time.ts'
import type { PlannedCall } from './calls/model-call.ts'
import { CLIENT_LEFT, type StartedStream } from './relay/stream-answer.ts'
import type { Arrivals } from './relay/stream-relay.ts'
import type { FailoverResult } from './upstreams/failover.ts'

/** The outcome of a sent call. Resolves at the end of a stream. Never rejects. */
export function outcomeOfSent(
  deps: { clock: Clock },
  { basis, policy }: PlannedCall,
  { opening }: GovernedCall,
  sent: FailoverResult,
): Promise<CallOutcome> {
  // The plan itself is not passed on: it holds the request's body, which must not live as long as a stream.
  return settledOutcome(deps, { basis, policy, opening }, sent)
}

async function settledOutcome(
  { clock }: { clock: Clock },
  { basis, policy, opening }: Pick<PlannedCall, 'basis' | 'policy'> & Pick<GovernedCall, 'opening'>,
  { answer, attempts, lost, route, startedAt, requestCounts, responseCounts }: FailoverResult,
): Promise<CallOutcome> {
  const end = answer.kind === 'stream' ? await answer.ended : endOf(answer)
  const now = clock()
  const used = withLost(basis, atRoute(basis, end.charge, route), lost)
  const charge = withContainerTime(basis, used, now - opening.at)
  return callOutcome(opening, now, {
    ...charge,
    status: end.status,
    errorCode: end.errorCode,
    flags: [...end.flags, ...(charge.flags ?? []), ...priceFlags(basis, charge)],
    provider: route?.provider.name ?? null,
    attempts,
    request: requestCounts,
    response: end.counts ?? responseCounts,
    dlp: policy.record(),
    ...(attempts.length > 0 && { timing: timingOf(opening, startedAt, end.arrivals) }),
  })
}

/** @param arrivals of a stream's events; null for another answer. */
function timingOf({ at }: CallOpening, startedAt: number, arrivals: Arrivals | null): CallTiming {
  const admitted = startedAt - at
  if (arrivals === null) return { admitted, firstEvent: null, lastEvent: null, events: null }
  const { first, last, events } = arrivals
  if (first === null) return { admitted, firstEvent: null, lastEvent: null, events }
  // A stream that the runtime pipes knows the time of its last chunk from another reader than that of its first.
  return { admitted, firstEvent: first - at, lastEvent: Math.max(first, last) - at, events }
}

/** `unpriced`: the call used something that has no price, so that its cost is too low. */
function priceFlags({ unpriced, prices }: ChargeBasis, { usage }: Charge): string[] {
  return unpriced || unpricedUnits(usage, prices).length > 0 ? ['unpriced'] : []
}

type End = Pick<CallOutcome, 'status' | 'errorCode' | 'flags'> & {
  charge: Charge
  counts: CallOutcome['response']
  arrivals: Arrivals | null
}

const NOTHING = { flags: [], charge: NO_CHARGE, counts: null, arrivals: null }

function endOf(answer: Exclude<FailoverResult['answer'], StartedStream>): End {
  if (answer.kind === 'buffered') {
    const { status, charge, counts } = answer
    return { ...NOTHING, status, errorCode: null, charge, counts }
  }
  if (answer.kind === 'upstream_error') {
    return { ...NOTHING, status: answer.response.status, errorCode: 'upstream_error' }
  }
  if (answer.kind === 'client_left') {
    const { charge = NO_CHARGE, counts = null } = answer
    return {
      status: CLIENT_LEFT,
      errorCode: 'client_left',
      flags: ['client_left'],
      charge,
      counts,
      arrivals: null,
    }
  }
  const known = answer.error instanceof ApiError ? answer.error : null
  const errorCode = known ? errorCodeOf(known) : 'internal_error'
  return { ...NOTHING, status: known?.status ?? 500, errorCode }
}

/** The outcome of a call whose sender was restarted during its stream, estimated from the text that had arrived. */
export function interruptedOutcome(
  open: { call: GovernedCall; basis: ChargeBasis; provider: string | null },
  textBytes: number,
  now: number,
): CallOutcome {
  const { call, basis, provider } = open
  const charge = withContainerTime(basis, answerCharge(basis, null, textBytes), now - call.opening.at)
  // Status 0: the one that the caller got is not known.
  const known = {
    ...charge,
    status: 0,
    errorCode: 'interrupted',
    provider,
    flags: ['interrupted', ...priceFlags(basis, charge)],
  }
  return callOutcome(call.opening, now, known)
}

/** The outcome of a call that was admitted but not sent. @param now milliseconds since the epoch. */
export function unsentOutcome({ opening }: GovernedCall, now: number, error: unknown): CallOutcome {
  if (error instanceof ApiError) return refusalOutcome(opening, now, error)
  return callOutcome(opening, now, { status: 500, errorCode: 'internal_error' })
}
