import { and, asc, eq, sql } from 'drizzle-orm'
import { runOutbox, runSteps, runs } from '../../../schema/agents.ts'
import type { Database } from '../../../schema/database.ts'
import { responses } from '../../../schema/responses.ts'
import type { Owner } from '../../responses/model/types.ts'
import type { RunStatus } from '../../wire/agents.ts'
import type { RunError } from '../runs/run.ts'

/** An attempt of a step, as a reader of its run follows it. */
export interface ViewedAttempt {
  responseId: string
  status: 'running' | 'completed' | 'failed' | 'cancelled'
  /** Whether its response is stored, begun or ended. */
  hasResponse: boolean
  /**
   * Whether the attempt's response may still begin or continue. A run may be cancelled while a delivery begins the
   * response, and keeps its message until that response has ended, or cannot begin any more.
   */
  isOpen: boolean
}

/** A run, as much of it as its response shows. */
export interface RunView {
  id: string
  /** Inputs with the metadata of the request. */
  sealedInputs: string
  agentId: string
  conversationId: string
  status: RunStatus
  error: RunError | null
  createdAt: Date
  endedAt: Date | null
  /** Every attempt that was begun, in order. */
  attempts: ViewedAttempt[]
}

/** A run of this owner, as it is now; null for any other. */
export async function selectRunView(
  database: Database,
  { organizationId, userId }: Owner,
  runId: string,
): Promise<RunView | null> {
  const isOwn = and(eq(runs.organizationId, organizationId), eq(runs.userId, userId), eq(runs.id, runId))
  const { id, agentId, conversationId, status, error, createdAt, endedAt, sealedInputs } = runs
  const [rows, attempts] = await database.batch([
    database
      .select({ id, agentId, conversationId, status, error, createdAt, endedAt, sealedInputs })
      .from(runs)
      .where(isOwn),
    database
      .select({
        responseId: runSteps.responseId,
        status: runSteps.status,
        hasResponse: sql<boolean>`EXISTS (SELECT FROM ${responses}
          WHERE ${responses.id} = ${runSteps.responseId} AND ${responses.organizationId} = ${runs.organizationId})`,
        isOpen: sql<boolean>`(${runSteps.status} = 'running' OR ${runSteps.status} = 'cancelled' AND EXISTS (SELECT
          FROM ${runOutbox} WHERE ${runOutbox.runId} = ${runs.id} AND ${runOutbox.organizationId} = ${runs.organizationId}))`,
      })
      .from(runSteps)
      .innerJoin(runs, eq(runs.id, runSteps.runId))
      .where(isOwn)
      .orderBy(asc(runSteps.number), asc(runSteps.attempt)),
  ])
  const [row] = rows
  return row ? { ...row, attempts } : null
}
