import { drained } from '../../../src/lib/slices.ts'
import { readResponseRequest } from '../../../src/responses/context/load-request.ts'
import { type InputItem, readItem } from '../../../src/responses/items/input-items.ts'
import type { SealOpener } from '../../../src/responses/items/sealed-content.ts'

const encoder = new TextEncoder()
const decoder = new TextDecoder()

export const bytesOf = (value: unknown): Uint8Array =>
  encoder.encode(typeof value === 'string' ? value : JSON.stringify(value))

export const parsed = (bytes: Uint8Array): Record<string, unknown> => JSON.parse(decoder.decode(bytes))

/** @param body an object, or a text as it is. */
export const requestOf = (body: unknown) => drained(readResponseRequest(bytesOf(body)))

/** A whole item, not a reference. */
export function itemOf(value: unknown): Exclude<InputItem, { reference: string }> {
  const item = drained(readItem(bytesOf(value), 'input[0]'))
  if ('reference' in item) throw new Error('a reference')
  return item
}

export const message = (role: string, content: unknown) => itemOf({ role, content })
export const call = (callId: string, more: object = {}) =>
  itemOf({ type: 'function_call', call_id: callId, name: 'look', arguments: '{}', ...more })
export const output = (callId: string, text = 'done') =>
  itemOf({ type: 'function_call_output', call_id: callId, output: text })

/** The message of what is thrown. */
export function refusal(work: () => unknown): string {
  try {
    work()
  } catch (error) {
    const { status, code, message } = error as { status?: number; code?: string; message: string }
    return `${status} ${code} ${message}`
  }
  return 'nothing was thrown'
}

/** Opens no sealed content. */
export const NOTHING_OPENS: SealOpener = { reasoning: () => null, compaction: () => null }
