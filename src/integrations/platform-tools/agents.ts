import { z } from 'zod'
import { type PlatformHints, platformError, platformTool, READS } from './platform-tool.ts'

const NOT_YET = platformError('unavailable', 'This deployment has no agents yet.')

const runId = z.uuid().describe('The id of a run.')
const WRITES: PlatformHints = { readOnlyHint: false, destructiveHint: false, openWorldHint: true }

const agent = z.object({
  agentId: z.string(),
  name: z.string(),
  description: z.string(),
  createdAt: z.string(),
  creatorName: z.string(),
  metadata: z.record(z.string(), z.unknown()),
})
const agentDetail = z.object({
  agentId: z.string(),
  name: z.string(),
  description: z.string(),
  inputs: z.array(z.string()),
  hasTriggers: z.boolean(),
  modelsInUse: z.array(z.string()),
  recentRunIds: z.array(z.string()),
  lastRunAtUtc: z.string().nullable(),
  metadata: z.record(z.string(), z.unknown()),
})
const run = z.object({
  runId: z.string(),
  agentId: z.string().nullable(),
  conversationId: z.string().nullable(),
  createdAtUtc: z.string(),
  endedAtUtc: z.string().nullable(),
  result: z.string().nullable(),
  status: z.enum(['in_progress', 'success', 'failure', 'cancelled']),
})
const startedRun = z.object({ runId: z.string(), conversationId: z.string() })

/** A tool whose work needs agents, which do not exist yet: its schemas are final, its answer is `unavailable`. */
const agentTool = (
  name: `platform_${string}`,
  title: string,
  description: string,
  input: z.ZodType,
  output: z.ZodType,
  hints: PlatformHints,
) =>
  platformTool<unknown, z.ZodType>({
    name,
    title,
    description,
    input,
    output,
    hints,
    run: async () => NOT_YET,
  })

export const agentTools = [
  agentTool(
    'platform_list_agents',
    'List agents',
    'Lists the agents that you may run, with their ids.',
    z.strictObject({
      query: z.string().min(1).max(200).optional().describe('Words of the name or description.'),
      limit: z.int().min(1).max(100).default(20),
      cursor: z.string().max(500).optional(),
    }),
    z.object({ items: z.array(agent), total: z.int() }),
    READS,
  ),
  agentTool(
    'platform_get_agent',
    'Get an agent',
    'Describes one agent: the inputs it expects, its models and its recent runs.',
    z.strictObject({ agent_id: z.uuid() }),
    agentDetail,
    READS,
  ),
  agentTool(
    'platform_run_agent',
    'Run an agent',
    'Starts a run of an agent and returns at once, or after it has ended within wait_seconds.',
    z.strictObject({
      agent_id: z.uuid(),
      inputs: z
        .array(z.strictObject({ name: z.string(), value: z.string() }))
        .max(100)
        .default([]),
      idempotency_key: z
        .string()
        .min(1)
        .max(200)
        .optional()
        .describe('A repeated call with it starts no second run.'),
      wait_seconds: z.int().min(0).max(25).default(0),
    }),
    run,
    WRITES,
  ),
  agentTool(
    'platform_get_run',
    'Get a run',
    'Reads the state and the result of a run.',
    z.strictObject({
      run_id: runId,
      include: z
        .array(z.enum(['steps', 'result']))
        .max(2)
        .default(['result']),
    }),
    run,
    READS,
  ),
  agentTool(
    'platform_cancel_run',
    'Cancel a run',
    'Stops a run that is in progress.',
    z.strictObject({ run_id: runId }),
    run,
    { ...WRITES, destructiveHint: true, idempotentHint: true },
  ),
  agentTool(
    'platform_restart_run',
    'Restart a run',
    'Starts a new run with the inputs of another one and the latest version of its agent.',
    z.strictObject({ run_id: runId }),
    startedRun,
    WRITES,
  ),
  agentTool(
    'platform_get_run_evals',
    'Get the evaluation of a run',
    'Reads the verdict on a run and on each of its steps.',
    z.strictObject({ run_id: runId }),
    z.object({
      runId: z.string(),
      result: z.enum(['pass', 'fail', 'partial', 'pending', 'skipped', 'unknown']),
      steps: z.array(
        z.object({
          stepNumber: z.int(),
          name: z.string().nullable(),
          result: z.enum(['pass', 'fail', 'not_evaluated', 'unknown']).nullable(),
          explanation: z.string().nullable(),
        }),
      ),
    }),
    READS,
  ),
]
