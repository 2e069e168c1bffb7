import * as z from 'zod'
import { agentDefinition, runStatus, visibility } from '../../agents.ts'
import { uuid } from '../../management-fields.ts'
import { count, credits, deleted, list, time } from './parts.ts'

/** Schemas of the endpoints for agents and their runs. */

const agentRow = z
  .strictObject({
    id: uuid,
    name: z.string(),
    description: z.string(),
    visibility,
    group_ids: z.array(uuid),
    created_by: uuid,
    version: count,
    created_at: time,
    updated_at: time,
  })
  .meta({ id: 'AgentSummary' })

const trigger = z
  .discriminatedUnion('kind', [
    z.strictObject({ name: z.string(), kind: z.literal('schedule'), cron: z.string(), active: z.boolean() }),
    z.strictObject({ name: z.string(), kind: z.literal('webhook'), secret_set: z.boolean() }),
  ])
  .meta({ id: 'Trigger' })

const agent = agentRow
  .extend({ definition: agentDefinition, triggers: z.array(trigger) })
  .meta({ id: 'Agent' })

const agentVersion = z
  .strictObject({ version: count, author: z.string(), created_at: time })
  .meta({ id: 'AgentVersion' })

const failure = z.strictObject({ code: z.string(), message: z.string() }).nullable()

/** Texts of people and answers of models are not shown: they belong to the run's user. */
const runRow = z
  .strictObject({
    id: uuid,
    agent_id: uuid,
    agent_version: count,
    user_id: uuid,
    conversation_id: z.string(),
    origin: z.enum(['api', 'restart', 'schedule', 'webhook']),
    restarted_from: uuid.nullable(),
    status: runStatus,
    step: count,
    attempt: count,
    error: failure,
    cost: credits,
    created_at: time,
    ended_at: time.nullable(),
    deadline_at: time,
  })
  .meta({ id: 'RunSummary' })

const attempt = z
  .strictObject({
    step: count,
    attempt: count,
    status: z.enum(['running', 'completed', 'failed', 'cancelled']),
    response_id: z.string(),
    error: failure,
    had_effects: z.boolean(),
    cost: credits,
    created_at: time,
    ended_at: time.nullable(),
  })
  .meta({ id: 'Attempt' })

const verdict = z
  .strictObject({
    step: count,
    attempt: count,
    result: z.enum(['pass', 'fail', 'not_evaluated', 'unknown']),
    reason: z.string().optional(),
    model: z.string().optional(),
    response_id: z.string().optional(),
    calls: count.optional(),
    /** What was wrong with the last answer of the judge. */
    fault: z.string().nullable().optional(),
    checks: z.array(z.strictObject({ type: z.string(), passed: z.boolean() })).optional(),
    criteria: z.array(z.strictObject({ quote: z.string(), met: z.boolean() })).optional(),
    cost: credits,
    created_at: time,
  })
  .meta({ id: 'Verdict' })

const run = runRow.extend({ attempts: z.array(attempt), verdicts: z.array(verdict) }).meta({ id: 'Run' })

export const agentAnswers = {
  'agents.list': list(agentRow),
  'agents.create': agent,
  'agents.show': agent,
  'agents.change': agent,
  'agents.remove': deleted,
  'agents.versions': list(agentVersion),
  'agents.version': agentVersion.extend({ definition: agentDefinition }),
  'agents.renew-secret': z.strictObject({ secret: z.string() }),
  'runs.list': list(runRow),
  'runs.show': run,
  'runs.cancel': run,
  'runs.rerun': run.extend({ warning: z.string().optional() }),
}
