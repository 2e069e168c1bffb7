import * as z from 'zod'
import type { Principal } from '../../identity/principal.ts'
import type { Clock } from '../../lib/clock.ts'
import { errorText, logEvent } from '../../lib/log.ts'
import { pause } from '../../lib/pause.ts'
import {
  type AgentDetail,
  type AgentSummary,
  agentDetail,
  agentSummary,
  type RunEvaluation,
  runEvaluation,
  type ShownRun,
  type ShownStep,
  type StartedRun,
  shownRun,
  shownStep,
  startedRun,
} from '../../wire/agent-answers.ts'
import { type InputValue, inputValues } from '../../wire/agents.ts'
import type { KeyScope } from '../../wire/key-scopes.ts'
import { encodeJsonCursor, isPlainText, jsonCursor } from '../../wire/page-cursor.ts'
import {
  output,
  outputOrError,
  type PlatformHints,
  platformError,
  platformTool,
  READS,
} from './platform-tool.ts'

/**
 * Operations on agents and runs for the caller of a request. Their implementation is in a folder that this one does not import.
 * Ids are UUIDs in lower case; all throw ApiError, `not_found` for an object that the caller may not see.
 */
export interface AgentOperations {
  list(
    principal: Principal,
    page: { limit: number; offset: number; search?: string | undefined },
  ): Promise<{ items: AgentSummary[]; total: number }>
  describe(principal: Principal, agentId: string): Promise<AgentDetail>
  /** @param request.idempotencyKey null for a request that cannot be recognized again. */
  start(
    principal: Principal,
    request: { agentId: string; inputs: readonly InputValue[]; idempotencyKey: string | null },
  ): Promise<StartedRun>
  restart(principal: Principal, runId: string, idempotencyKey: string | null): Promise<StartedRun>
  readRun(principal: Principal, runId: string): Promise<ShownRun>
  readSteps(principal: Principal, runId: string): Promise<ShownStep[]>
  evaluate(principal: Principal, runId: string): Promise<RunEvaluation>
  /** Ends a run that is in progress. One that is already cancelled stays so. */
  cancel(principal: Principal, runId: string): Promise<void>
}

export interface AgentToolDeps {
  clock: Clock
  agents: AgentOperations
}

const SCOPE: KeyScope = 'agents'

/** The effects of an agent depend on its tools. */
const RUNS: PlatformHints = { readOnlyHint: false, destructiveHint: true, openWorldHint: true }

const agentId = z.uuid().toLowerCase().describe('The id of an agent.')
const runId = z.uuid().toLowerCase().describe('The id of a run.')
const idempotencyKey = z
  .string()
  .regex(/^[\x21-\x7e]([\x20-\x7e]{0,198}[\x21-\x7e])?$/)
  .optional()
  .describe(
    'A repeated call with the same key within 24 hours finds the first run, and starts no second one.',
  )

const listInput = z.strictObject({
  query: z
    .string()
    .min(1)
    .max(200)
    .refine(isPlainText)
    .optional()
    .describe('Part of a name or a description.'),
  limit: z.int().min(1).max(100).default(20),
  cursor: z.string().max(500).optional(),
})

/** Start of a page. */
const cursorSchema = jsonCursor(z.tuple([z.literal('offset'), z.int().min(0).max(1_000_000)]))

const listAgents = platformTool<AgentToolDeps, typeof listInput>({
  name: 'platform_list_agents',
  title: 'List agents',
  description: 'Lists the agents that you may run, with their ids.',
  input: listInput,
  output: z.object({ items: z.array(agentSummary), total: z.int(), next_cursor: z.string().nullable() }),
  hints: READS,
  scope: SCOPE,
  async run({ agents }, principal, { query: search, limit, cursor }) {
    const from = cursor === undefined ? null : cursorSchema.safeParse(cursor)
    if (from?.success === false) return platformError('invalid_input', 'The cursor is not one of this list.')
    const offset = from?.data[1] ?? 0
    const { items, total } = await agents.list(principal, { limit, offset, search })
    const next = offset + items.length
    const hasMore = items.length > 0 && next < total
    return output({ items, total, next_cursor: hasMore ? encodeJsonCursor(['offset', next]) : null })
  },
})

const agentInput = z.strictObject({ agent_id: agentId })

const getAgent = platformTool<AgentToolDeps, typeof agentInput>({
  name: 'platform_get_agent',
  title: 'Get an agent',
  description: 'Describes one agent: the inputs it expects, its models and your recent runs of it.',
  input: agentInput,
  output: agentDetail,
  hints: READS,
  scope: SCOPE,
  run: ({ agents }, principal, { agent_id: id }) => outputOrError(agents.describe(principal, id)),
})

