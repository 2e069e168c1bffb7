import type { Next } from 'hono'
import { callerAddress } from '../caller-address.ts'
import type { AppContext } from '../context.ts'
import { declaredLength, MAXIMUM_BODY_BYTES, tooLarge } from '../request-body.ts'

/** Refuses a body by its declared length, before authentication (interface: Errors, Body too large). */
export async function limitDeclaredLength(context: AppContext, next: Next): Promise<void> {
  if ((declaredLength(context) ?? 0) > MAXIMUM_BODY_BYTES) {
    const { deps, surface } = context.var
    const ip = callerAddress(context) ?? 'unknown'
    deps.waitUntil(deps.countRejectedCall({ ip, at: deps.clock(), surface }))
    throw tooLarge()
  }
  await next()
}
