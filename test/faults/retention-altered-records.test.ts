import { createHash } from 'node:crypto'
import { type SQL, sql } from 'drizzle-orm'
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import type { Database } from '../../schema/database.ts'
import { applyRetention } from '../../src/admin/retention/sweep.ts'
import { NO_ACTOR } from '../../src/ledger/audit-record.ts'
import { retentionSettings } from '../../src/wire/retention.ts'
import {
  createAged,
  emptyMonths,
  recordCalls,
  retentionDepsOf,
  verificationFaults,
} from '../harness/aged-organization.ts'
import { monthsAgo, storeRetention } from '../harness/old-records.ts'
import { configuration } from '../unit/calls/fixtures.ts'
import { emptyPostgres } from '../unit/calls/stand-ins.ts'
import { createMemoryLedgers, type MemoryLedgers } from '../unit/management/memory-ledger.ts'

// With write access to the database alone, nobody gets the sweep to sign for records that were altered, or that are not old.

let database: Database
let ledgers: MemoryLedgers

beforeAll(async () => {
  database = (await emptyPostgres()).database
})
beforeEach(async () => {
  ledgers = createMemoryLedgers(database)
  await emptyMonths(database, [5, 4])
})
afterEach(() => {
  vi.restoreAllMocks()
})

const deployment = () => ({ database, ledgers })
const faultsOf = (id: string) => verificationFaults(deployment(), id)
const daysOf = (months: number) => Math.ceil((Date.now() - monthsAgo(months).getTime()) / 86_400_000)
const balanceOf = async (id: string) => (await ledgers.of(id).balance()).balance
const storedBalance = async (id: string) =>
  (
    await rows<{ sum: number }>(
      sql`SELECT coalesce(sum(amount), 0)::int AS sum FROM credit_entries WHERE organization_id = ${id}`,
    )
  )[0]?.sum
const rows = async <Row extends Record<string, unknown>>(query: SQL) =>
  (await database.execute<Row>(query)).rows
const sequencesOf = async (id: string) =>
  (
    await rows<{ sequence: string }>(
      sql`SELECT sequence FROM audit_records WHERE body LIKE ${`%"organizationId":"${id}"%`} ORDER BY hash`,
    )
  ).map(({ sequence }) => sequence)

/** By which the sweep removes records: one by one, because another organization keeps its own, or by dropping their months. */
const WAYS = [
  {
    way: 'deletes rows',
    prepare: async (id: string) => {
      await createAged(deployment())
      const settings = retentionSettings.parse({ audit_records: daysOf(3) })
      await storeRetention(database, configuration().KEY_PEPPERS, id, settings)
    },
    values: {},
  },
  { way: 'drops months', prepare: async () => {}, values: { AUDIT_RETENTION_DAYS: daysOf(3) } },
]

/** @returns the events of what is logged as an error. */
async function sweep(values: Record<string, unknown>): Promise<unknown[]> {
  const events: unknown[] = []
  const log = vi.spyOn(console, 'error').mockImplementation((line) => {
    events.push(JSON.parse(String(line)).event)
  })
  await applyRetention(retentionDepsOf(deployment(), values))
  log.mockRestore()
  return events
}

/** Of an organization whose records 1 to 4 are due: calls, and a grant. */
async function createDue(): Promise<string> {
  const id = await createAged(deployment(), [monthsAgo(5)])
  await grant(id, 'old', monthsAgo(5, 1))
  await recordCalls(deployment(), id, [monthsAgo(4), monthsAgo(4, 1), monthsAgo(1), new Date()])
  return id
}

const grant = (organizationId: string, id: string, at: Date) =>
  ledgers.of(organizationId).grantCredits({
    id,
    amount: 500,
    reason: 'for tests',
    change: {
      id: `change_${id}_${organizationId}`,
      requestId: 'req_grant',
      organizationId,
      at: at.getTime(),
      actor: NO_ACTOR,
      action: 'credits.granted',
      resource: 'credits',
      detail: {},
    },
  })

/** The alteration of one column of a record. */
const COLUMNS: Array<[column: string, value: SQL]> = [
  ['organization_id', sql`gen_random_uuid()`],
  ['shard', sql`1`],
  ['sequence', sql`1000`],
  ['id', sql`id || 'x'`],
  ['kind', sql`CASE kind WHEN 'call' THEN 'change' ELSE 'call' END`],
  ['at', sql`at + interval '1 microsecond'`],
  ['request_id', sql`'other'`],
  ['user_id', sql`'other'`],
  ['key_id', sql`'other'`],
  ['surface', sql`'other'`],
  ['action', sql`'other'`],
  ['model_id', sql`'other'`],
  ['status', sql`201`],
  ['credits_settled', sql`credits_settled - 1`],
  ['body', sql`replace(body, '"requestId"', '"requestid"')`],
  ['previous_hash', sql`hash`],
  ['hash', sql`previous_hash`],
]

/** Alterations of the rows of credits of records that are due. */
const CREDITS: Array<[what: string, alter: (id: string) => SQL]> = [
  [
    'a settlement is deleted',
    (id) => sql`DELETE FROM credit_entries WHERE organization_id = ${id} AND id = ${callOf(id)}`,
  ],
  [
    'a settlement has another amount',
    (id) => sql`UPDATE credit_entries SET amount = -1 WHERE organization_id = ${id} AND id = ${callOf(id)}`,
  ],
  [
    'a settlement is of another shard',
    (id) => sql`UPDATE credit_entries SET shard = 1 WHERE organization_id = ${id} AND id = ${callOf(id)}`,
  ],
  [
    'a settlement is newer',
    (id) => sql`UPDATE credit_entries SET at = now() WHERE organization_id = ${id} AND id = ${callOf(id)}`,
  ],
  [
    'a grant has another reason',
    (id) => sql`UPDATE credit_entries SET reason = 'other' WHERE organization_id = ${id} AND kind = 'grant'`,
  ],
  [
    'a grant is deleted',
    (id) => sql`DELETE FROM credit_entries WHERE organization_id = ${id} AND kind = 'grant'`,
  ],
]
const callOf = (id: string) =>
  sql`(SELECT body::jsonb->>'id' FROM audit_records WHERE organization_id = ${id} AND sequence = 3)`

