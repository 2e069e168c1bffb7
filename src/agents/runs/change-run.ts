import { audited, type ChangeScope, conflict } from '../../ledger/changes/audited-change.ts'
import type { OrganizationScope } from '../../ledger/changes/scoped-statements.store.ts'
import { notFound } from '../../lib/api-error.ts'
import { errorText, logEvent } from '../../lib/log.ts'
import { storedResponseId } from '../../responses/pool/start-response.ts'
import type { AgentDeps } from '../agent-deps.ts'
import { notConfigured } from './begin-run.ts'
import { selectRunState, storeChange } from './progress.store.ts'
import { announceRun } from './publish-run.ts'
import { currentAttempt, type RunState } from './run.ts'
import { stopResponse } from './step-response.ts'
import { cancellation, mayHappen, rerun } from './transitions.ts'

/** Tries again when the run has changed meanwhile. */
const MOST_TRIES = 5

/**
 * Cancels a run that is in progress. Its response ends at once if it can be reached, and otherwise by the run's next message.
 * @throws ApiError `not_found`; `unprocessable` for a run that has ended.
 */
export async function cancelRun(deps: AgentDeps, scope: ChangeScope, runId: string): Promise<void> {
  await readState(scope, runId)
  const intent = { action: 'run.cancelled', resource: `runs/${runId}`, detail: {} }
  await audited(scope, intent, () => cancelInProgress(deps, scope, runId))
}

/**
 * Cancels a run of an organization.
 * @throws ApiError `not_found`; `unprocessable` for a run that has ended.
 */
export async function cancelInProgress(
  deps: AgentDeps,
  scope: OrganizationScope,
  runId: string,
): Promise<void> {
  for (let tries = 0; tries < MOST_TRIES; tries++) {
    const run = await readState(scope, runId)
    if (!mayHappen(run.status, 'cancelled')) throw conflict(`The run has ended (${run.status}).`)
    const now = deps.clock()
    const stored = await storeChange(deps.database, run, cancellation(run, now), { now, keepsLease: true })
    if (!stored) continue
    deps.waitUntil(announceRun(deps, stored))
    await stopResponse(deps, run).catch((error) =>
      logEvent('warn', 'run_response_not_stopped', { run_id: runId, error: errorText(error) }),
    )
    return
  }
  throw conflict('The run keeps changing. Try again.')
}

/** A repeated step, and whether its last attempt may have changed something. */
interface Rerun {
  step: number
  attempt: number
  hadEffects: boolean
}

/**
 * Repeats the failed step of a run, by the definition that the run has. Earlier outputs stay (interface: Run status).
 * @throws ApiError `not_found`; `unprocessable` for a run that has not failed.
 */
export async function rerunStep(deps: AgentDeps, scope: ChangeScope, runId: string): Promise<Rerun> {
  const run = await readState(scope, runId)
  if (!deps.runQueue) throw notConfigured()
  if (!mayHappen(run.status, 'step_rerun'))
    throw conflict(`Only a failed run has a step to repeat (${run.status}).`)
  const { number, attempt, hadEffects } = currentAttempt(run)
  const detail = { step: number, attempt: attempt + 1, had_effects: hadEffects }
  const intent = { action: 'run.step_rerun', resource: `runs/${runId}`, detail }
  const stored = await audited(scope, intent, async () => {
    const now = deps.clock()
    const change = rerun(run, now)
    const responseId = storedResponseId(deps)
    const { deadlineAt } = change
    const revision = await storeChange(deps.database, run, change, { now, responseId, deadlineAt })
    if (!revision) throw conflict('The run was changed at the same time.')
    return revision
  })
  await announceRun(deps, stored)
  return { step: number, attempt: attempt + 1, hadEffects }
}

async function readState(
  { database, organizationId }: OrganizationScope,
  runId: string,
): Promise<RunState & { leasedUntil: number | null }> {
  const run = await selectRunState(database, { organizationId, runId })
  if (run === null) throw notFound('Run', runId)
  return run
}