const runInput = z.strictObject({
  agent_id: agentId,
  inputs: inputValues.default([]).describe('Values by the names of the inputs. Unknown names are dropped.'),
  idempotency_key: idempotencyKey,
  wait_seconds: z.int().min(0).max(25).default(0),
})

const runAgent = platformTool<AgentToolDeps, typeof runInput>({
  name: 'platform_run_agent',
  title: 'Run an agent',
  description:
    'Starts a run of an agent, and returns it at once, or when it has ended within wait_seconds. Read a run that is still in ' +
    'progress with platform_get_run, every 5 to 10 seconds.',
  input: runInput,
  output: shownRun
    .partial()
    .required({ runId: true, conversationId: true })
    .describe('Only the ids where the run was started, but cannot be read at the moment.'),
  hints: RUNS,
  scope: SCOPE,
  run: (deps, principal, input, signal) => outputOrError(startedAndRead(deps, principal, input, signal)),
})

/** Time between two looks at a run that is waited for. */
const POLL_MS = 1_000

async function startedAndRead(
  { agents, clock }: AgentToolDeps,
  principal: Principal,
  { agent_id: id, inputs, idempotency_key: key, wait_seconds: seconds }: z.output<typeof runInput>,
  signal: AbortSignal,
): Promise<StartedRun | ShownRun> {
  const until = clock() + seconds * 1_000
  const started = await agents.start(principal, { agentId: id, inputs, idempotencyKey: key ?? null })
  try {
    let run = await agents.readRun(principal, started.runId)
    while (run.status === 'in_progress' && clock() < until) {
      await pause(Math.min(POLL_MS, until - clock()), signal)
      run = await agents.readRun(principal, started.runId)
    }
    return run
  } catch (error) {
    signal.throwIfAborted()
    // An error would have the client start a second run.
    logEvent('warn', 'started_run_not_read', { run_id: started.runId, error: errorText(error) })
    return started
  }
}

const getRunInput = z.strictObject({
  run_id: runId,
  include: z
    .array(z.enum(['steps', 'result']))
    .max(2)
    .default(['result'])
    .describe('The attempts of its steps, and the text that it ended with.'),
})

const getRun = platformTool<AgentToolDeps, typeof getRunInput>({
  name: 'platform_get_run',
  title: 'Get a run',
  description: 'Reads the state of a run, and what it ended with.',
  input: getRunInput,
  output: shownRun.partial({ result: true }).extend({ steps: z.array(shownStep).optional() }),
  hints: READS,
  scope: SCOPE,
  run: ({ agents }, principal, { run_id: id, include }) =>
    outputOrError(readWith(agents, principal, id, include)),
})

async function readWith(
  agents: AgentOperations,
  principal: Principal,
  id: string,
  include: ReadonlyArray<'steps' | 'result'>,
) {
  const [{ result, ...run }, steps] = await Promise.all([
    agents.readRun(principal, id),
    include.includes('steps') ? agents.readSteps(principal, id) : null,
  ])
  return { ...run, ...(include.includes('result') && { result }), ...(steps && { steps }) }
}

const cancelInput = z.strictObject({ run_id: runId })

const cancelRun = platformTool<AgentToolDeps, typeof cancelInput>({
  name: 'platform_cancel_run',
  title: 'Cancel a run',
  description: 'Stops a run that is in progress. What its steps have done is not undone.',
  input: cancelInput,
  output: shownRun,
  hints: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
  scope: SCOPE,
  run: ({ agents }, principal, { run_id: id }) =>
    outputOrError(agents.cancel(principal, id).then(() => agents.readRun(principal, id))),
})

const restartInput = z.strictObject({ run_id: runId, idempotency_key: idempotencyKey })

const restartRun = platformTool<AgentToolDeps, typeof restartInput>({
  name: 'platform_restart_run',
  title: 'Restart a run',
  description: 'Starts a new run with the inputs of another one and the latest version of its agent.',
  input: restartInput,
  output: startedRun,
  hints: RUNS,
  scope: SCOPE,
  run: ({ agents }, principal, { run_id: id, idempotency_key: key = null }) =>
    outputOrError(agents.restart(principal, id, key)),
})

const evaluationInput = z.strictObject({ run_id: runId })

const getRunEvaluation = platformTool<AgentToolDeps, typeof evaluationInput>({
  name: 'platform_get_run_evals',
  title: 'Get the evaluation of a run',
  description: 'Reads the verdict on a run and on each of its steps.',
  input: evaluationInput,
  output: runEvaluation,
  hints: READS,
  scope: SCOPE,
  run: ({ agents }, principal, { run_id: id }) => outputOrError(agents.evaluate(principal, id)),
})

export const agentTools = [listAgents, getAgent, runAgent, getRun, cancelRun, restartRun, getRunEvaluation]
