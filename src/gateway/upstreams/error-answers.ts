import { ApiError } from '../../lib/api-error.ts'
import type { PlannedCall } from '../calls/model-call.ts'
import { OPERATIONS } from '../protocols/operations.ts'
import { isTokenRefusal } from '../providers/send-to-provider.ts'
import { isRefusalStatus, isRouteFault, refusesGateway } from '../translation/upstream-errors.ts'

/** Error answers of upstreams: after which another route is tried, and which of them the caller receives. */

export type ErrorAnswer =
  /** The error answer of an upstream. */
  | { kind: 'upstream_error'; response: Response; body: Uint8Array }
  /** An error of the gateway. */
  | { kind: 'failed'; error: unknown }

/** Time-outs, conflicts and limits of the upstream, which official SDKs repeat as well, and models that failed (AWS). */
const PASSING = new Set([408, 409, 424, 429])

/**
 * A provider that refuses the gateway itself, or does not have the model, is no evidence about the others.
 * @param body once it has been read.
 */
export const movesOn = (status: number, body: Uint8Array = NO_BODY): boolean =>
  isRefusalStatus(status) || PASSING.has(status) || status >= 500 || isRouteFault(status, body)

const NO_BODY = new Uint8Array()

/** Whether an error of this status may request a wait in its body. */
export const hasWait = (status: number): boolean => status === 429 || status >= 500

/** The order of errors for the caller: when to come back, then a fault of the upstream, then one of the gateway. */
export function usefulness(status: number): number {
  if (status === 429) return 2
  return isRefusalStatus(status) || status === 404 ? 0 : 1
}

/**
 * The error answer of an upstream for the caller. A provider that refuses the gateway is a fault of the gateway on surfaces
 * with errors of their own, and a refused exchange of a credential on all of them: the provider sent no error.
 */
export function errorAnswer({ request }: PlannedCall, response: Response, body: Uint8Array): ErrorAnswer {
  const { status } = response
  const { ownErrorEnvelope } = OPERATIONS[request.operation]
  const isRefused = ownErrorEnvelope && refusesGateway(status, body)
  if (!isRefused && !isTokenRefusal(response)) return { kind: 'upstream_error', response, body }
  const message =
    `The provider of this model refused the gateway (status ${status}). Your API key is not the cause: the operator of ` +
    'the gateway has to renew its credential or account at the provider.'
  // Interface, Errors: chat completions have one code for faults of the gateway.
  const code = ownErrorEnvelope ? { code: 'provider_refused_gateway' } : {}
  const error = new ApiError('internal', message, { ...code, shouldRetry: false })
  return { kind: 'failed', error }
}
