import type { Bindings } from '../../../src/env.ts'
import gateway from '../../../workers/gateway.ts'
import { ResponseStream as SoundResponseStream } from '../../../workers/response-stream.ts'
import { KILL_PATH } from './kill-path.ts'

// The gateway's Worker, whose response objects can be killed one by one.

export { ConnectionCredentials, Ledger, ResponseSockets } from '../../../workers/gateway.ts'

export class ResponseStream extends SoundResponseStream {
  /** What it has not stored is lost, as when the platform moves it. */
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
    const { RESPONSE_STREAMS: objects } = environment
    const stub = objects.get(objects.idFromName(pathname.slice(KILL_PATH.length)))
    await (stub as unknown as ResponseStream).kill().catch(() => {})
    return new Response(null, { status: 204 })
  },
} satisfies ExportedHandler<Bindings>
