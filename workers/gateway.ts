/** The Worker: every request, what is done every hour, and the Durable Objects of this script. */
import { app } from '../src/app.ts'
import { createDeps } from '../src/deps.ts'
import type { Bindings } from '../src/env.ts'
import { writeCheckpoint } from '../src/governance/ledger/records/checkpoint.ts'
import { eraseLeftContent } from '../src/responses/content/content-garbage.ts'

export { Ledger } from './ledger.ts'
export { ResponseStream } from './response-stream.ts'

export default {
  fetch: app.fetch,
  async scheduled(_event, environment, context) {
    const deps = createDeps(environment, context)
    // Neither waits for the other, and what fails fails the run.
    const done = await Promise.allSettled([writeCheckpoint(deps), eraseLeftContent(deps)])
    for (const part of done) if (part.status === 'rejected') throw part.reason
  },
} satisfies ExportedHandler<Bindings>
