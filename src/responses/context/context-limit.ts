import type { CatalogueModel } from '../../gateway/catalogue/model-catalogue.ts'
import type { ResponseSettings } from '../../wire/responses.ts'
import { ITEM_TYPES } from '../items/types/item-types.ts'
import type { ContextItem } from '../model/types.ts'
import { callPairs, isOutput } from './call-pairs.ts'
import type { TokenEstimate } from './context-tokens.ts'

/**
 * Truncates a context for a model (`truncation: 'auto'`): drops the oldest items until the estimate fits. It keeps
 * instructions, the last messages of the user, and the outputs at the end with their calls. A call and its output are
 * dropped together. The truncated conversation begins with the user. If it still does not fit, the upstream refuses it.
 * @returns the items in their order; all of them unless `truncation` is `auto`.
 */
export function fitContext(
  items: readonly ContextItem[],
  settings: ResponseSettings,
  model: Pick<CatalogueModel, 'contextWindow' | 'maxOutputTokens'>,
  countTokens: TokenEstimate,
): ContextItem[] {
  if (settings.truncation !== 'auto') return [...items]
  let left = contextRoom(settings, model, countTokens)
  const units = unitsOf(items)
  const tokensOf = (unit: Unit) =>
    unit.items.reduce((sum, index) => sum + countTokens((items[index] as ContextItem).bytes), 0)
  const kept = new Set<Unit>()
  for (const unit of units.filter(({ stays }) => stays)) {
    left -= tokensOf(unit)
    kept.add(unit)
  }
  // The newest first: older units need not be counted once one does not fit.
  for (const unit of units.filter(({ stays }) => !stays).reverse()) {
    left -= tokensOf(unit)
    if (left < 0) break
    kept.add(unit)
  }
  if (kept.size === units.length) return [...items]
  dropBeforeUser(units, kept, items)
  const staying = new Set([...kept].flatMap((unit) => unit.items))
  return items.filter((_, index) => staying.has(index))
}

/** The tokens that a model has for the items of a context, besides the settings of a request and the answer. */
export function contextRoom(
  { instructions, tools, text, max_output_tokens }: ResponseSettings,
  { contextWindow, maxOutputTokens }: Pick<CatalogueModel, 'contextWindow' | 'maxOutputTokens'>,
  countTokens: TokenEstimate,
): number {
  const answer = Math.min(max_output_tokens ?? maxOutputTokens, Math.floor(contextWindow / 2))
  const json = encoder.encode(JSON.stringify([instructions, tools, text]))
  // The estimate counts strings only; models get the names and punctuation of schemas as well.
  return contextWindow - answer - Math.ceil(json.length / BYTES_PER_TOKEN) - countTokens(json)
}

/** Items that are kept or dropped together: reasoning with the item after it, a call with its output. */
interface Unit {
  /** Indexes, in order. */
  items: number[]
  stays: boolean
}

/** Groups items that are dropped together, in the order of their first items. */
export function unitsOf(items: readonly ContextItem[]): Unit[] {
  const pairs = callPairs(items)
  const staying = stayingItems(items, pairs)
  const units: Unit[] = []
  const unitOf = new Map<number, Unit>()
  let before: number[] = []
  for (const [index, item] of items.entries()) {
    if (ITEM_TYPES.get(item.type)?.precedes) {
      before.push(index)
      continue
    }
    const partner = pairs.get(index)
    const known = partner === undefined ? undefined : unitOf.get(partner)
    const unit = known ?? { items: [], stays: false }
    if (!known) units.push(unit)
    unit.items.push(...before, index)
    unit.stays ||= staying.has(index)
    unitOf.set(index, unit)
    before = []
  }
  if (before.length > 0) units.push({ items: before, stays: false })
  return units
}

function stayingItems(
  items: readonly ContextItem[],
  pairs: ReadonlyMap<number, number>,
): ReadonlySet<number> {
  const staying = new Set<number>()
  for (const [index, { role }] of items.entries()) {
    if (role === 'system' || role === 'developer') staying.add(index)
  }
  const lastUser = items.findLastIndex(({ role }) => role === 'user')
  for (let index = lastUser; items[index]?.role === 'user'; index--) staying.add(index)
  // Outputs of the last turn are at the end, after their calls.
  for (let index = items.length - 1; index >= 0 && isOutput(items[index] as ContextItem); index--) {
    staying.add(index)
    staying.add(pairs.get(index) ?? index)
  }
  return staying
}

/** Drops the model's items before the first message of the user: some providers refuse to begin with them. */
function dropBeforeUser(units: readonly Unit[], kept: Set<Unit>, items: readonly ContextItem[]): void {
  for (const unit of units.filter((each) => kept.has(each))) {
    if (unit.items.some((index) => items[index]?.role === 'user')) return
    if (!unit.stays) kept.delete(unit)
  }
}

const BYTES_PER_TOKEN = 4
const encoder = new TextEncoder()
