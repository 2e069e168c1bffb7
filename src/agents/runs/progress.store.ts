import { type SQL, sql } from 'drizzle-orm'
import { agentVersions, dueVerdicts, runOutbox, runSteps, runs } from '../../../schema/agents.ts'
import type { Database } from '../../../schema/database.ts'
import { conversations } from '../../../schema/responses.ts'
import { timeParameter } from '../../../schema/sql-values.ts'
import { newId } from '../../lib/ids.ts'
import { isReadable, storedDefinition } from '../definitions/stored-definition.ts'
import type { LeasedRun, RunState, StepAttempt } from './run.ts'
import type { RunChange } from './transitions.ts'

// Changes of runs. Each is one statement that happens only at the revision that it was decided on.

/** A run at a revision, as messages name it. */
export interface RunRevision {
  organizationId: string
  runId: string
  rev: number
}

const isRun = ({ organizationId, runId }: Pick<RunRevision, 'organizationId' | 'runId'>) =>
  sql`${runs.id} = ${runId} AND ${runs.organizationId} = ${organizationId}`

/** A run that no delivery was given. Times are in milliseconds since the epoch. */
export interface FoundRun extends RunState {
  /** End of the lease of a delivery; null if none holds the run. */
  leasedUntil: number | null
  /** When the message of its revision is due, if it is not published; otherwise null. */
  unpublishedDueAt: number | null
}

/** A lease names the message of its delivery, whose next delivery may take it over. */
export const leaseToken = (messageId: string | null): string => `${newId('lease')}/${messageId ?? ''}`

interface Leasing {
  /** Milliseconds since the epoch. */
  now: number
  leasedUntil: number
  /** The token that `leaseToken` creates. */
  token: string
  /** The message whose lease is taken over; null for none. */
  takesOver: string | null
}

/**
 * Leases a run that is in progress at this revision, unless another delivery holds it. Two deliveries that both work on a run
 * do no harm: only the one with the lease changes it.
 * @returns `refused`: it is ended, at another revision, or leased; `run` is null for one that does not exist, or was ended here
 *   because its definition cannot be read. @throws ApiError internal for another run with such a definition.
 */
export async function leaseRun(
  database: Database,
  revision: RunRevision,
  { now, leasedUntil, token, takesOver }: Leasing,
): Promise<{ kind: 'leased'; run: LeasedRun } | { kind: 'refused'; run: FoundRun | null }> {
  const results = await database.batch([
    database.execute(sql`UPDATE ${runs} SET leased_until = ${timeParameter(leasedUntil)}, lease_token = ${token}
      WHERE ${isRun(revision)} AND rev = ${revision.rev} AND status = 'in_progress'
        AND (leased_until IS NULL OR leased_until <= ${timeParameter(now)}
          OR split_part(lease_token, '/', 2) = nullif(${takesOver}::text, ''))`),
    database.execute(stateQuery(isRun(revision))),
    database.execute(attemptsQuery(revision)),
  ])
  const [row] = results[1].rows
  const isLeased = row?.leaseToken === token
  if (isLeased && !isReadable(row.definition)) {
    await failUnreadable(database, revision, { now, token })
    return { kind: 'refused', run: null }
  }
  const run = foundRun(results[1].rows, results[2].rows)
  return run && isLeased ? { kind: 'leased', run: { ...run, leaseToken: token } } : { kind: 'refused', run }
}

/** Ends a run whose definition a later release cannot read: it would be repeated for ever. */
async function failUnreadable(
  database: Database,
  revision: RunRevision,
  { now, token }: { now: number; token: string },
): Promise<void> {
  const error = { code: 'invalid_definition', message: 'The definition of the agent cannot be read.' }
  await database.batch([
    database.execute(sql`UPDATE ${runs} SET rev = rev + 1, status = 'failure', error = ${JSON.stringify(error)}::jsonb,
        ended_at = ${timeParameter(now)}, leased_until = NULL, lease_token = NULL
      WHERE ${isRun(revision)} AND lease_token = ${token}`),
    database.execute(sql`UPDATE ${runSteps} SET status = 'failed', error = ${JSON.stringify(error)}::jsonb,
        ended_at = ${timeParameter(now)}
      WHERE run_id = ${revision.runId} AND organization_id = ${revision.organizationId} AND status = 'running'`),
    database.execute(sql`DELETE FROM ${runOutbox}
      WHERE run_id = ${revision.runId} AND organization_id = ${revision.organizationId}`),
  ])
}

/** @returns null without such a run in the organization. */
export async function selectRunState(
  database: Database,
  run: Pick<RunRevision, 'organizationId' | 'runId'>,
): Promise<FoundRun | null> {
  const results = await database.batch([
    database.execute(stateQuery(isRun(run))),
    database.execute(attemptsQuery(run)),
  ])
  return foundRun(results[0].rows, results[1].rows)
}

