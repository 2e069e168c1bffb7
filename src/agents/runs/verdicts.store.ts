import { sql } from 'drizzle-orm'
import { dueVerdicts, runSteps, runVerdicts } from '../../../schema/agents.ts'
import type { Database } from '../../../schema/database.ts'
import { timeParameter } from '../../../schema/sql-values.ts'
import type { OverdueLimits } from '../queue/overdue-messages.ts'

// Verdicts that are due, until each is replaced by the verdict. Their changes happen only for the call that they were decided on.

export interface DueVerdict extends DueVerdictKey {
  attempt: number
  /** Response id of the judge's next or current call. */
  responseId: string
  /** Calls of the judge that ended without a verdict. */
  calls: number
  /** The fault of the answer of the judge's last call; null if there was no answer. */
  fault: string | null
  /** Micro-credits of these calls. */
  cost: number
  /** When the step was completed, in milliseconds since the epoch. */
  createdAt: number
}

/** A verdict, with what it is based on. */
export interface Verdict {
  result: 'pass' | 'fail' | 'unknown'
  explanation: string
  details: Record<string, unknown>
  /** Micro-credits. */
  cost: number
}

const isDue = ({ organizationId, runId, number }: DueVerdictKey) =>
  sql`run_id = ${runId} AND organization_id = ${organizationId} AND number = ${number}`

/** @returns null for one that is written, or of a run that is deleted. */
export async function selectDueVerdict(database: Database, key: DueVerdictKey): Promise<DueVerdict | null> {
  const { rows } = await database.execute<
    Pick<DueVerdict, 'attempt' | 'responseId' | 'calls' | 'fault'> & { cost: string; createdAt: string }
  >(sql`
    SELECT attempt, response_id AS "responseId", calls, fault, cost,
      (extract(epoch from created_at) * 1000)::float8 AS "createdAt"
    FROM ${dueVerdicts} WHERE ${isDue(key)}`)
  const [row] = rows
  return row ? { ...key, ...row, cost: Number(row.cost), createdAt: Number(row.createdAt) } : null
}

/** Writes a verdict in the place of a due one. Nothing happens for one that is written already. */
export async function insertVerdict(database: Database, due: DueVerdict, verdict: Verdict): Promise<void> {
  const { result, explanation, details, cost } = verdict
  await database.execute(sql`
    WITH due AS (
      DELETE FROM ${dueVerdicts} WHERE ${isDue(due)} AND response_id = ${due.responseId}
      RETURNING run_id, number, attempt, organization_id
    )
    INSERT INTO ${runVerdicts} (run_id, number, attempt, organization_id, result, explanation, details, cost)
    SELECT run_id, number, attempt, organization_id, ${result}::text, ${explanation}::text,
      ${JSON.stringify(details)}::jsonb, ${cost}::bigint FROM due
    ON CONFLICT (run_id, number) DO NOTHING`)
}

/** A call of the judge that follows one without a verdict. */
interface NextCall {
  responseId: string
  fault: string | null
  /** Cost of all calls that have ended. */
  cost: number
  dueAt: number
}

/** @returns whether it is stored: false when another delivery has decided on the call that ended. */
export async function storeNextCall(
  database: Database,
  due: DueVerdict,
  { responseId, fault, cost, dueAt }: NextCall,
): Promise<boolean> {
  const { rows } = await database.execute(sql`
    UPDATE ${dueVerdicts} SET response_id = ${responseId}, calls = calls + 1, fault = ${fault}, cost = ${cost},
      due_at = ${timeParameter(dueAt)}, published_at = NULL
    WHERE ${isDue(due)} AND response_id = ${due.responseId} RETURNING number`)
  return rows.length > 0
}

/** Has a verdict delivered later. @returns as `storeNextCall`. */
export async function postponeVerdict(database: Database, due: DueVerdict, dueAt: number): Promise<boolean> {
  const { rows } = await database.execute(sql`
    UPDATE ${dueVerdicts} SET due_at = ${timeParameter(dueAt)}, published_at = NULL
    WHERE ${isDue(due)} AND response_id = ${due.responseId} RETURNING number`)
  return rows.length > 0
}

/** Micro-credits that a run has cost: its attempts, and the calls of the judge. */
export async function selectRunCost(
  database: Database,
  { organizationId, runId }: Pick<DueVerdictKey, 'organizationId' | 'runId'>,
): Promise<number> {
  const isOfRun = sql`run_id = ${runId} AND organization_id = ${organizationId}`
  const { rows } = await database.execute<{ cost: string }>(sql`SELECT sum(cost) AS cost FROM (
    SELECT cost FROM ${runSteps} WHERE ${isOfRun}
    UNION ALL SELECT cost FROM ${runVerdicts} WHERE ${isOfRun}
    UNION ALL SELECT cost FROM ${dueVerdicts} WHERE ${isOfRun}) AS costs`)
  return Number(rows[0]?.cost ?? 0)
}

/** A step whose verdict is due, as messages name it. */
export interface DueVerdictKey {
  organizationId: string
  runId: string
  /** Number of the step, from 1. */
  number: number
}

/** Marks a message as published, so that the sweep repeats it later, or as lost. @param at null for lost. */
export async function markVerdictPublished(
  database: Database,
  key: DueVerdictKey,
  at: number | null,
): Promise<void> {
  await database.execute(sql`UPDATE ${dueVerdicts} SET published_at = ${at === null ? sql`NULL` : timeParameter(at)}
    WHERE ${isDue(key)}`)
}

/**
 * Takes verdicts of the whole deployment whose message is overdue: not published, or published without an effect. A second
 * job at the same time gets others.
 */
export async function takeOverdueVerdicts(
  database: Database,
  { now, overdueSince, publishedBefore, most }: OverdueLimits,
): Promise<DueVerdictKey[]> {
  const { rows } = await database.execute<{ run_id: string; organization_id: string; number: number }>(sql`
    UPDATE ${dueVerdicts} SET published_at = ${timeParameter(now)}
    WHERE ctid = ANY(ARRAY(
      SELECT ctid FROM ${dueVerdicts}
      WHERE due_at <= ${timeParameter(overdueSince)}
        AND (published_at IS NULL OR published_at <= ${timeParameter(publishedBefore)})
      ORDER BY due_at LIMIT ${most} FOR UPDATE SKIP LOCKED))
    RETURNING run_id, organization_id, number`)
  return rows.map(({ run_id: runId, organization_id: organizationId, number }) => ({
    organizationId,
    runId,
    number,
  }))
}
