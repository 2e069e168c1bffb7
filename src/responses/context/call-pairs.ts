import { invalidRequest } from '../../lib/api-error.ts'
import { decodeString, scanJson } from '../../lib/json-scan.ts'
import { answerOf, CALL_OF_OUTPUT } from '../item-types/item-types.ts'
import type { ContextItem } from '../types.ts'

/** Whether the caller answers an item. */
export const isCall = ({ type }: Pick<ContextItem, 'type'>): boolean => answerOf(type) !== null
/** Whether an item answers a call. */
export const isOutput = ({ type }: Pick<ContextItem, 'type'>): boolean => CALL_OF_OUTPUT.has(type)

/**
 * Which output answers which call, by index. An output answers the last unanswered call before it that has its
 * `call_id`: some providers number the calls of every answer anew.
 */
export function callPairs(items: readonly ContextItem[]): Map<number, number> {
  const waiting = new Map<string, number[]>()
  const pairs = new Map<number, number>()
  for (const [index, { type, callId }] of items.entries()) {
    const outputType = answerOf(type)?.type
    if (outputType !== undefined) {
      const key = `${outputType} ${callId}`
      const calls = waiting.get(key) ?? []
      calls.push(index)
      waiting.set(key, calls)
    } else if (isOutput({ type })) {
      const call = waiting.get(`${type} ${callId}`)?.pop()
      if (call === undefined) continue
      pairs.set(call, index)
      pairs.set(index, call)
    }
  }
  return pairs
}

/**
 * The items without stored calls and outputs whose partner is gone, because it was erased. A call that waits for its
 * output now is not one of them.
 *
 * @param stored how many items, from the first on, were stored before.
 * @throws ApiError invalid_request, in OpenAI's words, which clients look for.
 */
export function pairedItems(items: readonly ContextItem[], stored: number): ContextItem[] {
  const pairs = callPairs(items)
  const waitingFrom = Math.min(lastTurnStart(items, stored), items.length)
  return items.filter((item, index) => {
    const calls = isCall(item)
    if ((!calls && !isOutput(item)) || pairs.has(index)) return true
    if (index < (calls ? waitingFrom : stored) || (index < stored && wasCutOff(item))) return false
    throw invalidRequest(calls ? missingOutput(item) : missingCall(item))
  })
}

/** Where what the model said last begins: after the last stored item that it was told. */
function lastTurnStart(items: readonly ContextItem[], stored: number): number {
  for (let index = stored - 1; index >= 0; index--) {
    const item = items[index] as ContextItem
    if (isOutput(item) || (item.role !== null && item.role !== 'assistant')) return index + 1
  }
  return 0
}

/** A call whose response ended in the middle of it: nobody can answer it. */
function wasCutOff({ bytes }: ContextItem): boolean {
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
