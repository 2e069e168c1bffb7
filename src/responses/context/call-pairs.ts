import { invalidRequest } from '../../lib/api-error.ts'
import { scanJson } from '../../lib/json-scan.ts'
import { decodeString } from '../../lib/json-string.ts'
import { answerOf, CALL_OF_OUTPUT } from '../items/types/item-types.ts'
import type { ContextItem } from '../model/types.ts'

/** Whether an item is a call that the caller executes. */
export const isCall = ({ type }: Pick<ContextItem, 'type'>): boolean => answerOf(type) !== null
/** Whether an item is the output of such a call. */
export const isOutput = ({ type }: Pick<ContextItem, 'type'>): boolean => CALL_OF_OUTPUT.has(type)

/**
 * The pairs of calls and outputs, by index in both directions. An output belongs to the last call before it that has its
 * `call_id` and no output yet: some providers reuse ids in every answer.
 */
export function callPairs(items: readonly ContextItem[]): Map<number, number> {
  const pending = new Map<string, number[]>()
  const pairs = new Map<number, number>()
  for (const [index, { type, callId }] of items.entries()) {
    const outputType = answerOf(type)?.type
    if (outputType !== undefined) {
      const key = `${outputType} ${callId}`
      const calls = pending.get(key) ?? []
      calls.push(index)
      pending.set(key, calls)
    } else if (isOutput({ type })) {
      const call = pending.get(`${type} ${callId}`)?.pop()
      if (call === undefined) continue
      pairs.set(call, index)
      pairs.set(index, call)
    }
  }
  return pairs
}

/**
 * The items without stored calls and outputs whose counterpart was deleted.
 * @param stored number of items, from the first on, that were stored before.
 * @throws ApiError invalid_request for a missing counterpart, in the words of the official API, which clients match. The
 *   calls of the last turn need their outputs in this request.
 */
export function pairedItems(items: readonly ContextItem[], stored: number): ContextItem[] {
  const pairs = callPairs(items)
  const pendingFrom = Math.min(lastTurnStart(items, stored), items.length)
  return items.filter((item, index) => {
    const calls = isCall(item)
    if ((!calls && !isOutput(item)) || pairs.has(index)) return true
    if (index < (calls ? pendingFrom : stored) || (index < stored && wasCutOff(item))) return false
    throw invalidRequest(calls ? missingOutput(item) : missingCall(item))
  })
}

/** The index of the model's last output: after the last stored item that was sent to it. */
function lastTurnStart(items: readonly ContextItem[], stored: number): number {
  for (let index = stored - 1; index >= 0; index--) {
    const item = items[index] as ContextItem
    if (isOutput(item) || (item.role !== null && item.role !== 'assistant')) return index + 1
  }
  return 0
}

/** Whether a response ended in the middle of a call, which therefore has no output. */
export function wasCutOff({ bytes }: ContextItem): boolean {
  let status = ''
  scanJson(bytes, {
    value(path, kind, start, end) {
      if (path[0] === 'status' && kind === 'string') status = decodeString(bytes, start + 1, end - 1)
    },
  })
  return status === 'incomplete' || status === 'in_progress'
}

const missingOutput = ({ type, callId }: ContextItem) =>
  `No tool output found for ${answerOf(type)?.callName} ${shown(callId)}.`

const missingCall = ({ type, callId }: ContextItem) =>
  `No tool call found for ${answerOf(CALL_OF_OUTPUT.get(type) ?? '')?.outputName} with call_id ${shown(callId)}.`

const shown = (callId: string | null) => (callId ?? '').slice(0, 100)
