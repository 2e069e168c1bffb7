import { inject } from 'vitest'
import { untilIdle } from '../../../scripts/bench/process-usage.ts'
import { send } from '../../harness/send.ts'
import { type StartedGateway, startGateway } from '../../harness/start-gateway.ts'
import { bearer, createTenant, type Tenant } from '../../harness/tenant.ts'
import { chatOf } from './large-bodies.ts'
import { ResidentMemory } from './resident-memory.ts'

const MEGABYTE = 1024 * 1024
/** Issue: workerd's peak resident memory is at most so far above idle. An isolate has 128 MB for everything. */
export const MOST_ABOVE_IDLE = 128 * MEGABYTE
const WARM_UP_CALLS = 200

export const megabytes = (bytes: number) => `${Math.round(bytes / MEGABYTE)} MB`

export interface MeasuredGateway {
  gateway: StartedGateway
  tenant: Tenant
  memory: ResidentMemory
  idle: number
}

/** A fresh gateway that has seen small calls only. */
export async function startMeasured(): Promise<MeasuredGateway> {
  const gateway = await startGateway({
    bundleDirectory: inject('bundleDirectory'),
    variables: { LIMITS_TIMEOUT_MS: '20000', DEGRADED_RATE_LIMIT: '1000000' },
  })
  const tenant = await createTenant(gateway, { credits: 1_000_000_000_000_000 })
  const started = { gateway, tenant, memory: new ResidentMemory(gateway.pids.workerd), idle: 0 }
  for (let count = 0; count < WARM_UP_CALLS; count++) {
    const more = count % 2 === 0 ? '' : '"stream":true,'
    const { status } = await send(`${gateway.baseUrl}/v1/chat/completions`, {
      method: 'POST',
      headers: bearer(tenant.key),
      body: chatOf(1_000, 'warm-up', more),
    })
    if (status !== 200) throw new Error(`a call to warm up was answered with ${status}`)
  }
  await untilIdle(gateway.pids.workerd, 1_000, 10_000)
  return { ...started, idle: started.memory.now() }
}
