import type { AnswerOf } from '../../client/management-client.ts'
import type { Look } from '../design/state.tsx'

/** A call that has ended, as lists have it. */
export type Call = AnswerOf<'calls.list'>['data'][number]

export type Outcome = Call['outcome']

/** How calls can end, from those that stand at the bottom of a chart. */
export const OUTCOMES: readonly Outcome[] = ['ok', 'cancelled', 'refused', 'blocked', 'failed']

export const LOOK_OF: Record<Outcome, Look> = {
  ok: 'quiet',
  cancelled: 'quiet',
  refused: 'warn',
  blocked: 'held',
  failed: 'failed',
}

export const WORD_OF: Record<Outcome, string> = {
  ok: 'succeeded',
  cancelled: 'left',
  refused: 'refused',
  blocked: 'blocked',
  failed: 'failed',
}

/** The name of a surface, as people say it. */
export const surfaceText = (surface: string): string =>
  surface === 'chat_completions' ? 'chat' : surface.replaceAll('_', ' ')

/** The status of a call with a word, where it needs one, such as `429 rate limited`. */
export function statusText({ status, error, outcome, count }: Call): string {
  const word = outcome === 'ok' ? '' : (error ?? WORD_OF[outcome]).replaceAll('_', ' ')
  const text = status === 0 ? word : `${status} ${word}`
  return count > 1 ? `${text.trim()} ×${count}` : text.trim()
}
