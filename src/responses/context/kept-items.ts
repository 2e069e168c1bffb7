import type { CompactionSecret } from '../items/compaction-seal.ts'
import { type SealOpener, sealedText } from '../items/sealed-content.ts'
import { ITEM_TYPES } from '../items/types/item-types.ts'
import type { ContextItem } from '../model/types.ts'
import { callPairs, isCall, isOutput, wasCutOff } from './call-pairs.ts'

/** The items before a compaction that it keeps verbatim. */
export type KeptItems = Pick<CompactionSecret, 'calls' | 'userBytes'>

const isInstruction = ({ role }: ContextItem): boolean => role === 'system' || role === 'developer'

/**
 * The context from its latest compaction on: its summary in place of the summarized items, then the messages and calls that it
 * keeps. Instructions keep their places before it. An item that cannot be opened is ignored: the items before it are used
 * unchanged.
 */
export function fromLatestCompaction(items: readonly ContextItem[], open: SealOpener): ContextItem[] {
  const index = items.findLastIndex((item) => secretOf(item, open)?.summary)
  const compaction = items[index]
  const secret = compaction && secretOf(compaction, open)
  if (!compaction || !secret) return [...items]
  const before = items.slice(0, index)
  const kept = new Set([...keptCalls(before, secret.calls), ...keptMessages(before, secret.userBytes)])
  return [
    ...before.filter(isInstruction),
    compaction,
    ...before.filter((_, at) => kept.has(at)),
    ...items.slice(index + 1),
  ]
}

/** The secret of a compaction item; null for other items, and for one that cannot be opened. */
export function secretOf({ type, bytes }: ContextItem, open: SealOpener): CompactionSecret | null {
  if (type !== 'compaction') return null
  const sealed = sealedText(bytes)
  return sealed === null ? null : open.compaction(sealed)
}

/** The instructions and messages that a compaction keeps. The calls that it keeps are `pendingItems`. */
export function keptItems(items: readonly ContextItem[], { calls, userBytes }: KeptItems): ContextItem[] {
  const pending = new Set(keptCalls(items, calls))
  const kept = new Set(keptMessages(items, userBytes))
  return items.filter((item, index) => !pending.has(index) && (kept.has(index) || isInstruction(item)))
}

/** The calls that the model has not continued after, with their outputs and the reasoning before them. */
export function pendingItems(items: readonly ContextItem[], calls: readonly string[]): ContextItem[] {
  const pending = new Set(keptCalls(items, calls))
  return items.filter((_, index) => pending.has(index))
}

/** The items that a compaction replaces: all but instructions and those that it keeps. */
export function replacedItems(items: readonly ContextItem[], { calls, userBytes }: KeptItems): ContextItem[] {
  const kept = new Set([...keptCalls(items, calls), ...keptMessages(items, userBytes)])
  return items.filter((item, index) => !kept.has(index) && !isInstruction(item))
}

/**
 * The items that a model has to read for a summary: all but instructions, which stay, and the calls that it has not
 * continued after. The user's messages that are kept are part of them, since answers make no sense without them.
 */
export function summarizedItems(items: readonly ContextItem[], calls: readonly string[]): ContextItem[] {
  const kept = new Set(keptCalls(items, calls))
  return items.filter((item, index) => !kept.has(index) && !isInstruction(item))
}

/** The indexes of the last messages of the user, and of those before them up to a number of bytes, the newest first. */
function keptMessages(items: readonly ContextItem[], bytes: number): number[] {
  const messages = items.flatMap(({ role }, index) => (role === 'user' ? [index] : []))
  const kept: number[] = []
  let left = bytes
  for (const index of messages.reverse()) {
    left -= items[index]?.bytes.length ?? 0
    // The last ones directly follow each other, and stay whatever their size is.
    const isLast = kept.every((other, at) => other === index + kept.length - at)
    if (left < 0 && !isLast) break
    kept.push(index)
  }
  return kept
}

/**
 * The indexes of the latest calls with these ids, of their outputs, and of the reasoning before them. Some providers reuse
 * ids in every answer, so that earlier calls can have the same ones.
 */
function keptCalls(items: readonly ContextItem[], ids: readonly string[]): number[] {
  const wanted = new Set(ids)
  const kept: number[] = []
  for (let index = items.length - 1; index >= 0; index--) {
    const item = items[index] as ContextItem
    const precedes = ITEM_TYPES.get(item.type)?.precedes === true && kept.at(-1) === index + 1
    if (!precedes && (item.callId === null || !wanted.has(item.callId))) continue
    kept.push(index)
    if (item.callId !== null && !isOutput(item)) wanted.delete(item.callId)
  }
  return kept
}

/**
 * The ids of the calls that the model has not continued after: those of its last step without an output, and those whose
 * outputs end the context.
 * @param lastTurn items that the model generated last, with the results of their calls.
 */
export function pendingCalls(items: readonly ContextItem[], lastTurn: readonly ContextItem[]): string[] {
  const pairs = callPairs(items)
  const step = items.findLastIndex(({ role }) => role !== null && role !== 'assistant')
  const open = items.filter(
    (item, index) => index > step && isCall(item) && !pairs.has(index) && !wasCutOff(item),
  )
  const trailing = items.slice(items.findLastIndex((item) => !isOutput(item)) + 1)
  const ids = [...open, ...trailing, ...lastTurn].flatMap(({ callId }) => (callId === null ? [] : [callId]))
  return [...new Set(ids)]
}
