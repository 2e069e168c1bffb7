import { randomUUID } from 'node:crypto'
import { sql } from 'drizzle-orm'
import type { Database } from '../../schema/database.ts'
import { findUnrecorded } from '../../src/admin/audit.ts'
import type { RetentionDeps } from '../../src/admin/retention/retention-run.ts'
import { verifyChainRange, verifyHeads } from '../../src/admin/verify-chains.ts'
import { callOutcome, NO_ACTOR } from '../../src/ledger/audit-record.ts'
import type { ChangeScope } from '../../src/ledger/changes/audited-change.ts'
import { verifyCheckpoints } from '../../src/ledger/records/checkpoint.ts'
import { configuration } from '../unit/calls/fixtures.ts'
import type { MemoryLedgers } from '../unit/management/memory-ledger.ts'
import { monthsAgo } from './old-records.ts'

/** A deployment in this process: its database, and ledgers without Durable Objects. */
interface Deployment {
  database: Database
  ledgers: MemoryLedgers
}

export const changeScopeOf = (
  { database, ledgers }: Deployment,
  organizationId: string,
  clock: () => number = Date.now,
): ChangeScope => ({
  database,
  organizationId,
  ledgerOf: ledgers.of,
  clock,
  pepperRing: configuration().KEY_PEPPERS,
  vaultRing: configuration().VAULT_KEYS,
  egressAllow: [],
  requestId: 'req_test',
  actor: NO_ACTOR,
  propagationDelayed: () => {},
})

/** What the sweep of retention takes. @param values of the configuration. */
export const retentionDepsOf = (
  { database, ledgers }: Deployment,
  values: Record<string, unknown>,
  clock: () => number = Date.now,
): RetentionDeps => ({
  database,
  clock,
  ledgerOf: ledgers.of,
  workspaceOf: () => ({ run: async () => ({}), download: async () => null }) as never,
  waitUntil: () => {},
  configuration: configuration(values),
})

/** Everything of an organization that `audit verify` finds wrong. */
export async function verificationFaults(deployment: Deployment, organizationId: string): Promise<unknown[]> {
  const { database, ledgers } = deployment
  const scope = changeScopeOf(deployment, organizationId)
  await ledgers.of(organizationId).flush()
  const range = await verifyChainRange(scope, { organizationId, shard: 0 }, 0, 1_000)
  const heads = await verifyHeads(scope, organizationId)
  const usage = await findUnrecorded(scope, organizationId, { table: 'usage_events', after: null }, 1_000)
  const credits = await findUnrecorded(scope, organizationId, { table: 'credit_entries', after: null }, 1_000)
  const deps = { database, clock: Date.now, configuration: configuration() }
  const checkpoints = await verifyCheckpoints(deps, { organizationId, after: null, limit: 1_000 })
  return [...range.faults, ...heads.faults, ...usage.rows, ...credits.rows, ...checkpoints.faults]
}

/** Records calls of an organization, made at given times, in this order. */
export async function recordCalls(
  { ledgers }: Deployment,
  organizationId: string,
  times: readonly Date[],
): Promise<void> {
  for (const date of times) {
    const at = date.getTime()
    const opening = {
      callId: `call_${randomUUID()}`,
      requestId: 'req_call',
      organizationId,
      at,
      actor: { ...NO_ACTOR, userId: 'user-1' },
      surface: 'messages',
      action: 'POST /v1/messages',
      modelId: 'test-model',
    }
    await ledgers.of(organizationId).record(opening, callOutcome(opening, at + 5, { status: 200, cost: 3 }))
  }
  await ledgers.of(organizationId).flush()
}

/** An organization with calls, by default of the last five months, some of which were open over the end of one. */
export async function createAged(
  deployment: Deployment,
  times: readonly Date[] = [
    monthsAgo(5),
    monthsAgo(4),
    monthsAgo(5, 1),
    monthsAgo(4, 1),
    monthsAgo(3),
    monthsAgo(1),
    new Date(),
  ],
): Promise<string> {
  const organizationId = randomUUID()
  await deployment.database.execute(
    sql`INSERT INTO organizations (id, name, slug) VALUES (${organizationId}, 'Aged', ${organizationId})`,
  )
  await recordCalls(deployment, organizationId, times)
  return organizationId
}

/** Removes the rows of organizations and records, and makes the partitions of months before this one. */
export async function emptyMonths(database: Database, months: readonly number[]): Promise<void> {
  await database.execute(sql`TRUNCATE organizations CASCADE`)
  await database.execute(
    sql`TRUNCATE audit_records, calls, usage_events, credit_entries, prunings, audit_checkpoints, rejected_calls`,
  )
  for (const ago of months) {
    const month = `${monthsAgo(ago).toISOString().slice(0, 7)}-01`
    await database.execute(sql`SELECT add_month_partition(parent, ${month}::timestamp)
      FROM unnest(ARRAY['audit_records', 'usage_events']) AS parent`)
  }
}