const stateQuery = (condition: SQL): SQL =>
  sql`SELECT ${runs.id}, ${runs.organizationId} AS "organizationId", ${runs.userId} AS "userId",
      ${runs.conversationId} AS "conversationId", ${runs.status}, ${runs.rev}, ${runs.step}, ${runs.attempt},
      ${runs.sealedInputs} AS "sealedInputs", ${milliseconds(sql`${runs.deadlineAt}`)} AS "deadlineAt",
      ${runs.leaseToken} AS "leaseToken", ${milliseconds(sql`${runs.leasedUntil}`)} AS "leasedUntil",
      (SELECT ${milliseconds(sql`${runOutbox.dueAt}`)} FROM ${runOutbox} WHERE ${runOutbox.runId} = ${runs.id}
        AND ${runOutbox.rev} = ${runs.rev} AND ${runOutbox.publishedAt} IS NULL) AS "unpublishedDueAt",
      ${agentVersions.definition}
    FROM ${runs} JOIN ${agentVersions}
      ON ${agentVersions.agentId} = ${runs.agentId} AND ${agentVersions.version} = ${runs.agentVersion}
    WHERE ${condition}`

const attemptsQuery = ({ organizationId, runId }: Pick<RunRevision, 'organizationId' | 'runId'>): SQL =>
  sql`SELECT number, attempt, status, response_id AS "responseId", output, had_effects AS "hadEffects", cost,
      ${milliseconds(sql`created_at`)} AS "createdAt", ${milliseconds(sql`deadline_at`)} AS "deadlineAt"
    FROM ${runSteps} WHERE run_id = ${runId} AND organization_id = ${organizationId} ORDER BY number, attempt`

/** A time as a number: drivers read timestamps of plain statements as text. */
const milliseconds = (column: SQL): SQL => sql`(extract(epoch from ${column}) * 1000)::float8`

type Times<Row> = Omit<Row, 'createdAt' | 'deadlineAt' | 'cost'> & {
  createdAt: number
  deadlineAt: number
  cost: number | string
}

type ProgressRow = Omit<FoundRun, 'deadlineAt' | 'attempts'> & {
  deadlineAt: number
  leaseToken: string | null
}

function foundRun(
  rows: ReadonlyArray<Record<string, unknown>>,
  attempts: ReadonlyArray<Record<string, unknown>>,
): FoundRun | null {
  const found = rows[0] as ProgressRow | undefined
  if (!found) return null
  const { leaseToken: _, leasedUntil, unpublishedDueAt, ...row } = found
  return {
    ...row,
    leasedUntil: leasedUntil === null ? null : Number(leasedUntil),
    unpublishedDueAt: unpublishedDueAt === null ? null : Number(unpublishedDueAt),
    deadlineAt: new Date(Number(row.deadlineAt)),
    definition: storedDefinition(row.definition),
    attempts: (attempts as unknown as Array<Times<StepAttempt>>).map((each) => ({
      ...each,
      cost: Number(each.cost),
      createdAt: new Date(Number(each.createdAt)),
      deadlineAt: new Date(Number(each.deadlineAt)),
    })),
  }
}

/** Ends a lease without a change, so that a repeated delivery need not wait for it. */
export async function releaseRun(database: Database, run: RunRevision, leaseToken: string): Promise<void> {
  await database.execute(sql`UPDATE ${runs} SET leased_until = NULL, lease_token = NULL
    WHERE ${isRun(run)} AND lease_token = ${leaseToken}`)
}

/** Options of a change that does not come from a delivery. */
interface ChangeOptions {
  /** Response id of the attempt that begins. */
  responseId?: string | undefined
  /** Response id of the call that judges the step which the change completes; absent if none is due. */
  judgeResponseId?: string | undefined
  /** Milliseconds since the epoch. */
  now: number
  /** Another deadline of the run. */
  deadlineAt?: number
  /** Whether a delivery that holds the run keeps its lease: the message waits for it. */
  keepsLease?: boolean
}

/**
 * Stores a change of a run, its attempts and its message at once.
 * @param run as the change was decided on. @returns the new revision; null when the run has changed since.
 */
