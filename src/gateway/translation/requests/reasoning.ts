import { type Json, objectOf, textOf } from '../json.ts'
import type { TargetModel } from '../target-model.ts'

/** Tokens of thinking for each effort, where a model takes a budget. 1,024 is the least a provider accepts. */
const BUDGETS: Record<string, number> = {
  minimal: 1_024,
  low: 2_048,
  medium: 8_192,
  high: 24_576,
  xhigh: 32_768,
}
const LEAST_BUDGET = 1_024
/** Tokens that are left for the answer itself when a budget would take all of `max_tokens`. */
const ANSWER_SHARE = 1_024

export interface ThinkingRequest {
  thinking: unknown
  effort: string | undefined
  thinks: boolean
}

/** `reasoning_effort`, or a `thinking` member sent as it is, for a model of the messages protocol. */
export function thinkingOfChat(request: Json, target: TargetModel, maxTokens: number): ThinkingRequest {
  const given = objectOf(request.thinking)
  if (typeof given.type === 'string') {
    return { thinking: request.thinking, effort: undefined, thinks: given.type !== 'disabled' }
  }
  const effort = textOf(request.reasoning_effort)
  const budget = BUDGETS[effort]
  if (budget === undefined || !target.capabilities.includes('reasoning')) {
    return { thinking: undefined, effort: undefined, thinks: false }
  }
  if (target.capabilities.includes('adaptive_thinking')) {
    const told = effort === 'minimal' ? 'low' : effort === 'xhigh' ? 'max' : effort
    return { thinking: { type: 'adaptive' }, effort: told, thinks: true }
  }
  const affordable = Math.min(budget, maxTokens - ANSWER_SHARE)
  if (affordable < LEAST_BUDGET) return { thinking: undefined, effort: undefined, thinks: false }
  return { thinking: { type: 'enabled', budget_tokens: affordable }, effort: undefined, thinks: true }
}

/** Thinking of the messages protocol as an effort, for a model of chat completions that reasons. */
export function effortOfMessages(request: Json, target: TargetModel): string | undefined {
  const thinking = objectOf(request.thinking)
  if (!target.capabilities.includes('reasoning')) return undefined
  if (thinking.type === 'adaptive') {
    const effort = textOf(objectOf(request.output_config).effort)
    return effort === 'max' ? 'high' : effort || 'medium'
  }
  if (thinking.type !== 'enabled') return undefined
  const budget = Number(thinking.budget_tokens)
  if (budget <= (BUDGETS.low ?? 0)) return 'low'
  return budget <= (BUDGETS.medium ?? 0) ? 'medium' : 'high'
}
