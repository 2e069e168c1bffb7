import * as z from 'zod'

/** The public forms of agents and runs, on their surface and in the tools for clients of MCP (interface: Agents). */

const metadata = z.record(z.string(), z.unknown())

export const agentSummary = z.object({
  agentId: z.string(),
  name: z.string(),
  description: z.string(),
  createdAt: z.string(),
  creatorName: z.string(),
  metadata,
})

export const agentDetail = z.object({
  agentId: z.string(),
  name: z.string(),
  description: z.string(),
  inputs: z.array(z.string()),
  hasTriggers: z.boolean(),
  modelsInUse: z.array(z.string()),
  /** Ids of the caller's runs, newest first. */
  recentRunIds: z.array(z.string()),
  lastRunAtUtc: z.string().nullable(),
  metadata,
})

export const startedRun = z.object({ runId: z.string(), conversationId: z.string() })

export const shownRun = z.object({
  ...startedRun.shape,
  /** Null for a deleted agent. */
  agentId: z.string().nullable(),
  createdAtUtc: z.string(),
  endedAtUtc: z.string().nullable(),
  /** The final message as JSON with `role` and `parts`. */
  result: z.string().nullable(),
  status: z.enum(['in_progress', 'success', 'failure', 'cancelled']),
})

/** An attempt of a step that has begun. */
export const shownStep = z.object({
  stepNumber: z.int(),
  name: z.string().nullable(),
  attempt: z.int(),
  status: z.enum(['running', 'completed', 'failed', 'cancelled']),
  error: z.object({ code: z.string(), message: z.string() }).nullable(),
  createdAtUtc: z.string(),
  endedAtUtc: z.string().nullable(),
})

export const runEvaluation = z.object({
  runId: z.string(),
  result: z.enum(['pass', 'fail', 'partial', 'pending', 'skipped', 'unknown']),
  steps: z.array(
    z.object({
      stepNumber: z.int(),
      name: z.string().nullable(),
      /** Null while the verdict is awaited. */
      result: z.enum(['pass', 'fail', 'not_evaluated', 'unknown']).nullable(),
      explanation: z.string().nullable(),
    }),
  ),
})

export type AgentSummary = z.infer<typeof agentSummary>
export type AgentDetail = z.infer<typeof agentDetail>
export type StartedRun = z.infer<typeof startedRun>
export type ShownRun = z.infer<typeof shownRun>
export type ShownStep = z.infer<typeof shownStep>
export type RunEvaluation = z.infer<typeof runEvaluation>
