import type { Usage } from '../../ledger/audit-record.ts'
import { ApiError } from '../../lib/api-error.ts'

/** An attempt without a usable answer. */
export interface UnusableAnswer {
  kind: 'unusable'
  /** Reason for the record of the attempt. */
  failure: string
  /** Usage that the upstream may charge despite the failure; null for nothing. */
  lost: Usage | null
  /** Sent if no other route answers. Another one is tried only after an error of the kind `upstream`. */
  error: ApiError
}

/** @param failure for the record of the attempt. @param lost what the upstream may charge all the same. */
export const unusable = (
  error: ApiError,
  failure = 'unusable_answer',
  lost: Usage | null = null,
): UnusableAnswer => ({ kind: 'unusable', failure, lost, error })

/** Interface, errors of chat completions: an upstream without a body is 502 `upstream_empty_body`. */
export const noAnswer = (message: string) =>
  new ApiError('upstream', message, { code: 'upstream_empty_body' })