export async function storeChange(
  database: Database,
  run: RunState & { leaseToken?: string },
  change: RunChange,
  { responseId, judgeResponseId, now, deadlineAt, keepsLease = false }: ChangeOptions,
): Promise<RunRevision | null> {
  const { id: runId, organizationId, rev } = run
  const isHeld = run.leaseToken === undefined ? sql`true` : sql`${runs.leaseToken} = ${run.leaseToken}`
  const { rows } = await database.execute<{ rev: number }>(sql`
    WITH changed AS (
      UPDATE ${runs} SET rev = rev + 1, status = ${change.status}, result = ${change.result},
        error = ${change.error && JSON.stringify(change.error)}::jsonb,
        ended_at = ${change.status === 'in_progress' ? sql`NULL` : timeParameter(now)},
        step = ${change.next?.number ?? run.step}, attempt = ${change.next?.attempt ?? run.attempt},
        deadline_at = ${deadlineAt === undefined ? sql`deadline_at` : timeParameter(deadlineAt)}
        ${keepsLease ? sql`` : sql`, leased_until = NULL, lease_token = NULL`}
      WHERE ${isRun({ organizationId, runId })} AND rev = ${rev} AND status = ${run.status} AND ${isHeld}
      RETURNING id, organization_id, user_id, conversation_id, rev
    ), ${endedAttempt(run, change, now)} ${begunAttempt(change, responseId, now)}
    ${keptConversation(run, change, now)} ${dueVerdict(run, judgeResponseId, now)}
    done AS (
      DELETE FROM ${runOutbox} USING changed WHERE ${runOutbox.runId} = changed.id AND ${runOutbox.rev} < changed.rev
    ) ${announcement(change)}
    SELECT rev FROM changed`)
  const [changed] = rows
  return changed ? { organizationId, runId, rev: changed.rev } : null
}

function endedAttempt({ step, attempt }: RunState, { ended }: RunChange, now: number): SQL {
  if (ended === null) return sql``
  return sql`ended AS (
    UPDATE ${runSteps} SET status = ${ended.status}, output = ${ended.output},
      error = ${ended.error && JSON.stringify(ended.error)}::jsonb, cost = ${ended.cost},
      had_effects = ${ended.hadEffects}, ended_at = ${timeParameter(now)}
    FROM changed
    WHERE ${runSteps.runId} = changed.id AND ${runSteps.number} = ${step} AND ${runSteps.attempt} = ${attempt}
  ),`
}

function begunAttempt({ next }: RunChange, responseId: string | undefined, now: number): SQL {
  if (next === null) return sql``
  return sql`begun AS (
    INSERT INTO ${runSteps} (run_id, number, attempt, organization_id, status, response_id, created_at, deadline_at)
    SELECT id, ${next.number}::int, ${next.attempt}::int, organization_id, 'running', ${responseId ?? ''}::text,
      ${timeParameter(now)}, ${timeParameter(next.deadlineAt)} FROM changed
  ),`
}

/** Retention may have deleted the conversation of a run that failed in its first step, because it was empty. */
function keptConversation({ status }: RunState, { next }: RunChange, now: number): SQL {
  if (status === 'in_progress' || next?.number !== 1) return sql``
  return sql`kept AS (
    INSERT INTO ${conversations} (id, organization_id, user_id, next_position, created_at)
    SELECT conversation_id, organization_id, user_id, 0, ${timeParameter(now)} FROM changed ON CONFLICT DO NOTHING
  ),`
}

function dueVerdict({ step, attempt }: RunState, judgeResponseId: string | undefined, now: number): SQL {
  if (judgeResponseId === undefined) return sql``
  return sql`due AS (
    INSERT INTO ${dueVerdicts} (run_id, number, attempt, organization_id, response_id, created_at, due_at)
    SELECT id, ${step}::int, ${attempt}::int, organization_id, ${judgeResponseId}::text, ${timeParameter(now)}, ${timeParameter(now)}
    FROM changed ON CONFLICT (run_id, number) DO NOTHING
  ),`
}

function announcement({ dueAt }: RunChange): SQL {
  if (dueAt === null) return sql``
  return sql`, announced AS (
    INSERT INTO ${runOutbox} (run_id, rev, organization_id, due_at)
    SELECT id, rev, organization_id, ${timeParameter(dueAt)} FROM changed
  )`
}

/**
 * Stores what the response of a cancelled run has cost by its end, and that nothing is left to do. Two deliveries may do so,
 * one of which has not found the response: the higher cost stays.
 */
export async function finishCancelled(
  database: Database,
  { organizationId, runId, rev }: RunRevision,
  run: RunState,
  { cost, hadEffects }: { cost: number; hadEffects: boolean },
): Promise<void> {
  await database.execute(sql`
    WITH done AS (
      DELETE FROM ${runOutbox} WHERE run_id = ${runId} AND organization_id = ${organizationId} AND rev = ${rev}
    )
    UPDATE ${runSteps} SET cost = greatest(cost, ${cost}), had_effects = had_effects OR ${hadEffects}
    WHERE run_id = ${runId} AND organization_id = ${organizationId} AND number = ${run.step} AND attempt = ${run.attempt}
      AND status = 'cancelled'`)
}

/** Marks a message as published, so that the sweep repeats it later. */
export async function markPublished(
  database: Database,
  { organizationId, runId, rev }: RunRevision,
  now: number,
): Promise<void> {
  await database.execute(sql`UPDATE ${runOutbox} SET published_at = ${timeParameter(now)}
    WHERE run_id = ${runId} AND organization_id = ${organizationId} AND rev = ${rev}`)
}
