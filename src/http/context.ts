import type { Context } from 'hono'
import type { Deps } from '../deps.ts'
import type { Bindings } from '../env.ts'
import type { CallRecord } from '../gateway/call-record.ts'
import type { Administrator, Principal } from '../governance/principal.ts'
import type { HostKind, Surface } from './surfaces.ts'

/** Each context value, who sets it, and who may read it. */
export interface AppEnv {
  Bindings: Bindings
  Variables: {
    /** middleware/request-context; everybody. */
    deps: Deps
    /** middleware/request-context; sent as `x-request-id` on every answer. */
    requestId: string
    /** middleware/request-context, milliseconds since the epoch; audit and the gateway. */
    startedAt: number
    /** middleware/request-context, from the path; error rendering, audit, authentication. */
    surface: Surface
    /** middleware/request-context; authentication. */
    host: HostKind
    /** middleware/audit begins it; the gateway and error rendering add to it. */
    call: CallRecord
    /** middleware/authenticate; middleware/rate-limit. Never logged, never stored. */
    presentedKey: string
    /** middleware/authenticate, confirmed by middleware/rate-limit; routes under /v1. */
    principal: Principal
    /** middleware/authenticate and rate-limit: whose key was refused, when its row exists; middleware/audit. */
    refusedKeyOrganizationId: string | undefined
    /** middleware/administer; routes under /api. */
    administrator: Administrator
    /** middleware/rate-limit; routes that read the catalogue. */
    catalogueEpoch: number
    /** middleware/audit and http/errors: how the call failed, for the audit record. */
    errorCode: string | null
  }
}

export type AppContext = Context<AppEnv>
