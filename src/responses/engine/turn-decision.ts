import type { Usage } from '../../governance/credits.ts'
import type { ResponseSettings } from '../../wire/responses.ts'
import { isCut, type TurnCall, type TurnEnd } from '../emitter/emitter.ts'
import type { Progress } from '../object/response-head.ts'
import { endOfStop, incomplete, type ResponseEnd } from './response-end.ts'
import { runsHere } from './tool-rules.ts'

/** A model that calls what it must not is told so; stop after this many consecutive turns of nothing else. */
const MOST_REFUSED_TURNS = 3

export interface TurnLimits {
  mostTurns: number
  /** Of the response, in tokens; null without a limit. */
  mostOutput: number | null
  /** A function call ends a response `completed`, as Open Responses has it, not `incomplete`. */
  functionCallsComplete: boolean
}

/** What follows a turn that came to its end. */
export type TurnDecision =
  | { kind: 'end'; end: ResponseEnd }
  /** Calls are answered on this side first; `end` null: then another turn follows. */
  | { kind: 'run_tools'; calls: TurnCall[]; end: ResponseEnd | null }
  | { kind: 'next_turn' }

/**
 * Decides what follows a turn.
 * @param progress with this turn counted: its usage, and whether it called nothing but what may not be called.
 */
export function decideTurn(turn: TurnEnd, progress: Progress, limits: TurnLimits): TurnDecision {
  if (turn.filtered) return ending(incomplete('content_filter'))
  const answered = turn.calls.filter(({ purpose }) => purpose !== 'refused')
  // Nobody can answer a call without the rest of its arguments.
  if (answered.some(({ cut }) => cut)) return ending(endOfStop(turn.stop))
  const calls = answered.filter(({ purpose }) => runsHere(purpose))
  const forClient = calls.length < answered.length
  const end = endOfCalls(forClient, turn, progress, limits)
  if (calls.length > 0) return { kind: 'run_tools', calls, end }
  return end ? ending(end) : { kind: 'next_turn' }
}

/** How a response ends after the calls of a turn; null when another turn follows. */
function endOfCalls(
  forClient: boolean,
  { calls, stop }: TurnEnd,
  progress: Progress,
  limits: TurnLimits,
): ResponseEnd | null {
  if (forClient) return endOfClientCall(limits)
  if (calls.length === 0 || isCut(stop)) return endOfStop(stop)
  return endOfLimits(progress, limits)
}

/** Whether a turn called something, and nothing but what may not be called. */
export const isRefused = ({ calls }: TurnEnd): boolean =>
  calls.length > 0 && calls.every(({ purpose }) => purpose === 'refused')

/** Tokens that a response may still generate; null without a limit. */
export const outputLeft = (limit: number | null, usage: Usage | null): number | null =>
  limit === null ? null : Math.max(0, limit - (usage?.output ?? 0))

/** `max_output_tokens` bounds the response, whatever its turns. A forced call is made once. */
export function nextTurnSettings(settings: ResponseSettings, usage: Usage | null): ResponseSettings {
  const left = outputLeft(settings.max_output_tokens ?? null, usage)
  return {
    ...settings,
    ...(left !== null && { max_output_tokens: left }),
    tool_choice: unforced(settings.tool_choice),
  }
}

const ending = (end: ResponseEnd): TurnDecision => ({ kind: 'end', end })

/** The caller answers it, so the response ends (interface: Response status). */
const endOfClientCall = ({ functionCallsComplete }: TurnLimits): ResponseEnd =>
  functionCallsComplete ? { status: 'completed' } : incomplete('tool_use')

function endOfLimits({ turns, refusedTurns, usage }: Progress, limits: TurnLimits): ResponseEnd | null {
  if (turns >= limits.mostTurns || refusedTurns >= MOST_REFUSED_TURNS) return incomplete('max_turns')
  return outputLeft(limits.mostOutput, usage) === 0 ? incomplete('max_output_tokens') : null
}

/** The same choice of tools, of which none need be called any more. */
function unforced(choice: ResponseSettings['tool_choice']): ResponseSettings['tool_choice'] {
  if (choice === 'required') return 'auto'
  if (typeof choice === 'object' && choice?.type === 'allowed_tools') return { ...choice, mode: 'auto' }
  return choice
}
