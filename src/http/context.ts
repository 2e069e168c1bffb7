import type { Context } from 'hono'
import type { IPv4, IPv6 } from 'ipaddr.js'
import type { CallerRights, CallIdentity } from '../calls/governed-call.ts'
import type { Deps } from '../deps.ts'
import type { Bindings } from '../env.ts'
import type { ManagementCaller } from '../identity/principal.ts'
import type { RateLimit } from '../ledger/contract.ts'
import type { HostKind, Surface } from './surfaces.ts'

/** Each context value, with the file that sets it and those that read it. */
export interface AppEnv {
  Bindings: Bindings
  Variables: {
    /** middleware/request-context; all. */
    deps: Deps
    /** middleware/request-context; sent as `x-request-id` on every answer. */
    requestId: string
    /** middleware/request-context, milliseconds since the epoch; audit and the gateway. */
    startedAt: number
    /** middleware/request-context, from the path; error rendering, audit, authentication. */
    surface: Surface
    /** middleware/request-context; authentication. */
    host: HostKind
    /** http/caller-address, when it is first needed; null without one. */
    address: CallerAddress | null | undefined
    /** Set by middleware/authenticate for audit and routes. Also set for a refused key whose row exists. */
    caller: KnownCaller
    /** middleware/authenticate, renewed by admissions; routes under /v1. */
    rights: CallerRights
    /** middleware/admission and routes that admit a call: the call has, or will have, a record in the ledger; middleware/audit. */
    isRecorded: boolean
    /** middleware/admission, middleware/audit and routes that admit a call: the caller's limits after it, where counted; http/rate-limit-headers. */
    rateLimit: RateLimit | null
    /** middleware/administer and middleware/visit; routes under /api. */
    managementCaller: ManagementCaller
    /** middleware/audit and http/errors: how the call failed, for the audit record. */
    errorCode: string | null
  }
}

/** The address of a caller, as it was sent and parsed. */
export interface CallerAddress {
  text: string
  parsed: IPv4 | IPv6
}

/** A call whose organization is known. */
interface KnownCaller {
  organizationId: string
  identity: CallIdentity
}

export type AppContext = Context<AppEnv>
