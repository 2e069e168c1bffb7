import type { AgentDeps } from '../../agents/agent-deps.ts'
import { cancelRun } from '../../agents/runs/change-run.ts'
import type { ChangeScope } from '../../ledger/changes/audited-change.ts'
import { ApiError } from '../../lib/api-error.ts'
import type { Owner } from '../../responses/model/types.ts'
import { eraseContent, eraseLeftContent } from '../../responses/store/content-garbage.ts'
import { deleteConversations, deleteResponses } from '../../responses/store/delete-responses.store.ts'
import { removeWorkspace } from '../../responses/tools/workspace/remove-workspace.ts'
import { removeConnection } from '../connections/connections.ts'
import { administrator } from '../connections/manager.ts'
import {
  anonymize,
  deleteApprovalClaims,
  deleteConnectSessions,
  deleteKeys,
  deleteRights,
  deleteRunRequests,
  deleteRuns,
  deleteSignIns,
  type OwnConnection,
  type Position,
  selectOwnConnections,
  selectOwnConversations,
  selectOwnResponses,
  selectOwnRuns,
  selectRunsInProgress,
} from './person-rows.store.ts'

interface ErasureJob {
  deps: AgentDeps
  scope: ChangeScope
  owner: Owner
  /** When the erasure began, in milliseconds since the epoch: the person was disabled by then. */
  begunAt: number
}

/** What one page of a step has erased, and where the step goes on; null when it is done. */
interface ErasedPage {
  counts: Record<string, number>
  next: Position | null
  /** When the step is due, in milliseconds since the epoch; absent when it was. */
  dueAt?: number
}

// Their names are all that is logged of a failure.
class RunsInProgressError extends Error {
  override name = 'RunsInProgressError'
}
class WorkspaceNotRemovedError extends Error {
  override name = 'WorkspaceNotRemovedError'
}
class BrokerAwayError extends Error {
  override name = 'BrokerAwayError'
}

type Step = (job: ErasureJob, position: Position | null) => Promise<ErasedPage>

/** Rows of the organization that one page examines. */
const PAGE = 5_000
/** Responses and workspaces that one statement, or one round of calls, takes. */
const BATCH = 50
/** Calls to a broker at a time. */
const MOST_CALLS = 10
/** The position of a step that begins again. */
const AGAIN: Position = { at: '', id: '' }
/**
 * Time from the disabling of a person to the second search. What was admitted before may still write rows: rights are valid for at most a
 * minute after they were read where the change could not be published, and a request then stores its rows before the model is called,
 * within seconds or, where Postgres is slow, minutes.
 */
const GRACE_MS = 15 * 60_000

const done = (counts: Record<string, number>): ErasedPage => ({ counts, next: null })

/** Removes connections whose credentials are in the vault, and attempts to connect accounts. It waits for no other service. */
async function eraseConnections(job: ErasureJob): Promise<ErasedPage> {
  const own = await selectOwnConnections(job.deps.database, job.owner)
  const { counts, failure } = await removeAll(
    job,
    own.filter(({ broker }) => broker === 'local'),
  )
  if (failure !== null) throw failure
  return done({
    connections: counts.connections,
    connect_sessions: await deleteConnectSessions(job.deps.database, job.owner),
  })
}

/**
 * Removes the connections that are left, whose accounts a hosted broker has: there first. The last step, since a broker may be away for as
 * long as it likes. Accounts at a broker that this gateway has no key for any more are counted as left there.
 * @throws while a broker does not delete an account: the step is repeated.
 */
async function eraseHostedConnections(job: ErasureJob): Promise<ErasedPage> {
  const own = await selectOwnConnections(job.deps.database, job.owner)
  const { counts, failure } = await removeAll(job, own)
  if (failure === null) return done(counts)
  // What was removed beside it is counted before the step fails.
  if (counts.connections > 0) return { counts, next: AGAIN }
  throw failure instanceof ApiError && failure.kind === 'upstream' ? new BrokerAwayError() : failure
}

/** Removes each connection, also behind one that fails. @returns the first failure; null without one. */
async function removeAll(
  { deps, scope }: ErasureJob,
  own: readonly OwnConnection[],
): Promise<{ counts: { connections: number; connections_left: number }; failure: unknown }> {
  const counts = { connections: 0, connections_left: 0 }
  let failure: unknown = null
  for (let start = 0; start < own.length; start += MOST_CALLS) {
    const removals = own
      .slice(start, start + MOST_CALLS)
      .map(({ id }) => removeConnection(administrator(scope), deps, id))
    for (const removal of await Promise.allSettled(removals)) {
      if (removal.status === 'rejected') failure ??= removal.reason
      else {
        counts.connections += 1
        if (removal.value.leftAtBroker !== null) counts.connections_left += 1
      }
    }
  }
  return { counts, failure }
}

