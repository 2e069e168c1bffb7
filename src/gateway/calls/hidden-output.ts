/** Reasoning that a caller does not receive, or only in summary: its tokens are known only from the usage. */

import type { Route } from '../catalogue/call-routes.ts'
import type { CatalogueModel } from '../catalogue/model-catalogue.ts'
import type { RequestOutline } from '../protocols/request-outline.ts'
import { budgetOfChat } from '../translation/requests/reasoning.ts'

type Fields = RequestOutline['fields']

const member = (fields: Fields, name: string): Record<string, unknown> =>
  typeof fields[name] === 'object' && fields[name] !== null ? (fields[name] as Record<string, unknown>) : {}
const positive = (value: unknown): number => (typeof value === 'number' && value > 0 ? Math.ceil(value) : 0)

/** The budget of thinking tokens that a request gives, under any name; 0 for none. */
export const thinkingBudget = (fields: Fields): number =>
  Math.max(
    positive(member(fields, 'thinking').budget_tokens),
    positive(member(fields, 'reasoning').max_tokens),
    positive(fields.thinking_budget),
  )

/**
 * Most models of Gemini, and many of Bedrock, cannot be kept from thinking; levels and budgets are targets there, and only
 * the usage shows what they thought.
 */
const THINKING_PROTOCOLS: ReadonlySet<string> = new Set(['generate_content', 'converse'])

/**
 * The most tokens of hidden reasoning in a call: its budget, else all of its output; 0 for a call that does not reason.
 * @param outputTokens the most output of the call.
 */
export function hiddenOutputOf(
  { fields, choices }: RequestOutline,
  model: CatalogueModel,
  routes: readonly Route[],
  outputTokens: number,
): number {
  const thinksAnyway = routes.some(({ operation }) => THINKING_PROTOCOLS.has(operation))
  if (thinksAnyway && model.capabilities.includes('reasoning')) return outputTokens
  if (isOff(fields)) return 0
  const budget = thinkingBudget(fields) || translatedBudget(fields, model, routes)
  if (budget > 0) return Math.min(budget * choices, outputTokens)
  return isRequested(fields) || reasonsByItself(model, routes) ? outputTokens : 0
}

/**
 * The budget that translation makes of an effort, on every route; 0 where a provider reads the effort itself. Shares of the
 * output or budgets that vendors document for an effort are targets, which their models exceed.
 */
function translatedBudget(
  fields: Fields,
  { capabilities }: CatalogueModel,
  routes: readonly Route[],
): number {
  const takesBudget = capabilities.includes('reasoning') && !capabilities.includes('adaptive_thinking')
  const isTranslated = ({ translation }: Route) =>
    translation?.caller === 'chat_completions' && translation.upstream === 'messages'
  return takesBudget && routes.length > 0 && routes.every(isTranslated) ? budgetOfChat(fields) : 0
}

function isOff(fields: Fields): boolean {
  const reasoning = member(fields, 'reasoning')
  return (
    member(fields, 'thinking').type === 'disabled' ||
    fields.reasoning_effort === 'none' ||
    reasoning.effort === 'none' ||
    reasoning.enabled === false ||
    fields.enable_thinking === false
  )
}

const isRequested = (fields: Fields): boolean =>
  [fields.thinking, fields.reasoning_effort, fields.enable_thinking].some(Boolean) ||
  member(fields, 'reasoning').effort !== undefined ||
  member(fields, 'reasoning').enabled === true

/**
 * Whether a model reasons without being asked. Behind the messages protocol only the catalogue knows: some models think on
 * request only, others unless it is switched off. All others that reason do so by default.
 */
const reasonsByItself = ({ capabilities }: CatalogueModel, routes: readonly Route[]): boolean =>
  capabilities.includes('thinks_by_default') ||
  (capabilities.includes('reasoning') && routes.some(({ operation }) => operation !== 'messages'))
