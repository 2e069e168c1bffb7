import { entryOf, isPresent, type Json, numberOf, objectOf, present, textOf } from '../../protocols/json.ts'
import { can, type TargetModel } from '../target-model.ts'

/** Tokens of thinking for each effort, where a model takes a budget. */
export const BUDGETS: Record<string, number> = {
  minimal: 1_024,
  low: 2_048,
  medium: 8_192,
  high: 24_576,
  xhigh: 32_768,
  max: 32_768,
}
/** The least budget that the vendor accepts; a budget has to stay below `max_tokens`, with room for the answer. */
const LEAST_BUDGET = 1_024
export const LEAST_ANSWER = 1_024

/**
 * Efforts of chat completions on models that think adaptively: some of them lack `xhigh`
 * (https://platform.claude.com/docs/en/build-with-claude/effort). Some refuse to have thinking disabled, so `none` is
 * the least effort.
 */
const EFFORTS: Record<string, string> = {
  none: 'low',
  minimal: 'low',
  low: 'low',
  medium: 'medium',
  high: 'high',
  xhigh: 'high',
  max: 'max',
}

interface ThinkingMembers {
  thinking: Json | undefined
  effort: string | undefined
  /** Whether sampling members may stand beside it. */
  samples: boolean
}

/** Properties of a request with which the vendor does not allow thinking. */
interface ThinkingObstacles {
  /** `tool_choice` demands a call, or the answer continues the assistant's text. */
  forced: boolean
  /** The turn has called tools before, and its thinking blocks are not there to be sent along. */
  withinToolTurn: boolean
}

/**
 * `reasoning_effort`, or a `thinking` member sent as the messages protocol has it, for a model of that protocol.
 * Thinking only tunes: where the vendor does not allow it, it is left out.
 * @param maxTokens of the request, thinking included.
 */
export function thinkingOfChat(
  request: Json,
  target: TargetModel,
  maxTokens: number,
  obstacles: ThinkingObstacles,
): ThinkingMembers {
  if (can(target, 'adaptive_thinking')) return adaptiveThinking(request, obstacles)
  const budget = can(target, 'reasoning') ? budgetOfChat(request) : 0
  const affordable = Math.min(budget, maxTokens - LEAST_ANSWER)
  if (affordable < LEAST_BUDGET || obstacles.forced || obstacles.withinToolTurn) {
    return { thinking: undefined, effort: undefined, samples: true }
  }
  return { thinking: { type: 'enabled', budget_tokens: affordable }, effort: undefined, samples: false }
}

function adaptiveThinking(request: Json, { forced }: ThinkingObstacles): ThinkingMembers {
  const requested = effortOfChat(request)
  const effort = entryOf(EFFORTS, requested)
  const given = objectOf(request.thinking)
  const isRequested = effort !== undefined || isPresent(given.type)
  const thinks = isRequested && requested !== 'none' && !forced
  return {
    thinking: thinks ? present({ type: 'adaptive', display: given.display }) : undefined,
    effort,
    samples: false,
  }
}

/** The effort of a chat request; empty when it has none. */
export function effortOfChat(request: Json): string {
  const thinking = objectOf(request.thinking)
  if (thinking.type === 'disabled') return 'none'
  const effort = textOf(request.reasoning_effort)
  if (effort !== '' || thinking.type !== 'enabled') return effort
  return effortOfBudget(thinking.budget_tokens)
}

/** The most tokens of thinking that translation gives a chat request on a model that takes a budget; 0 for none. */
export function budgetOfChat(request: Json): number {
  const thinking = objectOf(request.thinking)
  if (thinking.type === 'enabled') return numberOf(thinking.budget_tokens) ?? 0
  const effort = effortOfChat(request) || (thinking.type === 'adaptive' ? 'medium' : '')
  return entryOf(BUDGETS, effort) ?? 0
}

function effortOfBudget(budget: unknown): string {
  const tokens = numberOf(budget) ?? Number.POSITIVE_INFINITY
  if (tokens <= 2_048) return 'low'
  return tokens <= 8_192 ? 'medium' : 'high'
}

/** The efforts that every chat model that reasons supports (https://platform.openai.com/docs/guides/reasoning). */
const CHAT_EFFORTS: Record<string, string> = {
  low: 'low',
  medium: 'medium',
  high: 'high',
  xhigh: 'high',
  max: 'high',
}

/**
 * Members that only tune and that chat models refuse while they reason
 * (https://platform.openai.com/docs/guides/reasoning, https://docs.x.ai/docs/guides/reasoning). `stop` is none of them:
 * its loss would change the answer, and some models that reason take it, so it is passed on.
 */
const REFUSED_BY_REASONING = new Set([
  'temperature',
  'top_p',
  'presence_penalty',
  'frequency_penalty',
  'logit_bias',
])

/** @returns those of the given members that a chat model takes. */
export const samplingFor = (members: Json, target: TargetModel): Json =>
  can(target, 'reasoning')
    ? Object.fromEntries(Object.entries(members).filter(([name]) => !REFUSED_BY_REASONING.has(name)))
    : members

/** The lowest effort of a chat model that reasons; all of them support `low`. */
export const leastEffort = (target: TargetModel): 'none' | 'low' =>
  can(target, 'tools_without_reasoning') ? 'none' : 'low'

/** `thinking` and `output_config.effort` of the messages protocol as an effort of chat completions. */
export function effortOfMessages(request: Json): string | undefined {
  const thinking = objectOf(request.thinking)
  const effort = textOf(objectOf(request.output_config).effort)
  if (thinking.type === 'disabled') return 'low'
  const budgeted = thinking.type === 'enabled' ? effortOfBudget(thinking.budget_tokens) : undefined
  return entryOf(CHAT_EFFORTS, effort) ?? budgeted
}
