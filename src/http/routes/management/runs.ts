import { Hono } from 'hono'
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
import { notFound } from '../../../lib/api-error.ts'
import { runListQuery } from '../../../wire/agents.ts'
import { noQuery } from '../../../wire/management-fields.ts'
import { listBody } from '../../../wire/page-cursor.ts'
import type { AppContext, AppEnv } from '../../context.ts'
import { query } from '../../validated-request.ts'
import { changeScope, pageRequest, pathId } from './request.ts'

const AGENT_RUNS = '/organizations/:organizationId/agents/:agentId/runs'
const RUN = '/organizations/:organizationId/runs/:runId'
const CANCEL = '/organizations/:organizationId/runs/:runId/cancel'
const RERUN = '/organizations/:organizationId/runs/:runId/rerun'

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
export const runManagementRoutes = new Hono<AppEnv>()
  .get(AGENT_RUNS, query(runListQuery), async (context) => {
    const { status, ...paging } = context.req.valid('query')
    const scope = changeScope(context)
    const agentId = pathId(context, 'Agent')
    // Runs of a deleted agent remain and can be listed.
    await readAgentVersion(scope, agentId, 1)
    const page = await selectRuns(scope, agentId, { status }, pageRequest(paging))
    return context.json(listBody(page, present))
  })
  .get(RUN, query(noQuery), async (context) => context.json(await shownRun(context, pathId(context, 'Run'))))
  .post(CANCEL, query(noQuery), async (context) => {
    const id = pathId(context, 'Run')
    await cancelRun(context.var.deps, changeScope(context), id)
    return context.json(await shownRun(context, id))
  })
  .post(RERUN, query(noQuery), async (context) => {
    const id = pathId(context, 'Run')
    const { hadEffects } = await rerunStep(context.var.deps, changeScope(context), id)
    const warning = 'The attempt before this one called tools that may have changed something.'
    return context.json({ ...(await shownRun(context, id)), ...(hadEffects && { warning }) })
  })

/** @throws ApiError not_found */
async function shownRun(context: AppContext, id: string) {
  const row = await selectRunRow(changeScope(context), id)
  if (row === null) throw notFound('Run', id)
  const { attempts, verdicts, ...run } = row
  return {
    ...present(run),
    attempts: attempts.map(presentAttempt),
    verdicts: verdicts.map(presentVerdict),
  }
}
