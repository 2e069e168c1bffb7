import { DurableObject } from 'cloudflare:workers'
import type { CallEntry } from '../../../src/ledger/commits/commit-entries.ts'
import { CommitQueue, type CommitSender } from '../../../src/ledger/commits/commit-queue.ts'

// A Worker whose requests share a commit queue in front of a ledger that admits everything.

/** Enough calls for V8 to optimize the queue, which changes how its promises are made (see `CommitQueue`). */
const WARM_UP_CALLS = 300_000
const CALLS_TOGETHER = 16
/** How long the ledger takes, so that all that was sent in the meantime waits for one leader. */
const COMMIT_MS = 30

const ADMITTED = { refused: [], unsettled: [] }
const ENTRY: CallEntry = {
  ...{ kind: 'call', id: 'call_1', opening: '{}', reserve: 0, lease: 0, estimate: null, outcome: null },
  ...{ cost: 0, size: 0, checks: { epochs: null, learned: null, limits: null } },
}

const queue = new CommitQueue()

async function warmUp(): Promise<number> {
  const instant: CommitSender = { send: async () => ADMITTED, waitUntil: () => {} }
  const warmed = new CommitQueue()
  const callAfterCall = async () => {
    for (let made = 0; made < WARM_UP_CALLS; made += CALLS_TOGETHER) await warmed.submit(ENTRY, instant)
  }
  await Promise.all(Array.from({ length: CALLS_TOGETHER }, callAfterCall))
  return WARM_UP_CALLS
}

/** Answers what it is sent. */
export class Ledger extends DurableObject {
  override fetch(request: Request): Response {
    return new Response(request.body)
  }
}

/** Named in wrangler.toml, and not used here. */
export class ResponseStream extends DurableObject {}
export class ResponsePool extends DurableObject {}
export class ResponseSockets extends DurableObject {}
export class ConnectionCredentials extends DurableObject {}

// biome-ignore lint/style/noDefaultExport: what the runtime calls for a request
export default {
  async fetch(request, environment, context) {
    if (new URL(request.url).pathname === '/warm-up') return Response.json(await warmUp())
    const sender: CommitSender = {
      send: async () => {
        await scheduler.wait(COMMIT_MS)
        return ADMITTED
      },
      waitUntil: (work) => context.waitUntil(work),
    }
    await queue.submit(ENTRY, sender)
    // The answer belongs to the request that asked for it, and the runtime lets no other one return it.
    return environment.LEDGER.getByName('echo').fetch(request)
  },
} satisfies ExportedHandler<{ LEDGER: DurableObjectNamespace }>
