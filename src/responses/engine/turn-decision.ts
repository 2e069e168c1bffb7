import { MAX_CREDITS } from '../../calls/governed-call.ts'
import type { Usage } from '../../ledger/audit-record.ts'
import type { Compatibility } from '../../wire/compatibility.ts'
import type { ResponseSettings } from '../../wire/responses.ts'
import type { ToolCall } from '../emitter/call-item.ts'
import type { TurnEnd } from '../emitter/emitter.ts'
import { endOfStop, incomplete, isCut, type ResponseEnd } from '../model/response-end.ts'
import type { Progress } from '../model/response-head.ts'
import type { IntendedCall, StoredToolCall } from '../model/tool-result.ts'
import { isServerSide } from '../tools/tool-rules.ts'
import { failedResult } from './run-tool-call.ts'

/** A response ends after this many consecutive turns with refused calls only. */
const MOST_REFUSED_TURNS = 3

interface TurnLimits {
  mostTurns: number
  /** Output tokens of the whole response; null without a limit. */
  mostOutput: number | null
  /** Micro-credits that the response may still cost; null without a limit. */
  creditsLeft: number | null
  compatibility: Compatibility
}

/** The decision after a turn. */
type TurnDecision =
  | { kind: 'end'; end: ResponseEnd }
  /** Server-side calls run first. Then the response ends, or another turn follows if `end` is null. */
  | { kind: 'run_tools'; calls: ToolCall[]; end: ResponseEnd | null }
  | { kind: 'next_turn' }

/**
 * Decides what follows a turn.
 * @param progress with this turn counted.
 */
export function decideTurn(turn: TurnEnd, progress: Progress, limits: TurnLimits): TurnDecision {
  if (turn.filtered) return ending(incomplete('content_filter'))
  const allowed = turn.calls.filter(({ purpose }) => purpose !== 'refused')
  // A call cannot be executed without the rest of its arguments.
  if (allowed.some(({ cut }) => cut)) return ending(endOfStop(turn.stop))
  const calls = allowed.filter(({ purpose }) => isServerSide(purpose))
  const forClient = allowed.some(({ purpose }) => purpose === 'client')
  const end = endOfCalls(forClient, turn, progress, limits)
  if (calls.length > 0) return { kind: 'run_tools', calls, end }
  return end ? ending(end) : { kind: 'next_turn' }
}

/** The end of a response after the calls of a turn; null when another turn follows. */
function endOfCalls(
  forClient: boolean,
  { calls, stop }: TurnEnd,
  progress: Progress,
  { compatibility, mostTurns, mostOutput, creditsLeft }: TurnLimits,
): ResponseEnd | null {
  // The caller executes the call, so that the response ends (interface: Response status).
  if (forClient) return compatibility === 'open_responses' ? { status: 'completed' } : incomplete('tool_use')
  // The caller decides, and continues the conversation with its decision.
  if (calls.some(({ purpose }) => purpose === 'approval')) return { status: 'completed' }
  if (calls.length === 0 || isCut(stop)) return endOfStop(stop)
  const { turns, refusedTurns } = progress
  if (turns >= mostTurns || refusedTurns >= MOST_REFUSED_TURNS) return incomplete('max_turns')
  if (creditsLeft !== null && creditsLeft <= 0) return incomplete(MAX_CREDITS)
  return outputLeft(mostOutput, turnUsage(progress)) === 0 ? incomplete('max_output_tokens') : null
}

/** Whether a turn made calls, and all of them were refused. */
export const isRefused = ({ calls }: TurnEnd): boolean =>
  calls.length > 0 && calls.every(({ purpose }) => purpose === 'refused')

/**
 * The server-side calls of a turn, or those that the caller has approved, to be stored before any is dispatched. Those over `max_tool_calls` are not executed: the
 * model gets the limit as their result.
 * @param made calls of the turns before.
 */
export function storedCalls(
  calls: readonly IntendedCall[],
  { max_tool_calls: limit }: Pick<ResponseSettings, 'max_tool_calls'>,
  made = 0,
): StoredToolCall[] {
  return calls.map(({ callId, upstreamName, arguments: json, approvalRequestId }, index) => {
    const isOver = index >= MOST_CALLS_OF_TURN || made + index >= Math.min(limit ?? MOST_CALLS, MOST_CALLS)
    return {
      ...{ callId, upstreamName, arguments: json },
      ...(approvalRequestId !== undefined && { approvalRequestId }),
      state: isOver ? 'done' : 'intended',
      result: isOver ? failedResult(OVER_LIMIT) : null,
    }
  })
}

/** Server-side calls of one turn, and of one response. */
const MOST_CALLS_OF_TURN = 64
const MOST_CALLS = 256

const OVER_LIMIT =
  'The limit of tool calls (max_tool_calls, or that of the service) is reached. Answer without further calls.'

/** The usage of the ended turns: `max_output_tokens` limits neither summaries of compactions nor what was lost. */
export const turnUsage = ({ usage, otherOutput = 0 }: Progress): Usage | null =>
  usage && { ...usage, output: Math.max(0, usage.output - otherOutput) }

/** Tokens that a response may still generate; null without a limit. */
const outputLeft = (limit: number | null, usage: Usage | null): number | null =>
  limit === null ? null : Math.max(0, limit - (usage?.output ?? 0))

/** The settings of a further turn: `max_output_tokens` limits all turns together, and a call is forced only once. */
export function nextTurnSettings(settings: ResponseSettings, usage: Usage | null): ResponseSettings {
  const left = outputLeft(settings.max_output_tokens ?? null, usage)
  return {
    ...settings,
    ...(left !== null && { max_output_tokens: left }),
    tool_choice: unforced(settings.tool_choice),
  }
}

const ending = (end: ResponseEnd): TurnDecision => ({ kind: 'end', end })

/** The same choice of tools, without the obligation to call one. */
function unforced(choice: ResponseSettings['tool_choice']): ResponseSettings['tool_choice'] {
  if (choice === 'required') return 'auto'
  if (typeof choice !== 'object' || choice === null) return choice
  return choice.type === 'allowed_tools' ? { ...choice, mode: 'auto' } : 'auto'
}
