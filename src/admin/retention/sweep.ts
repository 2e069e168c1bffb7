import { deleteEndedRuns } from '../../agents/runs/sweep.store.ts'
import { DEPLOYMENT_ORGANIZATION_ID } from '../../ledger/audit-record.ts'
import { readStoredChains } from '../../ledger/records/chain.store.ts'
import { writeCheckpoint } from '../../ledger/records/checkpoint.ts'
import { addPartitions } from '../../ledger/retention/partitions.store.ts'
import type { PruneDeps } from '../../ledger/retention/prune-chain.ts'
import { deletePrunedRecords } from '../../ledger/retention/prunings.store.ts'
import { stateRemoved } from '../../ledger/retention/state-removed.ts'
import { Budget } from './budget.ts'
import { dropOldPartitions } from './drop-partitions.ts'
import { deleteOldResponses, type ResponseDeletionDeps } from './old-responses.ts'
import {
  deleteOldCalls,
  deleteOldConnectSessions,
  deleteOldRejectedCalls,
  deleteOldUsage,
  hasRejectedCallsBefore,
  hasUsageBefore,
} from './old-rows.store.ts'
import { pruneOrLog } from './prune-or-log.ts'
import {
  type Cutoffs,
  cutoffsOf,
  defaultRetention,
  monthOf,
  type RetentionVariables,
} from './retention-periods.ts'
import { markSwept, selectOrganizationsToSweep } from './retention-settings.store.ts'

export interface RetentionDeps extends Omit<PruneDeps, 'beforePruning'>, ResponseDeletionDeps {
  configuration: PruneDeps['configuration'] &
    RetentionVariables & {
      REJECTED_CALL_RETENTION_DAYS: number
    }
}

const DAY_MS = 86_400_000
/** This month and the next two have partitions before they begin. */
const MONTHS_AHEAD = 3
/** Rows of one batch. */
const MOST_DELETED = 1_000
/** Batches of one run: some minutes. What is left waits for the next. */
const MOST_BATCHES = 1_000
/** Organizations of one run. */
const MOST_ORGANIZATIONS = 200
/** An organization is swept once an hour, by the job of the hour. */
const SWEPT_FOR_MS = 50 * 60_000

/**
 * Removes rows that are older than their organizations keep them, in batches, and makes the partitions of the months to come. A run that
 * is killed is continued by the next. Partitions that nobody has to keep are dropped; other rows are deleted.
 * @throws what Postgres throws first; broken chains are logged and left as they are.
 */
export async function applyRetention(deps: RetentionDeps): Promise<void> {
  const { database, clock, configuration } = deps
  const now = clock()
  const defaults = defaultRetention(configuration)
  await addPartitions(database, monthOf(new Date(now)), MONTHS_AHEAD)
  const run = runOf(deps)
  await removeRejectedCalls(run, now)
  await dropOldPartitions(run, defaults, now)
  const ofDeployment = cutoffsOf(null, defaults, now).audit_records
  if (ofDeployment) await removeRecords(run, DEPLOYMENT_ORGANIZATION_ID, ofDeployment)
  const waiting = await selectOrganizationsToSweep(database, new Date(now - SWEPT_FOR_MS), MOST_ORGANIZATIONS)
  for (const { id, retention } of waiting) {
    if (run.budget.isSpent) return
    const isDone = await removeRows(run, id, cutoffsOf(retention, defaults, now))
    if (isDone) await markSwept(database, id, new Date(now))
  }
}

/** One run of the job. */
type Run = RetentionDeps & PruneDeps & { budget: Budget }

function runOf(deps: RetentionDeps): Run {
  let checkpoint: Promise<unknown> | undefined
  // A checkpoint has the heads of all chains before the first of them is shortened.
  const beforePruning = async () => {
    checkpoint ??= writeCheckpoint(deps)
    await checkpoint
  }
  return { ...deps, beforePruning, budget: new Budget(MOST_BATCHES) }
}

async function removeRejectedCalls(run: Run, now: number): Promise<void> {
  const days = run.configuration.REJECTED_CALL_RETENTION_DAYS
  if (days === 0) return
  // Whole days: the statement changes once a day.
  const before = new Date((Math.floor(now / DAY_MS) - days) * DAY_MS)
  if (!(await hasRejectedCallsBefore(run.database, before))) return
  await stateRemoved(run, 'rejected_calls', DEPLOYMENT_ORGANIZATION_ID, before)
  await drain(run, () => deleteOldRejectedCalls(run.database, before, MOST_DELETED))
}

const drain = ({ budget }: Run, batch: () => Promise<number>): Promise<boolean> =>
  budget.drain(batch, MOST_DELETED)

/** @returns whether nothing is left to remove. */
async function removeRows(run: Run, organizationId: string, cutoffs: Cutoffs): Promise<boolean> {
  const { database, budget } = run
  const { audit_records: records, usage_events: usage, responses, runs, connect_sessions: sessions } = cutoffs
  const work = [
    records && (() => removeRecords(run, organizationId, records)),
    usage && (() => removeUsage(run, organizationId, usage)),
    responses && (() => deleteOldResponses(run, budget, organizationId, responses)),
    runs && (() => drain(run, () => deleteEndedRuns(database, organizationId, runs.getTime(), MOST_DELETED))),
    sessions &&
      (() => drain(run, () => deleteOldConnectSessions(database, organizationId, sessions, MOST_DELETED))),
  ]
  let isDone = true
  for (const remove of work) {
    if (remove && !(await remove())) isDone = false
  }
  return isDone
}

/** Shortens the chains of an organization, but for those that are broken. @returns whether nothing is left to remove. */
async function removeRecords(run: Run, organizationId: string, before: Date): Promise<boolean> {
  const { database } = run
  let isDone = true
  let isBroken = false
  for (const chain of await readStoredChains(database, organizationId)) {
    const pruned = await pruneOrLog(run, chain, before)
    isBroken ||= pruned === null
    if (pruned === null) continue
    const { pruning, isWhole } = pruned
    const isDeleted =
      chain.first > pruning.sequence ||
      (await drain(run, () => deletePrunedRecords(database, pruning, MOST_DELETED)))
    if (!isWhole || !isDeleted) isDone = false
  }
  // Without a statement about its chain, a call that is missing from the lists is a fault.
  if (!isDone || isBroken) return isDone
  return drain(run, () => deleteOldCalls(database, organizationId, before, MOST_DELETED))
}

async function removeUsage(run: Run, organizationId: string, before: Date): Promise<boolean> {
  const { database } = run
  if (!(await hasUsageBefore(database, organizationId, before))) return true
  await stateRemoved(run, 'usage', organizationId, before)
  return drain(run, () => deleteOldUsage(database, organizationId, before, MOST_DELETED))
}
