import type { Context } from 'hono'
import type { Deps } from '../deps.ts'
import type { Bindings } from '../env.ts'
import type { Administrator, Principal } from '../governance/principal.ts'
import type { Surface } from './surfaces.ts'

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
    /** middleware/request-context, from the route table; error rendering, audit, authentication. */
    surface: Surface
    /** middleware/authenticate; routes under /v1. */
    principal: Principal
    /** middleware/administer; routes under /api. */
    administrator: Administrator
    /** middleware/rate-limit: what the limiter knew, for the audit record and the model list. */
    limits: { degraded: boolean; catalogueEpoch: number | null }
  }
}

export type AppContext = Context<AppEnv>
