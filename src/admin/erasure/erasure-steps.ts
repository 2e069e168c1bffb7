import type { AgentDeps } from '../../agents/agent-deps.ts'
import { cancelRun } from '../../agents/runs/change-run.ts'
import type { ChangeScope } from '../../ledger/changes/audited-change.ts'
import { ApiError } from '../../lib/api-error.ts'
import type { Owner } from '../../responses/model/types.ts'
import { deleteContentErasures } from '../../responses/store/content-garbage.store.ts'
import {
  deleteConversations,
  deleteResponses,
  selectContentKeys,
} from '../../responses/store/delete-responses.store.ts'
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
}

/** What one page of a step has erased, and where the step goes on; null when it is done. */
interface ErasedPage {
  counts: Record<string, number>
  next: Position | null
}

type Step = (job: ErasureJob, position: Position | null) => Promise<ErasedPage>

/** Rows of the organization that one page examines. */
const PAGE = 5_000
/** Responses and workspaces that one statement, or one round of calls, takes. */
const BATCH = 50

const done = (counts: Record<string, number>): ErasedPage => ({ counts, next: null })

/** Removes the person's connections, at their brokers too, and their attempts to connect accounts. */
async function eraseConnections({ deps, scope, owner }: ErasureJob): Promise<ErasedPage> {
  const ids = await selectOwnConnections(deps.database, owner)
  for (const id of ids) await removeConnection(administrator(scope), deps, id)
  return done({
    connections: ids.length,
    connect_sessions: await deleteConnectSessions(deps.database, owner),
  })
}

/** Cancels runs in progress, and deletes all runs. */
async function eraseRuns({ deps, scope, owner }: ErasureJob, position: Position | null): Promise<ErasedPage> {
  const { database } = deps
  if (position === null) {
    for (const runId of await selectRunsInProgress(database, owner)) {
      // It may have ended meanwhile.
      await cancelRun(deps, scope, runId).catch((error) => {
        if (!(error instanceof ApiError)) throw error
      })
    }
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
    // The content first: as long as the rows are there, an attempt that died is repeated.
    const keys = await selectContentKeys(database, owner.organizationId, ids)
    await deps.contentStore.remove(keys)
    const deleted = await deleteResponses(database, owner.organizationId, ids)
    counts.responses += deleted.responses
    counts.items += deleted.items
    counts.stored_contents += keys.length
    await deleteContentErasures(database, keys)
  }
  if (next === null) await deleteApprovalClaims(database, owner)
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
  if (removed.includes(false)) throw new Error('files of a workspace were not removed')
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

/** The steps in their order. Each can be repeated, from its beginning or from the position of its last page. */
export const STEPS = {
  connections: eraseConnections,
  runs: eraseRuns,
  responses: eraseResponses,
  conversations: eraseConversations,
  person: erasePerson,
} satisfies Record<string, Step>

export type StepName = keyof typeof STEPS
export const STEP_NAMES = Object.keys(STEPS) as StepName[]
