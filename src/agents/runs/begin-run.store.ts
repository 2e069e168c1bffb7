import { type SQL, sql } from 'drizzle-orm'
import { agents, runOutbox, runRequests, runSteps, runs } from '../../../schema/agents.ts'
import type { Database } from '../../../schema/database.ts'
import { conversations } from '../../../schema/responses.ts'
import { timeParameter } from '../../../schema/sql-values.ts'
import type { Owner } from '../../responses/model/types.ts'

/** The identity of a request for a run: a second request with it gets the run of the first. */
export interface RequestIdentity {
  /** Hex digest of the identifying text. */
  digest: string
  /** Hex digest of the content that it has to have. */
  content: string
}

/** A new run with its first attempt. */
export interface NewRun {
  id: string
  owner: Owner
  agentId: string
  agentVersion: number
  conversationId: string
  origin: 'api' | 'restart' | 'schedule' | 'webhook'
  restartedFrom: string | null
  sealedInputs: string
  responseId: string
  /** Milliseconds since the epoch, as all times here. */
  createdAt: number
  deadlineAt: number
  stepDeadlineAt: number
}

/** A run that a request has begun, now or before. */
export interface BegunRun {
  runId: string
  conversationId: string
  isNew: boolean
  /** Content of the request that started the run; null without an identity. */
  content: string | null
}

/** Idempotency keys are remembered for a day. */
const REQUEST_LIFETIME_MS = 86_400_000

/**
 * Writes a run with its conversation, its first attempt and its message, unless a request of the same identity has begun one.
 * @param identities of the request: the run is written only if none of them is known.
 * @returns null when the agent was deleted meanwhile.
 */
export async function insertRun(
  database: Database,
  run: NewRun,
  identities: readonly RequestIdentity[],
): Promise<BegunRun | null> {
  const { id } = run
  const results = await database.batch([
    database.execute(requestStatement(run, identities)),
    database.execute(conversationStatement(run, identities)),
    database.execute(runStatement(run, identities)),
    database.execute(attemptStatement(run)),
    database.execute(sql`INSERT INTO ${runOutbox} (run_id, rev, organization_id, due_at)
      SELECT ${runs.id}, ${runs.rev}, ${runs.organizationId}, ${runs.createdAt} FROM ${runs} WHERE ${runs.id} = ${id}`),
    database.execute(begunQuery(run, identities)),
  ])
  const row = results[5].rows[0] as
    | { run_id: string; conversation_id: string; content: string | null }
    | undefined
  if (!row) return null
  return {
    runId: row.run_id,
    conversationId: row.conversation_id,
    isNew: row.run_id === id,
    content: row.content,
  }
}

/**
 * The run that the request has begun, now or before. An identity of a request that was refused for another one names a run that
 * was never written.
 */
function begunQuery({ id, owner }: NewRun, identities: readonly RequestIdentity[]): SQL {
  return sql`WITH request AS MATERIALIZED (
      SELECT known.run_id, known.content FROM ${knownRequests(owner, identities)}
    )
    SELECT ${runs.id} AS run_id, ${runs.conversationId} AS conversation_id,
      (SELECT content FROM request WHERE run_id = ${runs.id} LIMIT 1) AS content
    FROM ${runs} WHERE ${runs.organizationId} = ${owner.organizationId}
      AND ${runs.id} = ANY(ARRAY(SELECT run_id FROM request UNION SELECT ${id}::uuid)) LIMIT 1`
}

/** An identity that is known stays with its run, until it expires. */
function requestStatement({ id, owner, createdAt }: NewRun, identities: readonly RequestIdentity[]): SQL {
  return sql`INSERT INTO ${runRequests} AS known (organization_id, user_id, digest, content, run_id, expires_at)
    SELECT ${owner.organizationId}::uuid, ${owner.userId}::uuid, given.digest, given.content, ${id}::uuid,
      ${timeParameter(createdAt + REQUEST_LIFETIME_MS)}
    FROM jsonb_to_recordset(${JSON.stringify(identities)}::jsonb) AS given(digest text, content text)
    ON CONFLICT (organization_id, user_id, digest) DO UPDATE
    SET content = excluded.content, run_id = excluded.run_id, expires_at = excluded.expires_at
    WHERE known.expires_at <= ${timeParameter(createdAt)}`
}

/**
 * Reads the identities that exist. Each is looked up by its whole key, because a search for several may use a part of
 * the key only.
 */
const knownRequests = ({ organizationId, userId }: Owner, identities: readonly RequestIdentity[]): SQL =>
  sql`jsonb_array_elements_text(${JSON.stringify(identities.map(({ digest }) => digest))}::jsonb) AS given(digest)
    CROSS JOIN LATERAL (SELECT run_id, content FROM ${runRequests} WHERE organization_id = ${organizationId}
      AND user_id = ${userId} AND digest = given.digest OFFSET 0) AS known`

/** Whether every identity of the request is that of this run. */
const isFirst = ({ id, owner }: NewRun, identities: readonly RequestIdentity[]): SQL =>
  sql`(SELECT count(*) FROM ${knownRequests(owner, identities)} WHERE known.run_id = ${id}) = ${identities.length}`

const isPresent = ({ agentId, owner }: NewRun): SQL =>
  sql`EXISTS (SELECT FROM ${agents} WHERE ${agents.id} = ${agentId}
    AND ${agents.organizationId} = ${owner.organizationId} AND ${agents.deletedAt} IS NULL)`

function conversationStatement(run: NewRun, identities: readonly RequestIdentity[]): SQL {
  const { owner, conversationId, createdAt } = run
  return sql`INSERT INTO ${conversations} (id, organization_id, user_id, next_position, created_at)
    SELECT ${conversationId}::text, ${owner.organizationId}::uuid, ${owner.userId}::uuid, 0, ${timeParameter(createdAt)}
    WHERE ${isFirst(run, identities)} AND ${isPresent(run)}`
}

function runStatement(run: NewRun, identities: readonly RequestIdentity[]): SQL {
  const { id, owner, agentId, agentVersion, conversationId, origin, restartedFrom, sealedInputs } = run
  return sql`INSERT INTO ${runs} (id, organization_id, user_id, agent_id, agent_version, conversation_id, origin,
      restarted_from, sealed_inputs, status, rev, step, attempt, created_at, deadline_at)
    SELECT ${id}::uuid, ${owner.organizationId}::uuid, ${owner.userId}::uuid, ${agentId}::uuid, ${agentVersion}::int,
      ${conversationId}::text, ${origin}::text, ${restartedFrom}::uuid, ${sealedInputs}::text, 'in_progress', 1, 1, 1,
      ${timeParameter(run.createdAt)}, ${timeParameter(run.deadlineAt)}
    WHERE ${isFirst(run, identities)} AND ${isPresent(run)}`
}

function attemptStatement({ id, responseId, createdAt, stepDeadlineAt }: NewRun): SQL {
  return sql`INSERT INTO ${runSteps} (run_id, number, attempt, organization_id, status, response_id, created_at,
      deadline_at)
    SELECT ${runs.id}, 1, 1, ${runs.organizationId}, 'running', ${responseId}::text, ${timeParameter(createdAt)},
      ${timeParameter(stepDeadlineAt)} FROM ${runs} WHERE ${runs.id} = ${id}`
}

/** An agent with the definition that new runs have. */
export interface RunnableAgent {
  id: string
  version: number
  createdBy: string
  definition: unknown
}
