/** The Worker: every request, the hourly checkpoint, and the Durable Objects of this script. */
import { app } from '../src/app.ts'
import { createDeps } from '../src/deps.ts'
import type { Bindings } from '../src/env.ts'
import { writeCheckpoint } from '../src/governance/ledger/checkpoint.ts'

export { Ledger } from './ledger.ts'
export { ResponseStream } from './response-stream.ts'

export default {
  fetch: app.fetch,
  async scheduled(_event, environment, context) {
    await writeCheckpoint(createDeps(environment, context))
  },
} satisfies ExportedHandler<Bindings>
