import type { CatalogueModel } from '../../gateway/catalogue/model-catalogue.ts'
import type { ResponseSettings } from '../../wire/responses.ts'
import { contextRoom, unitsOf } from '../context/context-limit.ts'
import type { TokenEstimate } from '../context/context-tokens.ts'
import { type KeptItems, pendingCalls, replacedItems, summarizedItems } from '../context/kept-items.ts'
import type { ContextItem } from '../model/types.ts'
import { shortenedItem } from './shortened-item.ts'
import { SUMMARY_PROMPT } from './summary-prompt.ts'

/** A compaction that is to be made. */
export interface CompactionPlan {
  /** The items that each call of a model summarizes, in order. Each call continues the summary of the one before. */
  parts: ContextItem[][]
  kept: KeptItems
  /** The most output tokens of a summary. */
  outputTokens: number
  /** Whether the response ends after the compaction. */
  ends: boolean
}

/** The context that a plan is made for. */
export interface CompactedContext {
  items: readonly ContextItem[]
  /** Items that the model generated last, with the results of their calls. */
  lastTurn?: readonly ContextItem[]
}

type ModelLimits = Pick<CatalogueModel, 'contextWindow' | 'maxOutputTokens'>

/** Tokens up to which a summary would not be shorter than what it replaces. */
const LEAST_REPLACED_TOKENS = 1_000
const MOST_SUMMARY_TOKENS = 8_192
const MOST_USER_BYTES = 64 * 1024
/** A token is seldom less than two bytes of JSON; the estimate decides. */
const BYTES_PER_TOKEN = 2
/** A context is compacted at this part of its room if the request has no threshold. */
const DEFAULT_THRESHOLD = 0.8

/** Whether a summary would be shorter than what it replaces. */
export const isWorthwhile = (
  { items }: CompactedContext,
  { kept }: CompactionPlan,
  countTokens: TokenEstimate,
): boolean => sumOf(replacedItems(items, kept), countTokens) > LEAST_REPLACED_TOKENS

/** Plans a compaction of a context of any length. */
export function forcedPlan(
  { items, lastTurn = [] }: CompactedContext,
  settings: ResponseSettings,
  { contextWindow, maxOutputTokens }: ModelLimits,
  countTokens: TokenEstimate,
): CompactionPlan {
  const outputTokens = Math.min(maxOutputTokens, MOST_SUMMARY_TOKENS, Math.floor(contextWindow / 4))
  const kept = {
    calls: pendingCalls(items, lastTurn),
    userBytes: Math.min(MOST_USER_BYTES, Math.floor(contextWindow / 2)),
  }
  const prompt = encoder.encode(JSON.stringify([SUMMARY_PROMPT, settings.instructions ?? '']))
  // Each part is read with the prompt and the summary so far.
  const left = contextWindow - 2 * outputTokens - 2 * countTokens(prompt)
  const budget = Math.max(left, Math.floor(contextWindow / 8))
  const parts = partsOf(summarizedItems(items, kept.calls), budget, countTokens)
  return { parts, kept, outputTokens, ends: false }
}

/**
 * Plans the compaction that `context_management` requests.
 * @returns null while the context is below the threshold, and when a summary would not be shorter.
 */
export function planAutomaticCompaction(
  context: CompactedContext,
  settings: ResponseSettings,
  model: ModelLimits,
  countTokens: TokenEstimate,
): CompactionPlan | null {
  const [entry] = settings.context_management ?? []
  if (!entry) return null
  const room = contextRoom(settings, model, countTokens)
  const threshold = Math.min(entry.compact_threshold ?? Math.floor(room * DEFAULT_THRESHOLD), room)
  if (sumOf(context.items, countTokens) <= threshold) return null
  const plan = forcedPlan(context, settings, model, countTokens)
  return isWorthwhile(context, plan, countTokens) ? plan : null
}

/** Splits items where no call is separated from its output. Items that are longer than a part are shortened. */
function partsOf(items: ContextItem[], budget: number, countTokens: TokenEstimate): ContextItem[][] {
  const parts: ContextItem[][] = [[]]
  let left = budget
  for (const unit of unitsOf(items)) {
    let members = unit.items.map((index) => items[index] as ContextItem)
    let tokens = sumOf(members, countTokens)
    if (tokens > budget) {
      const most = Math.floor(budget / members.length)
      members = members.map((item) => fittingItem(item, most, countTokens))
      tokens = sumOf(members, countTokens)
    }
    if (tokens > left && (parts.at(-1) ?? []).length > 0) {
      parts.push([])
      left = budget
    }
    parts.at(-1)?.push(...members)
    left -= tokens
  }
  return parts
}

function fittingItem(item: ContextItem, tokens: number, countTokens: TokenEstimate): ContextItem {
  let fitting = item
  for (let bytes = tokens * BYTES_PER_TOKEN; countTokens(fitting.bytes) > tokens && bytes > 0; ) {
    fitting = shortenedItem(item, bytes)
    bytes = Math.floor(bytes / 2)
  }
  return fitting
}

const sumOf = (items: readonly ContextItem[], countTokens: TokenEstimate): number =>
  items.reduce((sum, { bytes }) => sum + countTokens(bytes), 0)

const encoder = new TextEncoder()
