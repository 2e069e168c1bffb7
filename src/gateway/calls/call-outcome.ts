import { type CallOutcome, outcomeOf } from '../../governance/audit-record.ts'
import { errorCodeOf, type GovernedCall, refusalOutcome } from '../../governance/governed-call.ts'
import { ApiError } from '../../lib/api-error.ts'
import type { Clock } from '../../lib/clock.ts'
import { CLIENT_LEFT, type StartedStream } from '../relay/stream-answer.ts'
import type { Dispatched } from '../routes/failover.ts'
import { answerCharge, type Charge, type ChargeBasis, NO_CHARGE, withLost } from './charges.ts'
import type { PlannedCall } from './model-call.ts'

/** What a call that was sent came to. Of a stream it is known at its end; it never rejects. */
export function outcomeOfSent(
  deps: { clock: Clock },
  { basis, policy }: PlannedCall,
  { opening }: GovernedCall,
  sent: Dispatched,
): Promise<CallOutcome> {
  // Named one by one: the plan holds the request's body, which must not live as long as a stream.
  return settledOutcome(deps, { basis, policy, opening }, sent)
}

async function settledOutcome(
  { clock }: { clock: Clock },
  { basis, policy, opening }: Pick<PlannedCall, 'basis' | 'policy'> & Pick<GovernedCall, 'opening'>,
  { answer, attempts, lost, candidate, requestCounts, responseCounts }: Dispatched,
): Promise<CallOutcome> {
  const end = answer.kind === 'stream' ? await answer.ended : endOf(answer)
  return outcomeOf(opening, clock(), {
    ...withLost(basis, end.charge, lost),
    status: end.status,
    errorCode: end.errorCode,
    flags: end.flags,
    provider: candidate?.provider.name ?? null,
    attempts,
    request: attempts.length > 0 ? requestCounts : null,
    response: end.counts ?? responseCounts,
    dlp: { policyVersion: policy.version, findings: policy.findings() },
  })
}

type End = Pick<CallOutcome, 'status' | 'errorCode' | 'flags'> & {
  charge: Charge
  counts: CallOutcome['response']
}

const NOTHING: Pick<End, 'flags' | 'charge' | 'counts'> = { flags: [], charge: NO_CHARGE, counts: null }

function endOf(answer: Exclude<Dispatched['answer'], StartedStream>): End {
  if (answer.kind === 'whole') {
    const { status, charge, counts } = answer
    return { ...NOTHING, status, errorCode: null, charge, counts }
  }
  if (answer.kind === 'upstream_error') {
    return { ...NOTHING, status: answer.response.status, errorCode: 'upstream_error' }
  }
  if (answer.kind === 'client_left') {
    return { ...NOTHING, status: CLIENT_LEFT, errorCode: 'client_left', flags: ['client_left'] }
  }
  const known = answer.error instanceof ApiError ? answer.error : null
  const errorCode = known ? errorCodeOf(known) : 'internal_error'
  return { ...NOTHING, status: known?.status ?? 500, errorCode }
}

/** The outcome of a call whose caller died, estimated from what is known: a stream that broke off. */
export function interruptedOutcome(
  open: { call: GovernedCall; basis: ChargeBasis; provider: string | null },
  textBytes: number,
  now: number,
): CallOutcome {
  const { call, basis, provider } = open
  const charge = answerCharge(basis, null, textBytes)
  // Its status is 0: what its caller got is not known.
  const known = { ...charge, status: 0, errorCode: 'interrupted', provider, flags: ['interrupted'] }
  return outcomeOf(call.opening, now, known)
}

/** The outcome of a call that was admitted and is not sent after all. @param now milliseconds since the epoch. */
export function unsentOutcome({ opening }: GovernedCall, now: number, error: unknown): CallOutcome {
  if (error instanceof ApiError) return refusalOutcome(opening, now, error)
  return outcomeOf(opening, now, { status: 500, errorCode: 'internal_error' })
}
