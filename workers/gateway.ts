/** The Worker: requests, jobs of every hour and of every five minutes, and the Durable Objects of this script. */
import { advanceErasures } from '../src/admin/erasure/erase-person.ts'
import { applyRetention } from '../src/admin/retention/sweep.ts'
import { pruneSignIns } from '../src/admin/sign-in/sweep.ts'
import { republishVerdicts } from '../src/agents/runs/publish-verdict.ts'
import { pruneRunRequests, republishOverdue } from '../src/agents/runs/sweep.ts'
import { publishTriggers } from '../src/agents/triggers/publish-triggers.ts'
import { entry } from '../src/app.ts'
import { createDeps } from '../src/deps.ts'
import type { Bindings } from '../src/env.ts'
import { refreshDue } from '../src/integrations/catalogue/refresh-catalogues.ts'
import { writeCheckpoint } from '../src/ledger/records/checkpoint.ts'
import { logFailure } from '../src/lib/log.ts'
import { settleAll } from '../src/lib/settle-all.ts'
import { eraseLeftContent } from '../src/responses/store/content-garbage.ts'
import { releaseLeftResponses } from '../src/responses/store/left-responses.ts'

export { ConnectionCredentials } from './connection-credentials.ts'
export { Ledger } from './ledger.ts'
export { ResponsePool } from './response-pool.ts'
export { ResponseSockets } from './response-sockets.ts'
export { ResponseStream } from './response-stream.ts'

/** The cron trigger of the jobs that must not wait an hour. The other trigger in wrangler.toml runs all jobs. */
const FREQUENT = '*/5 * * * *'

/** Names for the log: the built script does not keep the names of functions. */
const HOURLY_JOBS = { writeCheckpoint, eraseLeftContent, pruneRunRequests, pruneSignIns, applyRetention }
const FREQUENT_JOBS = {
  advanceErasures,
  refreshDue,
  releaseLeftResponses,
  republishOverdue,
  republishVerdicts,
  publishTriggers,
}

/** Logs the failure of a job, because the run of all jobs fails with the first failure only. */
async function runJob(name: string, work: Promise<unknown>): Promise<void> {
  try {
    await work
  } catch (error) {
    logFailure('job_failed', { request_id: null, surface: 'scheduled', route: name }, error)
    throw error
  }
}

export default {
  fetch: entry.fetch,
  async scheduled(event, environment, context) {
    const deps = createDeps(environment, context)
    const jobs = event.cron === FREQUENT ? FREQUENT_JOBS : { ...HOURLY_JOBS, ...FREQUENT_JOBS }
    // A failed job does not prevent the others; the run fails when one of them does.
    await settleAll(Object.entries(jobs).map(([name, job]) => runJob(name, job(deps))))
  },
} satisfies ExportedHandler<Bindings>
