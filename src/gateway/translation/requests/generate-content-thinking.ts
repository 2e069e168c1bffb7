import { entryOf, type Json, present } from '../../protocols/json.ts'
import { can, type TargetModel } from '../target-model.ts'
import type { CanonicalReasoning } from './canonical-request.ts'
import { geminiModel, takesThinkingLevels } from './generate-content-models.ts'
import { BUDGETS, LEAST_ANSWER } from './reasoning.ts'

/** Levels of Gemini 3 and later (https://ai.google.dev/gemini-api/docs/thinking). Thinking cannot be switched off there. */
const LEVELS: Readonly<Record<string, string>> = {
  none: 'MINIMAL',
  minimal: 'MINIMAL',
  low: 'LOW',
  medium: 'MEDIUM',
  high: 'HIGH',
  xhigh: 'HIGH',
  max: 'HIGH',
}
/** Pro models have no `MINIMAL`, and the first of them has two levels only. */
const LEVELS_OF_PRO: Readonly<Record<string, string>> = { ...LEVELS, none: 'LOW', minimal: 'LOW' }
const LEVELS_OF_FIRST_PRO: Readonly<Record<string, string>> = { ...LEVELS_OF_PRO, medium: 'HIGH' }
const FIRST_LEVELS = 3

/** Least and largest budgets of Gemini 2.5, in tokens: only Flash models can be told not to think. */
const BUDGET_OF_PRO = { least: 128, most: 32_768 }
const BUDGET_OF_FLASH = { least: 0, most: 24_576 }

/**
 * `generationConfig.thinkingConfig`.
 * @param maxTokens of the request, thinking included: a budget leaves room for the answer.
 * @returns undefined for a model that does not reason, and where the caller leaves the effort to the model.
 */
export function thinkingConfig(
  { effort, budget, shows }: CanonicalReasoning,
  target: TargetModel,
  maxTokens: number | undefined,
): Json | undefined {
  if (!can(target, 'reasoning')) return undefined
  const model = geminiModel(target.upstreamModel)
  const isFirst = model.generation === FIRST_LEVELS
  const levels = model.isPro ? (isFirst ? LEVELS_OF_FIRST_PRO : LEVELS_OF_PRO) : LEVELS
  const amount = takesThinkingLevels(model)
    ? { thinkingLevel: entryOf(levels, effort ?? '') }
    : { thinkingBudget: budgetOf(effort, budget, model.isPro, maxTokens) }
  const config = present({ includeThoughts: shows ? true : undefined, ...amount })
  return Object.keys(config).length === 0 ? undefined : config
}

function budgetOf(
  effort: string | undefined,
  budget: number | undefined,
  isPro: boolean,
  maxTokens = Number.POSITIVE_INFINITY,
): number | undefined {
  const { least, most } = isPro ? BUDGET_OF_PRO : BUDGET_OF_FLASH
  const wanted = effort === 'none' ? 0 : (budget ?? entryOf(BUDGETS, effort ?? ''))
  if (wanted === undefined) return undefined
  return Math.max(least, Math.min(wanted, most, maxTokens - LEAST_ANSWER))
}
