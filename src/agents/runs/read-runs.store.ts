import { and, asc, desc, eq, sql } from 'drizzle-orm'
import { agents, agentVersions, runSteps, runs, runVerdicts } from '../../../schema/agents.ts'
import type { Database } from '../../../schema/database.ts'
import { equal, type OrganizationScope, selectPage } from '../../ledger/changes/scoped-statements.store.ts'
import type { Owner } from '../../responses/model/types.ts'
import type { RunStatus } from '../../wire/agents.ts'
import type { Page, PageRequest } from '../../wire/page-cursor.ts'

// Reads runs: of their user, where those of others are treated as missing, and of an organization for its administrators.

const isOwn = ({ organizationId, userId }: Owner, runId: string) =>
  and(eq(runs.organizationId, organizationId), eq(runs.userId, userId), eq(runs.id, runId))

const isOfAgent = and(eq(agents.id, runs.agentId), eq(agents.organizationId, runs.organizationId))

/** A run as its user reads it. */
export interface ReadRun {
  id: string
  agentId: string
  agentDeletedAt: Date | null
  conversationId: string
  status: RunStatus
  result: string | null
  createdAt: Date
  endedAt: Date | null
  /** Model of its current step, by whose policies the result is redacted. */
  agentVersion: number
  step: number
  definition: unknown
}

export async function selectRun(database: Database, owner: Owner, runId: string): Promise<ReadRun | null> {
  const [row] = await database
    .select({
      id: runs.id,
      agentId: runs.agentId,
      agentDeletedAt: agents.deletedAt,
      conversationId: runs.conversationId,
      status: runs.status,
      result: runs.result,
      createdAt: runs.createdAt,
      endedAt: runs.endedAt,
      agentVersion: runs.agentVersion,
      step: runs.step,
      definition: agentVersions.definition,
    })
    .from(runs)
    .innerJoin(agents, isOfAgent)
    .innerJoin(
      agentVersions,
      and(eq(agentVersions.agentId, runs.agentId), eq(agentVersions.version, runs.agentVersion)),
    )
    .where(isOwn(owner, runId))
  return row ?? null
}

/** The inputs of a run, for another one. */
export async function selectRunInputs(
  database: Database,
  owner: Owner,
  runId: string,
): Promise<{ agentId: string; sealedInputs: string } | null> {
  const [row] = await database
    .select({ agentId: runs.agentId, sealedInputs: runs.sealedInputs })
    .from(runs)
    .where(isOwn(owner, runId))
  return row ?? null
}

/** The last attempt of a step, and the verdict about it. */
export interface EvaluatedStep {
  number: number
  status: 'running' | 'completed' | 'failed' | 'cancelled'
  verdict: 'pass' | 'fail' | 'not_evaluated' | 'unknown' | null
  explanation: string | null
}

/** The steps of a run that were begun. */
export async function selectEvaluatedSteps(
  { database, organizationId }: OrganizationScope,
  runId: string,
): Promise<EvaluatedStep[]> {
  return database
    .selectDistinctOn([runSteps.number], {
      number: runSteps.number,
      status: runSteps.status,
      verdict: runVerdicts.result,
      explanation: runVerdicts.explanation,
    })
    .from(runSteps)
    .leftJoin(
      runVerdicts,
      and(
        eq(runVerdicts.runId, runSteps.runId),
        eq(runVerdicts.number, runSteps.number),
        eq(runVerdicts.attempt, runSteps.attempt),
        eq(runVerdicts.organizationId, runSteps.organizationId),
      ),
    )
    .where(and(eq(runSteps.runId, runId), eq(runSteps.organizationId, organizationId)))
    .orderBy(asc(runSteps.number), desc(runSteps.attempt))
}

const runColumns = {
  id: runs.id,
  agentId: runs.agentId,
  agentVersion: runs.agentVersion,
  userId: runs.userId,
  conversationId: runs.conversationId,
  origin: runs.origin,
  restartedFrom: runs.restartedFrom,
  status: runs.status,
  step: runs.step,
  attempt: runs.attempt,
  error: runs.error,
  createdAt: runs.createdAt,
  endedAt: runs.endedAt,
  deadlineAt: runs.deadlineAt,
  /** The cost includes the calls of the judge for stored verdicts. */
  cost: sql<number>`(select coalesce(sum(${runSteps.cost}), 0) from ${runSteps}
    where ${runSteps.runId} = ${runs.id}) + (select coalesce(sum(${runVerdicts.cost}), 0) from ${runVerdicts}
    where ${runVerdicts.runId} = ${runs.id})`.mapWith(Number),
}

/** A run as administrators see it: without inputs, outputs and result. */
export type RunRow = Pick<typeof runs.$inferSelect, Exclude<keyof typeof runColumns, 'cost'>> & {
  cost: number
}

export function selectRuns(
  { database, organizationId }: OrganizationScope,
  agentId: string,
  filter: { status?: RunStatus | undefined },
  page: PageRequest,
): Promise<Page<RunRow>> {
  return selectPage(page, { at: runs.createdAt, id: runs.id }, (position, isAfter) =>
    database
      .select({ ...runColumns, position })
      .from(runs)
      .where(
        and(
          eq(runs.organizationId, organizationId),
          eq(runs.agentId, agentId),
          equal(runs.status, filter.status),
          isAfter,
        ),
      ),
  )
}

const attemptColumns = {
  number: runSteps.number,
  attempt: runSteps.attempt,
  status: runSteps.status,
  responseId: runSteps.responseId,
  error: runSteps.error,
  hadEffects: runSteps.hadEffects,
  cost: runSteps.cost,
  createdAt: runSteps.createdAt,
  endedAt: runSteps.endedAt,
}

export type AttemptRow = Pick<typeof runSteps.$inferSelect, keyof typeof attemptColumns>

const verdictColumns = {
  number: runVerdicts.number,
  attempt: runVerdicts.attempt,
  result: runVerdicts.result,
  details: runVerdicts.details,
  cost: runVerdicts.cost,
  createdAt: runVerdicts.createdAt,
}

export type VerdictRow = Pick<typeof runVerdicts.$inferSelect, keyof typeof verdictColumns>

export async function selectRunRow(
  { database, organizationId }: OrganizationScope,
  runId: string,
): Promise<(RunRow & { attempts: AttemptRow[]; verdicts: VerdictRow[] }) | null> {
  const [rows, attempts, verdicts] = await database.batch([
    database
      .select(runColumns)
      .from(runs)
      .where(and(eq(runs.organizationId, organizationId), eq(runs.id, runId))),
    attemptsQuery({ database, organizationId }, runId),
    database
      .select(verdictColumns)
      .from(runVerdicts)
      .where(and(eq(runVerdicts.organizationId, organizationId), eq(runVerdicts.runId, runId)))
      .orderBy(asc(runVerdicts.number)),
  ])
  const [row] = rows
  return row ? { ...row, attempts, verdicts } : null
}

/** The attempts of a run's steps, in order. */
export const selectAttempts = async (scope: OrganizationScope, runId: string): Promise<AttemptRow[]> =>
  attemptsQuery(scope, runId)

const attemptsQuery = ({ database, organizationId }: OrganizationScope, runId: string) =>
  database
    .select(attemptColumns)
    .from(runSteps)
    .where(and(eq(runSteps.organizationId, organizationId), eq(runSteps.runId, runId)))
    .orderBy(asc(runSteps.number), asc(runSteps.attempt))
