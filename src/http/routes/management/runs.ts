import { readAgentVersion } from '../../../admin/agents.ts'
import type { JudgeAnswer } from '../../../agents/evaluations/judge-answer.ts'
import { cancelRun, rerunStep } from '../../../agents/runs/change-run.ts'
import {
  type AttemptRow,
  type RunRow,
  selectRunRow,
  selectRuns,
  type VerdictRow,
} from '../../../agents/runs/read-runs.store.ts'
import type { ChangeScope } from '../../../ledger/changes/audited-change.ts'
import { notFound } from '../../../lib/api-error.ts'
import { listBody } from '../../../wire/page-cursor.ts'
import { pageRequest } from './change-scope.ts'
import type { HandlersOf } from './mount-endpoints.ts'

/** The administrator's view of a run. Texts of people and answers of models are not shown: they belong to the run's user. */
const present = (row: RunRow) => ({
  id: row.id,
  agent_id: row.agentId,
  agent_version: row.agentVersion,
  user_id: row.userId,
  conversation_id: row.conversationId,
  origin: row.origin,
  restarted_from: row.restartedFrom,
  status: row.status,
  step: row.step,
  attempt: row.attempt,
  error: row.error,
  cost: row.cost,
  created_at: row.createdAt,
  ended_at: row.endedAt,
  deadline_at: row.deadlineAt,
})

const presentAttempt = (row: AttemptRow) => ({
  step: row.number,
  attempt: row.attempt,
  status: row.status,
  response_id: row.responseId,
  error: row.error,
  had_effects: row.hadEffects,
  cost: row.cost,
  created_at: row.createdAt,
  ended_at: row.endedAt,
})

/** Explanations, and what the judge has as evidence, repeat the output. Quotes are of the definition. */
const presentVerdict = ({ details, ...row }: VerdictRow) => ({
  step: row.number,
  attempt: row.attempt,
  result: row.result,
  ...details,
  ...(details.criteria !== undefined && {
    criteria: (details.criteria as JudgeAnswer['criteria']).map(({ quote, met }) => ({ quote, met })),
  }),
  cost: row.cost,
  created_at: row.createdAt,
})

/** Runs of an organization: read, cancelled, and their failed step repeated. */
export const runHandlers: HandlersOf<'runs'> = {
  'runs.list': async ({ scope, path: { agentId }, query: { status, ...paging } }) => {
    // Runs of a deleted agent remain and can be listed.
    await readAgentVersion(scope, agentId, 1)
    return listBody(await selectRuns(scope, agentId, { status }, pageRequest(paging)), present)
  },
  'runs.show': ({ scope, path }) => shownRun(scope, path.runId),
  'runs.cancel': async ({ context, scope, path }) => {
    await cancelRun(context.var.deps, scope, path.runId)
    return shownRun(scope, path.runId)
  },
  'runs.rerun': async ({ context, scope, path }) => {
    const { hadEffects } = await rerunStep(context.var.deps, scope, path.runId)
    const warning = 'The attempt before this one called tools that may have changed something.'
    return { ...(await shownRun(scope, path.runId)), ...(hadEffects && { warning }) }
  },
}

/** @throws ApiError not_found */
async function shownRun(scope: ChangeScope, id: string) {
  const row = await selectRunRow(scope, id)
  if (row === null) throw notFound('Run', id)
  const { attempts, verdicts, ...run } = row
  return {
    ...present(run),
    attempts: attempts.map(presentAttempt),
    verdicts: verdicts.map(presentVerdict),
  }
}
