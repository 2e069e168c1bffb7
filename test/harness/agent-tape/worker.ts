import type { Bindings } from '../../../src/env.ts'
import { placeOf } from '../../../src/responses/model/response-ids.ts'
import { poolName } from '../../../src/responses/pool/slots.ts'
import gateway from '../../../workers/gateway.ts'
import { ResponsePool as SoundResponsePool } from '../../../workers/response-pool.ts'
import { ResponseStream as SoundResponseStream } from '../../../workers/response-stream.ts'
import { KILL_PATH } from './kill-path.ts'

// The gateway's Worker, whose response objects can be killed one by one.

export { ConnectionCredentials, Ledger, ResponseSockets } from '../../../workers/gateway.ts'

export class ResponsePool extends SoundResponsePool {
  async kill(): Promise<void> {
    this.ctx.abort('killed by a test')
  }
}

export class ResponseStream extends SoundResponseStream {
  /** Resets the object: state that is not stored is lost, as when the platform moves it. */
  async kill(): Promise<void> {
    this.ctx.abort('killed by a test')
  }
}

// biome-ignore lint/style/noDefaultExport: what the runtime calls for a request
export default {
  ...gateway,
  async fetch(request, environment, context) {
    const { pathname } = new URL(request.url)
    if (!pathname.startsWith(KILL_PATH)) return gateway.fetch(request, environment, context)
    const [organizationId = '', id = ''] = pathname.slice(KILL_PATH.length).split('/')
    const place = placeOf(id)
    const stub = place
      ? environment.RESPONSE_POOLS.getByName(poolName(organizationId, place))
      : environment.RESPONSE_STREAMS.getByName(id)
    await (stub as unknown as ResponseStream).kill().catch(() => {})
    return new Response(null, { status: 204 })
  },
} satisfies ExportedHandler<Bindings>
