import type { CallerRights, CallIdentity, GovernedCall } from '../../calls/governed-call.ts'
import type { CallPolicy } from '../../dlp/policy/call-policy.ts'
import type { Principal } from '../../identity/principal.ts'
import type { CallOutcome } from '../../ledger/audit-record.ts'
import type { RateLimit } from '../../ledger/contract.ts'
import type { ByteEdit } from '../../lib/byte-edits.ts'
import type { InspectionCounts } from '../../wire/records.ts'
import type { Route } from '../catalogue/call-routes.ts'
import type { CatalogueModel } from '../catalogue/model-catalogue.ts'
import type { Operation } from '../protocols/operations.ts'
import type { OwnTools } from '../protocols/own-tools.ts'
import type { RequestOutline } from '../protocols/request-outline.ts'
import type { ChargeBasis } from './charges.ts'
import type { RouteRequest } from './route-request.ts'

// The states of a model call, as values: requested, planned, admitted, sent.

/** The request of a caller to a model. */
export interface ModelRequest {
  operation: Operation
  body: Uint8Array
  /** Tools of this service in the body. */
  own?: OwnTools | undefined
  /** The caller's headers. */
  headers: Headers
  identity: CallIdentity
  principal: Principal
  /** Whether the call counts against the limits: false for a further turn of a response. */
  counted: boolean
  /** `CallRequest.creditsLeft`. */
  creditsLeft?: number | undefined
  /** False for a call that is decided and recorded, and that no model gets: it costs nothing. */
  isSent?: boolean
}

/** A request that may be sent once the ledger admits it: read, allowed, inspected, its cost bounded. */
export interface PlannedCall {
  request: ModelRequest
  rights: CallerRights
  outline: RequestOutline
  model: CatalogueModel
  /** The routes that can answer it; none only where the gateway answers by itself. */
  routes: readonly Route[]
  policy: CallPolicy
  inspected: InspectedRequest
  /** The request for the first route that can express it; null where there is no route. */
  firstRequest: RouteRequest | null
  basis: ChargeBasis
}

/** The result of the inspection of a request. */
export interface InspectedRequest {
  edits: ByteEdit[]
  /** Blocks of thinking that were changed, as `<message>.<block>`. */
  changedThinking: ReadonlySet<string>
  counts: InspectionCounts
}

/** A planned call that the ledger holds open. */
export interface AdmittedCall {
  kind: 'admitted'
  planned: PlannedCall
  call: GovernedCall
  /** Rate limit of the caller after this call; absent for a call that is not counted. */
  rateLimit?: RateLimit | undefined
}

/** An answer for the caller: the upstream's own, with the permitted edits, or a translation of it. */
export interface ModelAnswer {
  status: number
  /** Values by name in lower case. */
  headers: Record<string, string>
  body: Uint8Array | ReadableStream<Uint8Array>
}

/**
 * A call that was sent. `outcome` settles it; of a stream it resolves at the end. It never rejects. `sending`: the answer
 * began before an upstream answered; the body of the request is in use until this resolves.
 */
export type SentCall =
  | { kind: 'answered'; answer: ModelAnswer; outcome: Promise<CallOutcome>; sending?: Promise<unknown> }
  | { kind: 'failed'; error: Error; outcome: Promise<CallOutcome> }