describe.each(WAYS)('the sweep that $way', ({ prepare, values }) => {
  /** A sweep after an alteration. @returns the organization, whose chain has to be as it was. */
  async function expectKept(alter: (id: string) => SQL | SQL[], id?: string): Promise<void> {
    const altered = id ?? (await createDue())
    await prepare(altered)
    const balance = await balanceOf(altered)
    for (const statement of [alter(altered)].flat()) await database.execute(statement)
    const kept = await sequencesOf(altered)
    const forged = await storedBalance(altered)
    const before = await faultsOf(altered)
    expect(before).not.toEqual([])
    const events = await sweep(values)

    expect(events).toContain('retention.chain_broken')
    expect(events).not.toContain('retention.failed')
    expect(await sequencesOf(altered)).toEqual(expect.arrayContaining(kept))
    expect(await rows(sql`SELECT 1 FROM prunings WHERE organization_id = ${altered}`)).toEqual([])
    // Nothing is removed, so nothing is recorded as removed.
    expect(ledgers.changes.filter(({ organizationId }) => organizationId === altered)).toHaveLength(1)
    expect(await faultsOf(altered)).toEqual(expect.arrayContaining(before))
    expect([await storedBalance(altered), await balanceOf(altered)]).toEqual([forged, balance])
  }

  it('removes records, of changes too, and verification goes on from there', async () => {
    const id = await createDue()
    await prepare(id)
    expect(await sweep(values)).toEqual([])
    const left = await rows<{ first: number }>(
      sql`SELECT min(sequence)::int AS first FROM audit_records WHERE organization_id = ${id}`,
    )
    expect(left).toEqual([{ first: 5 }])
    expect(await storedBalance(id)).toBe(await balanceOf(id))
    expect(await faultsOf(id)).toEqual([])
  })

  it.each(COLUMNS)('keeps a chain with a record of a call whose %s was altered', async (column, value) => {
    await expectKept(
      (id) =>
        sql`UPDATE audit_records SET ${sql.identifier(column)} = ${value} WHERE organization_id = ${id} AND sequence = 3`,
    )
  })

  it.each(COLUMNS)('keeps a chain with a record of a change whose %s was altered', async (column, value) => {
    await expectKept(
      (id) =>
        sql`UPDATE audit_records SET ${sql.identifier(column)} = ${value} WHERE organization_id = ${id} AND sequence = 2`,
    )
  })

  it.each(CREDITS)('keeps a chain of which %s', async (_, alter) => {
    await expectKept(alter)
  })

  it('keeps a chain whose call is said to have cost nothing', async () => {
    await expectKept((id) => [
      sql`DELETE FROM credit_entries WHERE organization_id = ${id} AND id = ${callOf(id)}`,
      sql`UPDATE audit_records SET credits_settled = 0 WHERE organization_id = ${id} AND sequence = 3`,
    ])
  })

  it('keeps records that were made to look old, with all that was taken from them', async () => {
    await expectKept((id) => [
      sql`DELETE FROM usage_events WHERE organization_id = ${id}`,
      sql`DELETE FROM calls WHERE organization_id = ${id}`,
      sql`UPDATE audit_records SET at = ${monthsAgo(5).toISOString()}::timestamptz
          WHERE organization_id = ${id} AND sequence <= 5`,
      sql`UPDATE credit_entries SET at = ${monthsAgo(5).toISOString()}::timestamptz WHERE organization_id = ${id}`,
    ])
  })

  it('keeps a chain with a body that is no record, under a hash that fits', async () => {
    const id = await createDue()
    await rewrite(id, 3, () => 'no record')
    await expectKept(() => [], id)
  })

  it('keeps a chain whose older part was written anew up to a record that stays', async () => {
    const id = await createDue()
    for (const sequence of [3, 4]) await rewrite(id, sequence, (body) => body.replace('"cost":3', '"cost":1'))
    await database.execute(
      sql`UPDATE audit_records SET credits_settled = 1 WHERE organization_id = ${id} AND sequence IN (3, 4)`,
    )
    await database.execute(
      sql`UPDATE credit_entries SET amount = -1 WHERE organization_id = ${id} AND kind = 'settlement' AND at < ${monthsAgo(3).toISOString()}::timestamptz AND at > ${monthsAgo(5, 2).toISOString()}::timestamptz`,
    )
    await expectKept(() => [], id)
  })
})

/** Replaces a body, with a hash that fits, to which the next record is linked. */
async function rewrite(id: string, sequence: number, change: (body: string) => string): Promise<void> {
  const [record] = await rows<{ body: string; previous_hash: string }>(
    sql`SELECT body, previous_hash FROM audit_records WHERE organization_id = ${id} AND sequence = ${sequence}`,
  )
  const body = change(record?.body ?? '')
  const hash = createHash('sha256').update(`${record?.previous_hash}${body}`).digest('hex')
  await database.execute(
    sql`UPDATE audit_records SET body = ${body}, hash = ${hash} WHERE organization_id = ${id} AND sequence = ${sequence}`,
  )
  await database.execute(
    sql`UPDATE audit_records SET previous_hash = ${hash} WHERE organization_id = ${id} AND sequence = ${sequence + 1}`,
  )
}
