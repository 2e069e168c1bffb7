/** The Worker: every request, what is done every hour, and the Durable Objects of this script. */
import { entry } from '../src/app.ts'
import { createDeps } from '../src/deps.ts'
import type { Bindings } from '../src/env.ts'
import { writeCheckpoint } from '../src/governance/ledger/records/checkpoint.ts'
import { settleAll } from '../src/lib/settle-all.ts'
import { eraseLeftContent } from '../src/responses/content/content-garbage.ts'

export { Ledger } from './ledger.ts'
export { ResponseSockets } from './response-sockets.ts'
export { ResponseStream } from './response-stream.ts'

export default {
  fetch: entry.fetch,
  async scheduled(_event, environment, context) {
    const deps = createDeps(environment, context)
    // Neither keeps the other from running; the run fails when one of them does.
    await settleAll([writeCheckpoint(deps), eraseLeftContent(deps)])
  },
} satisfies ExportedHandler<Bindings>
