import type { ApiError } from '../../lib/api-error.ts'
import type { Json } from '../protocols/json.ts'

/** Why a stream ended before its answer was complete. */
export type FailureReason = 'empty' | 'cut' | 'timeout' | 'error'

/** The end of a stream on the side of its upstream. */
export type PipelineEnd<Unit> =
  | { kind: 'completed' }
  | {
      kind: 'failed'
      reason: FailureReason
      message: string
      /** The upstream's own units for the failure; absent where the caller's dialect has to express it. */
      failureUnits?: Unit[]
      /** The gateway itself ended the stream. */
      error?: ApiError
      /** The upstream's error as the body of an answer, edited. */
      body?: Json
    }

/** Facts about a failure besides its reason and message. */
export interface FailureDetails<Unit> {
  failureUnits?: Unit[] | undefined
  error?: ApiError | undefined
  body?: Json | undefined
}
