import * as z from 'zod'
import {
  agentCreation,
  agentDefinition,
  agentListQuery,
  agentUpdate,
  runListQuery,
  runStatus,
  visibility,
} from '../agents.ts'
import { pageQuery, uuid } from '../management-fields.ts'
import { type Contract, count, credits, deleted, list, time } from './contract.ts'

/** Schemas of the endpoints for agents and their runs. */

const agentRow = z.strictObject({
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

const trigger = z.discriminatedUnion('kind', [
  z.strictObject({ name: z.string(), kind: z.literal('schedule'), cron: z.string(), active: z.boolean() }),
  z.strictObject({ name: z.string(), kind: z.literal('webhook'), secret_set: z.boolean() }),
])

const agent = agentRow.extend({ definition: agentDefinition, triggers: z.array(trigger) })

const agentVersion = z.strictObject({ version: count, author: z.string(), created_at: time })

const failure = z.strictObject({ code: z.string(), message: z.string() }).nullable()

/** Texts of people and answers of models are not shown: they belong to the run's user. */
const runRow = z.strictObject({
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

const attempt = z.strictObject({
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

const verdict = z.strictObject({
  step: count,
  attempt: count,
  result: z.enum(['pass', 'fail', 'not_evaluated', 'unknown']),
  reason: z.string().optional(),
  model: z.string().optional(),
  response_id: z.string().optional(),
  calls: count.optional(),
  checks: z.array(z.strictObject({ type: z.string(), passed: z.boolean() })).optional(),
  criteria: z.array(z.strictObject({ quote: z.string(), met: z.boolean() })).optional(),
  cost: credits,
  created_at: time,
})

const run = runRow.extend({ attempts: z.array(attempt), verdicts: z.array(verdict) })

export const agentContracts = {
  'agents.list': { query: agentListQuery, answer: list(agentRow) },
  'agents.create': { body: agentCreation, answer: agent, status: 201, errors: ['unprocessable'] },
  'agents.show': { answer: agent },
  'agents.change': { body: agentUpdate, answer: agent, errors: ['unprocessable'] },
  'agents.remove': { answer: deleted },
  'agents.versions': { query: pageQuery, answer: list(agentVersion) },
  'agents.version': { answer: agentVersion.extend({ definition: agentDefinition }) },
  'agents.renew-secret': { answer: z.strictObject({ secret: z.string() }), noStore: true },
  'runs.list': { query: runListQuery, answer: list(runRow) },
  'runs.show': { answer: run },
  'runs.cancel': { answer: run, errors: ['unprocessable'] },
  'runs.rerun': { answer: run.extend({ warning: z.string().optional() }), errors: ['unprocessable'] },
} satisfies Record<string, Contract>
