import { callOutcome } from '../audit-record.ts'
import type { CallProgress } from '../contract.ts'
import { outcomeText } from '../records/record-body.ts'
import type { OpenCall } from './open-calls.ts'

/** The outcome of a call whose lease ran out. Its status is 0, because the answer to the caller is unknown. */
export function lapsedOutcome(call: OpenCall, now: number): { cost: number; text: string } {
  const opening = JSON.parse(`{${call.opening}}`) as { at: number }
  const progress: CallProgress | null = call.progress === null ? null : JSON.parse(call.progress)
  const cost = progress?.cost ?? call.reserve
  const outcome = callOutcome(opening, Math.max(opening.at, now), {
    status: 0,
    errorCode: 'unsettled',
    provider: progress?.provider ?? null,
    usage: progress?.usage ?? null,
    provenance: progress ? 'estimated' : 'unknown',
    cost,
    flags: ['settled_by_alarm'],
  })
  return { cost, text: outcomeText(outcome) }
}
