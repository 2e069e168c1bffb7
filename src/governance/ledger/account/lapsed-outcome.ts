import type { CallProgress } from '../contract.ts'
import { outcomeText } from '../records/record-body.ts'
import type { OpenCall } from './open-calls.ts'

/** How a call ends whose lease ran out. Its status is 0: nobody knows what the caller got. */
export function lapsedOutcome(call: OpenCall, now: number): { cost: number; text: string } {
  const { at } = JSON.parse(`{${call.opening}}`) as { at: number }
  const progress: CallProgress | null = call.progress === null ? null : JSON.parse(call.progress)
  const cost = progress?.cost ?? call.reserve
  const text = outcomeText({
    status: 0,
    errorCode: 'unsettled',
    provider: progress?.provider ?? null,
    attempts: [],
    usage: progress?.usage ?? null,
    provenance: progress ? 'estimated' : 'unknown',
    cost,
    durationMilliseconds: Math.max(0, now - at),
    request: null,
    response: null,
    dlp: null,
    connectionId: null,
    flags: ['settled_by_alarm'],
  })
  return { cost, text }
}
