import { sql } from 'drizzle-orm'
import {
  bigint,
  boolean,
  index,
  integer,
  jsonb,
  pgTable,
  primaryKey,
  text,
  uniqueIndex,
  uuid,
} from 'drizzle-orm/pg-core'
import { createdAt, instant } from './columns.ts'
import { organizations, users } from './identity.ts'

/**
 * An agent; its content is its current version. A deleted agent is kept for its runs, and its name may be used again.
 */
export const agents = pgTable(
  'agents',
  {
    id: uuid('id').primaryKey(),
    organizationId: uuid('organization_id')
      .notNull()
      .references(() => organizations.id),
    /** The user whose rights the agent's triggers have. */
    createdBy: uuid('created_by')
      .notNull()
      .references(() => users.id),
    name: text('name').notNull(),
    description: text('description').notNull(),
    metadata: jsonb('metadata').$type<Record<string, unknown>>().notNull(),
    /** The users that may see and run the agent, besides its creator. */
    visibility: text('visibility', { enum: ['creator', 'groups', 'organization'] }).notNull(),
    /** The groups of visibility `groups`. */
    groupIds: jsonb('group_ids').$type<string[]>().notNull(),
    /** The current version, from 1. */
    version: integer('version').notNull(),
    createdAt: createdAt(),
    updatedAt: instant('updated_at').notNull().defaultNow(),
    deletedAt: instant('deleted_at'),
  },
  (table) => [
    uniqueIndex('agents_organization_name')
      .on(table.organizationId, table.name)
      .where(sql`${table.deletedAt} is null`),
    index('agents_organization').on(table.organizationId, table.createdAt),
  ],
)

/** Every definition that an agent has had. Rows are written once and never changed. */
export const agentVersions = pgTable(
  'agent_versions',
  {
    agentId: uuid('agent_id')
      .notNull()
      .references(() => agents.id),
    version: integer('version').notNull(),
    organizationId: uuid('organization_id').notNull(),
    /** The definition in the format of `src/wire/agents.ts`, which parses it again on reading. */
    definition: jsonb('definition').$type<unknown>().notNull(),
    /** `admin_token`, or a user's id. */
    author: text('author').notNull(),
    createdAt: createdAt(),
  },
  (table) => [primaryKey({ columns: [table.agentId, table.version] })],
)

/** Schedules and webhooks that start runs: those of the agent's current version. */
export const agentTriggers = pgTable(
  'agent_triggers',
  {
    agentId: uuid('agent_id')
      .notNull()
      .references(() => agents.id),
    name: text('name').notNull(),
    organizationId: uuid('organization_id').notNull(),
    kind: text('kind', { enum: ['schedule', 'webhook'] }).notNull(),
    /** Only for a schedule: five fields, with `CRON_TZ=` in front on request. */
    cron: text('cron'),
    /** Values of the inputs of a schedule's runs. */
    inputs: jsonb('inputs').$type<Array<{ name: string; value: string }>>().notNull(),
    /** Only for a webhook: the key that signs its deliveries, sealed; null before it is created. */
    sealedSecret: text('sealed_secret'),
    /** Null while QStash may have another state of the schedule. */
    publishedAt: instant('published_at'),
    /** Set for a trigger that the current version does not have: its schedule is removed, then the row. */
    removedAt: instant('removed_at'),
  },
  (table) => [
    primaryKey({ columns: [table.agentId, table.name] }),
    index('agent_triggers_unpublished').on(table.agentId).where(sql`${table.publishedAt} is null`),
  ],
)

/** An asynchronous execution of one version of an agent, on behalf of one user. */
export const runs = pgTable(
  'runs',
  {
    id: uuid('id').primaryKey(),
    organizationId: uuid('organization_id').notNull(),
    /** The user whose rights the steps have, and who can read the run: its caller; for a trigger, the agent's creator. */
    userId: uuid('user_id').notNull(),
    agentId: uuid('agent_id')
      .notNull()
      .references(() => agents.id),
    agentVersion: integer('agent_version').notNull(),
    conversationId: text('conversation_id').notNull(),
    origin: text('origin', { enum: ['api', 'restart', 'schedule', 'webhook'] }).notNull(),
    /** The run that this run restarts, with the same inputs. */
    restartedFrom: uuid('restarted_from'),
    /**
     * Inputs as they were sent, without unknown names: a restart applies the defaults of the latest version. Sealed, because no
     * policy has inspected them.
     */
    sealedInputs: text('sealed_inputs').notNull(),
    status: text('status', { enum: ['in_progress', 'success', 'failure', 'cancelled'] }).notNull(),
    /** Raised by every change of state. A change that was decided on an older revision is not written. */
    rev: integer('rev').notNull(),
    /** Number of the current step, from 1. */
    step: integer('step').notNull(),
    /** Number of the current step's attempt, from 1. */
    attempt: integer('attempt').notNull(),
    /** The final assistant message as JSON with `role` and `parts`. */
    result: text('result'),
    /** Reason of a failure or cancellation, for administrators. */
    error: jsonb('error').$type<{ code: string; message: string }>(),
    createdAt: instant('created_at').notNull(),
    endedAt: instant('ended_at'),
    deadlineAt: instant('deadline_at').notNull(),
    /** End of the lease of the delivery that advances the run; `leaseToken` names the delivery. */
    leasedUntil: instant('leased_until'),
    leaseToken: text('lease_token'),
  },
  (table) => [
    // No index begins with the organization and the user: without statistics, Postgres would prefer it to the primary key.
    index('runs_agent').on(table.agentId, table.createdAt),
    index('runs_agent_status').on(table.agentId, table.status, table.createdAt),
    index('runs_agent_user').on(table.agentId, table.userId, table.createdAt),
    // For retention and erasures. As an expression, for the reason above.
    index('runs_ended').on(sql`(organization_id::text)`, table.endedAt),
  ],
)

