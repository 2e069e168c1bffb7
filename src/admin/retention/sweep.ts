import { deleteEndedRuns } from '../../agents/runs/sweep.store.ts'
import { DEPLOYMENT_ORGANIZATION_ID } from '../../ledger/audit-record.ts'
import { readStoredChains } from '../../ledger/records/chain.store.ts'
import { addPartitions } from '../../ledger/retention/partitions.store.ts'
import { pruneChain } from '../../ledger/retention/prune-chain.ts'
import { deletePrunedRecords } from '../../ledger/retention/prunings.store.ts'
import { stateRemoved } from '../../ledger/retention/state-removed.ts'
import { logEvent } from '../../lib/log.ts'
import { Budget } from './budget.ts'
import { dropOldPartitions } from './drop-partitions.ts'
import { deleteLeftConversations } from './empty-conversations.ts'
import { deleteOldResponses } from './old-responses.ts'
import {
  deleteOldCalls,
  deleteOldConnectSessions,
  deleteOldRejectedCalls,
  deleteOldUsage,
  hasRejectedCallsBefore,
  hasUsageBefore,
} from './old-rows.store.ts'
import { type Cutoffs, monthOf } from './retention-periods.ts'
import {
  beginRun,
  deploymentCutoffs,
  type RetentionDeps,
  type RetentionRun,
  verifiedCutoffs,
} from './retention-run.ts'
import type { StoredRetention } from './retention-seal.ts'
import { markSwept, selectOrganizationsToSweep } from './retention-settings.store.ts'

const DAY_MS = 86_400_000
/** This month and the next two have partitions before they begin. */
const MONTHS_AHEAD = 3
/** Rows of one batch. */
const MOST_DELETED = 1_000
/** Batches of one run: some minutes. What is left waits for the next. */
const MOST_BATCHES = 1_000
/** The time in which a run begins them. Cloudflare ends the job after 15 minutes. */
const RUN_MS = 10 * 60_000
/** Batches and time that may prepare the drop of months, so that some are left for the rows of organizations. */
const MOST_DROP_BATCHES = 500
const DROP_MS = 5 * 60_000
/** Organizations of one run. */
const MOST_ORGANIZATIONS = 200
/** An organization is swept once an hour, by the job of the hour. */
const SWEPT_FOR_MS = 50 * 60_000

/**
 * Removes rows that are older than their organizations keep them, in batches, and makes the partitions of the months to come. A run that
 * is killed is continued by the next. Months that no organization has to keep are dropped; other rows are deleted. A part that fails,
 * and an organization with invalid settings, are logged; the others go on.
 * @throws what the first part that failed has thrown, after all are made. Broken chains are logged and left as they are.
 */
export async function applyRetention(deps: RetentionDeps): Promise<void> {
  const run = beginRun(deps, MOST_BATCHES, RUN_MS)
  const { attempts, database, now } = run
  await attempts.make('partitions', null, () => addPartitions(database, monthOf(new Date(now)), MONTHS_AHEAD))
  // First, so that their time is a part of that of the run.
  await attempts.make('drops', null, () =>
    dropOldPartitions({ ...run, budget: new Budget(MOST_DROP_BATCHES, run.clock, DROP_MS) }),
  )
  await attempts.make('rejected calls', null, () => removeRejectedCalls(run))
  const ofDeployment = deploymentCutoffs(run).audit_records
  if (ofDeployment) {
    await attempts.make('records', DEPLOYMENT_ORGANIZATION_ID, () =>
      removeRecords(run, DEPLOYMENT_ORGANIZATION_ID, ofDeployment),
    )
  }
  await attempts.make('organizations', null, () => sweepOrganizations(run))
  attempts.throwFirst()
}

/**
 * Moves each organization to the end of the queue as its turn begins: one with which a run is killed every time, or fails, must not keep
 * the others from their turn. Where that fails, Postgres does not answer, and the run ends.
 */
