import type { ResponseSettings } from '../../wire/responses.ts'
import { ITEM_TYPES } from '../item-types/item-types.ts'
import type { ContextItem } from '../types.ts'
import { callPairs, isOutput } from './call-pairs.ts'
import type { TokenEstimate } from './context-tokens.ts'

/** Of a model, in tokens. */
export interface ContextLimits {
  contextWindow: number
  maxOutput: number
}

/**
 * What of a context fits a model, for `truncation: 'auto'`: the oldest items go until the estimate fits. Instructions
 * stay, what the user said last stays, and so do the outputs at the end with their calls; a call never goes without its
 * output. After a cut the conversation begins with the user again. What still does not fit is the upstream's to refuse.
 *
 * @returns the items in their order; all of them for `truncation: 'disabled'`, which is what nothing said means.
 */
export function fitContext(
  items: readonly ContextItem[],
  settings: ResponseSettings,
  { contextWindow, maxOutput }: ContextLimits,
  countTokens: TokenEstimate,
): ContextItem[] {
  if (settings.truncation !== 'auto') return [...items]
  const answer = Math.min(settings.max_output_tokens ?? maxOutput, Math.floor(contextWindow / 2))
  const { instructions, tools, text } = settings
  const told = encoder.encode(JSON.stringify([instructions, tools, text]))
  // Names and punctuation of schemas are told too.
  let left = contextWindow - answer - Math.ceil(told.length / BYTES_PER_TOKEN) - countTokens(told)
  const units = unitsOf(items)
  const tokensOf = (unit: Unit) =>
    unit.items.reduce((sum, index) => sum + countTokens((items[index] as ContextItem).bytes), 0)
  const kept = new Set<Unit>()
  for (const unit of units.filter(({ stays }) => stays)) {
    left -= tokensOf(unit)
    kept.add(unit)
  }
  // The newest first: what no longer fits need not be counted.
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

/** Items that go together: reasoning with what it led to, a call with its output. */
interface Unit {
  /** Indexes, in order. */
  items: number[]
  stays: boolean
}

/** In the order of their first items. */
function unitsOf(items: readonly ContextItem[]): Unit[] {
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
  // Outputs of one turn stand together at the end, after their calls.
  for (let index = items.length - 1; index >= 0 && isOutput(items[index] as ContextItem); index--) {
    staying.add(index)
    staying.add(pairs.get(index) ?? index)
  }
  return staying
}

/** What a model said without what it was asked goes as well: not all providers let it begin a conversation. */
function dropBeforeUser(units: readonly Unit[], kept: Set<Unit>, items: readonly ContextItem[]): void {
  for (const unit of units.filter((each) => kept.has(each))) {
    if (unit.items.some((index) => items[index]?.role === 'user')) return
    if (!unit.stays) kept.delete(unit)
  }
}

const BYTES_PER_TOKEN = 4
const encoder = new TextEncoder()
