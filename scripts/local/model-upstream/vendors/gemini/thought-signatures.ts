import { createHash } from 'node:crypto'
import { type JsonRecord, toList, toRecord } from '../../json-value.ts'

// Signatures of thoughts, as Gemini 3 gives and demands them: on the first call of a step, and only for that call.

/** Stands for a signature that the caller no longer has. */
const SKIPPED = 'skip_thought_signature_validator'

/** The signature of a call: it fits no other name or arguments. */
export const signatureOf = (name: unknown, args: unknown): string =>
  createHash('sha256')
    .update(JSON.stringify([name, args ?? {}]))
    .digest('base64')

/** @returns the message of the vendor for contents whose calls are not signed as it demands; null for others. */
export function signatureFault(contents: readonly JsonRecord[]): string | null {
  for (const [index, { role, parts }] of contents.entries()) {
    if (role !== 'model') continue
    const calls = toList(parts)
      .map(toRecord)
      .filter((part) => part.functionCall !== undefined)
    for (const [position, { functionCall, thoughtSignature }] of calls.entries()) {
      const { name, args } = toRecord(functionCall)
      if (position === 0 && thoughtSignature === undefined) {
        return `Function call is missing a thought_signature in functionCall parts. Function call \`${String(name)}\`, position ${index}.`
      }
      if (thoughtSignature === undefined || (thoughtSignature === SKIPPED && position === 0)) continue
      if (thoughtSignature !== signatureOf(name, args)) return 'Corrupted thought signature.'
    }
  }
  return null
}