/** Every attempt of a step that was begun. Each is one response, in the run's conversation. */
export const runSteps = pgTable(
  'run_steps',
  {
    runId: uuid('run_id')
      .notNull()
      .references(() => runs.id, { onDelete: 'cascade' }),
    number: integer('number').notNull(),
    attempt: integer('attempt').notNull(),
    organizationId: uuid('organization_id').notNull(),
    status: text('status', { enum: ['running', 'completed', 'failed', 'cancelled'] }).notNull(),
    /** The id is chosen before the first start, so that a repeated start finds the same response. */
    responseId: text('response_id').notNull(),
    /** Text of the answer; null until it is completed. */
    output: text('output'),
    error: jsonb('error').$type<{ code: string; message: string }>(),
    /** Whether the attempt called a tool that may have changed something. */
    hadEffects: boolean('had_effects').notNull().default(false),
    /** Micro-credits. */
    cost: bigint('cost', { mode: 'number' }).notNull().default(0),
    createdAt: instant('created_at').notNull(),
    deadlineAt: instant('deadline_at').notNull(),
    endedAt: instant('ended_at'),
  },
  (table) => [primaryKey({ columns: [table.runId, table.number, table.attempt] })],
)

/** The verdict about a completed step's objective. Rows are written once. */
export const runVerdicts = pgTable(
  'run_verdicts',
  {
    runId: uuid('run_id')
      .notNull()
      .references(() => runs.id, { onDelete: 'cascade' }),
    number: integer('number').notNull(),
    /** The attempt that was judged. */
    attempt: integer('attempt').notNull(),
    organizationId: uuid('organization_id').notNull(),
    result: text('result', { enum: ['pass', 'fail', 'not_evaluated', 'unknown'] }).notNull(),
    explanation: text('explanation'),
    /** The basis of the verdict: checks, and the judge's model, response and criteria (`agents/evaluations/verdict`). */
    details: jsonb('details').$type<Record<string, unknown>>().notNull(),
    /** Micro-credits of the judge's calls. */
    cost: bigint('cost', { mode: 'number' }).notNull().default(0),
    createdAt: createdAt(),
  },
  (table) => [primaryKey({ columns: [table.runId, table.number] })],
)

/**
 * A verdict that is due. The row is written with the completion of its step, is the outbox message to QStash, and is
 * replaced by the verdict.
 */
export const dueVerdicts = pgTable(
  'due_verdicts',
  {
    runId: uuid('run_id')
      .notNull()
      .references(() => runs.id, { onDelete: 'cascade' }),
    number: integer('number').notNull(),
    /** The attempt that completed the step. */
    attempt: integer('attempt').notNull(),
    organizationId: uuid('organization_id').notNull(),
    /**
     * Response id of the judge's next or current call. The id is chosen before the first start, so that a repeated
     * start finds the same response.
     */
    responseId: text('response_id').notNull(),
    /** Calls of the judge that ended without a verdict. */
    calls: integer('calls').notNull().default(0),
    /** The fault of the answer of the judge's last call; null if there was no answer. */
    fault: text('fault'),
    /** Micro-credits of these calls. */
    cost: bigint('cost', { mode: 'number' }).notNull().default(0),
    /** When the step was completed. */
    createdAt: instant('created_at').notNull(),
    /** When it has to be delivered. */
    dueAt: instant('due_at').notNull(),
    publishedAt: instant('published_at'),
  },
  (table) => [
    primaryKey({ columns: [table.runId, table.number] }),
    index('due_verdicts_due').on(table.dueAt),
  ],
)

/**
 * Outbox message for QStash of a run's current revision, written with the change of state. A run that needs no further
 * delivery has none.
 */
export const runOutbox = pgTable(
  'run_outbox',
  {
    runId: uuid('run_id')
      .notNull()
      .references(() => runs.id, { onDelete: 'cascade' }),
    rev: integer('rev').notNull(),
    organizationId: uuid('organization_id').notNull(),
    /** When it has to be delivered. */
    dueAt: instant('due_at').notNull(),
    publishedAt: instant('published_at'),
  },
  (table) => [primaryKey({ columns: [table.runId, table.rev] }), index('run_outbox_due').on(table.dueAt)],
)

/** Requests for runs that may be repeated: a second request returns the run of the first. */
export const runRequests = pgTable(
  'run_requests',
  {
    organizationId: uuid('organization_id').notNull(),
    userId: uuid('user_id').notNull(),
    /** Digest of what identifies the request: its Idempotency-Key, or the message of a trigger. */
    digest: text('digest').notNull(),
    /** Digest of its content: another one under the same key is an error. */
    content: text('content').notNull(),
    runId: uuid('run_id').notNull(),
    expiresAt: instant('expires_at').notNull(),
  },
  (table) => [
    primaryKey({ columns: [table.organizationId, table.userId, table.digest] }),
    index('run_requests_expiry').on(table.expiresAt),
  ],
)