/** Cancels runs in progress, and deletes all runs. */
async function eraseRuns(job: ErasureJob, position: Position | null): Promise<ErasedPage> {
  const { deps, owner } = job
  const { database } = deps
  if (position === null) {
    await cancelRuns(job)
    await deleteRunRequests(database, owner)
  }
  const { rows, next } = await selectOwnRuns(database, owner, position, PAGE)
  const deleted = await deleteRuns(
    database,
    owner,
    rows.map(({ id }) => id),
  )
  return { counts: { runs: deleted }, next }
}

/** @throws when a run may still be in progress: the step is repeated. */
async function cancelRuns({ deps, scope, owner }: ErasureJob): Promise<void> {
  for (const runId of await selectRunsInProgress(deps.database, owner)) {
    await cancelRun(deps, scope, runId).catch((error) => {
      if (!isOfState(error)) throw error
    })
  }
  // A run that was refused may have ended meanwhile, or keep changing.
  const left = await selectRunsInProgress(deps.database, owner)
  if (left.length > 0) throw new RunsInProgressError()
}

/** Whether a run was not cancelled for its state, or is gone. */
const isOfState = (error: unknown): boolean =>
  error instanceof ApiError && (error.kind === 'not_found' || error.code === 'conflict')

/** Stops responses that an object may still have, and deletes all with their items. */
async function eraseResponses({ deps, owner }: ErasureJob, position: Position | null): Promise<ErasedPage> {
  const { database, configuration, clock } = deps
  const heldSince = clock() - configuration.RESPONSE_TIME_LIMIT_MS - 2 * configuration.RESPONSE_WINDOW_MS
  const { rows, next } = await selectOwnResponses(database, owner, position, PAGE)
  const counts = { responses: 0, items: 0, stored_contents: 0 }
  for (let start = 0; start < rows.length; start += BATCH) {
    const batch = rows.slice(start, start + BATCH)
    const isHeld = ({ at }: Position) => new Date(at).getTime() > heldSince
    // The objects first: they stop generating, and do not write afterwards.
    await Promise.all(
      batch.filter(isHeld).map(({ id }) => deps.responseObject(owner.organizationId, id).remove(owner)),
    )
    await removeWorkspaces(deps, owner, batch)
    const ids = batch.map(({ id }) => id)
    const deleted = await deleteResponses(database, owner.organizationId, ids)
    await eraseContent(deps, deleted.contentKeys)
    counts.responses += deleted.responses
    counts.items += deleted.items
    counts.stored_contents += deleted.contentKeys.length
  }
  if (next === null) {
    // Content whose rows an attempt deleted that died before it erased the content.
    await eraseLeftContent(deps)
    await deleteApprovalClaims(database, owner)
  }
  return { counts, next }
}

/** Deletes conversations with the files that tools made in them. */
async function eraseConversations(
  { deps, owner }: ErasureJob,
  position: Position | null,
): Promise<ErasedPage> {
  const { rows, next } = await selectOwnConversations(deps.database, owner, position, PAGE)
  for (let start = 0; start < rows.length; start += BATCH) {
    await removeWorkspaces(deps, owner, rows.slice(start, start + BATCH))
  }
  const ids = rows.map(({ id }) => id)
  return { counts: { conversations: await deleteConversations(deps.database, owner, ids) }, next }
}

/** @throws when the files may still be there: the step is repeated. */
async function removeWorkspaces(deps: AgentDeps, owner: Owner, of: readonly Position[]): Promise<void> {
  const removed = await Promise.all(of.map(({ id }) => removeWorkspace(deps, owner, id)))
  if (removed.includes(false)) throw new WorkspaceNotRemovedError()
}

/** Waits until what was in flight when the person was disabled has stored its rows. */
const awaitInFlight: Step = async ({ deps, begunAt }) => {
  const dueAt = begunAt + GRACE_MS
  return deps.clock() < dueAt ? { ...done({}), dueAt } : done({})
}

/** Deletes keys, sign-ins and rights, and then what identifies the person. */
async function erasePerson({ deps, owner }: ErasureJob): Promise<ErasedPage> {
  const { database } = deps
  return done({
    keys: await deleteKeys(database, owner),
    ...(await deleteSignIns(database, owner)),
    ...(await deleteRights(database, owner)),
    ...(await anonymize(database, owner)),
  })
}

/**
 * The steps in their order. Each can be repeated, from its beginning or from the position of its last page. An erasure that another version
 * began goes on at the step that it has stored, so a step keeps its name and place.
 */
export const STEPS = {
  connections: eraseConnections,
  runs: eraseRuns,
  responses: eraseResponses,
  conversations: eraseConversations,
  wait: awaitInFlight,
  // All rows again: an old conversation stays as long as a response is in it that was in flight.
  late_connections: eraseConnections,
  late_runs: eraseRuns,
  late_responses: eraseResponses,
  late_conversations: eraseConversations,
  person: erasePerson,
  hosted_connections: eraseHostedConnections,
} satisfies Record<string, Step>

export type StepName = keyof typeof STEPS
export const STEP_NAMES = Object.keys(STEPS) as StepName[]