async function sweepOrganizations(run: RetentionRun): Promise<void> {
  const { database, budget, now } = run
  const sweptBefore = new Date(now - SWEPT_FOR_MS)
  for (const stored of await selectOrganizationsToSweep(database, sweptBefore, MOST_ORGANIZATIONS)) {
    if (budget.isSpent) return
    await markSwept(database, stored.organizationId, new Date(now))
    await removeRows(run, stored)
  }
}

async function removeRejectedCalls(run: RetentionRun): Promise<void> {
  const days = run.configuration.REJECTED_CALL_RETENTION_DAYS
  if (days === 0) return
  // Whole days: the statement changes once a day.
  const before = new Date((Math.floor(run.now / DAY_MS) - days) * DAY_MS)
  if (!(await hasRejectedCallsBefore(run.database, before))) return
  await stateRemoved(run, 'rejected_calls', DEPLOYMENT_ORGANIZATION_ID, before)
  await drain(run, () => deleteOldRejectedCalls(run.database, before, MOST_DELETED))
}

const drain = ({ budget }: RetentionRun, batch: () => Promise<number>): Promise<boolean> =>
  budget.drain(batch, MOST_DELETED)

async function removeRows(run: RetentionRun, stored: StoredRetention): Promise<void> {
  const { organizationId } = stored
  const verified = verifiedCutoffs(run, stored)
  if ('fault' in verified) {
    const { fault } = verified
    logEvent('error', 'retention.settings_rejected', { organization: organizationId, error: fault })
    return
  }
  for (const [part, remove] of Object.entries(removals(run, organizationId, verified.cutoffs))) {
    if (remove) await run.attempts.make<unknown>(part, organizationId, remove)
  }
}

/** What removes each kind of rows; null for those that are kept. */
function removals(run: RetentionRun, organizationId: string, cutoffs: Cutoffs) {
  const { database, budget } = run
  const { audit_records: records, usage_events: usage, responses, runs, connect_sessions: sessions } = cutoffs
  return {
    records: records && (() => removeRecords(run, organizationId, records)),
    usage: usage && (() => removeUsage(run, organizationId, usage)),
    responses: responses && (() => deleteOldResponses(run, budget, organizationId, responses)),
    conversations:
      responses &&
      (() => deleteLeftConversations(run, budget, organizationId, { before: responses, now: run.now })),
    runs:
      runs &&
      (() => drain(run, () => deleteEndedRuns(database, organizationId, runs.getTime(), MOST_DELETED))),
    'connect sessions':
      sessions &&
      (() => drain(run, () => deleteOldConnectSessions(database, organizationId, sessions, MOST_DELETED))),
  }
}

/** Shortens the chains of an organization, but for those that are broken, and then removes its lists of calls. */
async function removeRecords(run: RetentionRun, organizationId: string, before: Date): Promise<void> {
  const { database, budget, attempts } = run
  let isDone = true
  for (const chain of await readStoredChains(database, organizationId)) {
    const isShortened = await attempts.make('chain', organizationId, async () => {
      const { pruning, isWhole } = await pruneChain(run, chain, before, () => budget.take())
      const isDeleted =
        chain.first > pruning.sequence ||
        (await drain(run, () => deletePrunedRecords(database, pruning, MOST_DELETED)))
      return isWhole && isDeleted
    })
    if (!isShortened) isDone = false
  }
  // Without a statement about its chain, a call that is missing from the lists is a fault.
  if (isDone) await drain(run, () => deleteOldCalls(database, organizationId, before, MOST_DELETED))
}

async function removeUsage(run: RetentionRun, organizationId: string, before: Date): Promise<void> {
  const { database } = run
  if (!(await hasUsageBefore(database, organizationId, before))) return
  await stateRemoved(run, 'usage', organizationId, before)
  await drain(run, () => deleteOldUsage(database, organizationId, before, MOST_DELETED))
}
