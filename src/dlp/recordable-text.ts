import { ApiError } from '../lib/api-error.ts'
import { joinBytes } from '../lib/byte-edits.ts'
import type { Slices } from '../lib/slices.ts'
import { inspectJson } from './json-inspection.ts'
import { DLP_BLOCKED } from './policy/actions.ts'
import type { CallPolicy } from './policy/call-policy.ts'

/** Replacement of a text that may not be recorded. */
const WITHHELD = '[withheld]'

/** A text that a caller chose as a record or an error may have it, such as the name of a model that is not there. */
export function* recordableText(policy: CallPolicy, text: string): Slices<string> {
  const source = encoder.encode(JSON.stringify(text))
  try {
    const { pieces } = yield* inspectJson(policy.requestInspection(), source, 'request')
    return JSON.parse(decoder.decode(joinBytes(pieces))) as string
  } catch (error) {
    if (error instanceof ApiError && error.code === DLP_BLOCKED) return WITHHELD
    throw error
  }
}

const encoder = new TextEncoder()
const decoder = new TextDecoder()
