import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'drizzle-orm'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type DatabaseAddress, type OpenDatabase, openDatabase } from '../../scripts/database.ts'
import { startPostgres } from '../../scripts/local/postgres/start.ts'
import { migrateDatabase } from '../../scripts/migrate.ts'
import { findRealPostgres, startRealPostgres, tellSkipped } from './real-servers.ts'

const MIGRATIONS = join(import.meta.dirname, '../../schema/migrations')
const ORGANIZATION = '11111111-1111-4111-8111-111111111111'

const hasRealPostgres = findRealPostgres() !== undefined
if (!hasRealPostgres) tellSkipped('partitions on a real server', 'PostgreSQL')

/** The migrations before the one of partitions. */
function earlierMigrations(): string {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-migrations-'))
  cpSync(MIGRATIONS, folder, { recursive: true })
  const file = join(folder, 'meta/_journal.json')
  const journal = JSON.parse(readFileSync(file, 'utf8')) as { entries: Array<{ tag: string }> }
  journal.entries = journal.entries.filter(({ tag }) => tag < '0024')
  writeFileSync(file, JSON.stringify(journal))
  return folder
}

const recordRow = (sequence: number, at: string) =>
  `INSERT INTO audit_records VALUES ('${ORGANIZATION}', 0, ${sequence}, 'call_${sequence}', 'call', '${at}', 'req', NULL, NULL,
     'openai', 'POST /x', NULL, 200, 0, '{}', '', 'hash ${sequence} ${at}') ON CONFLICT DO NOTHING`
const usageRow = (id: number, at: string) =>
  `INSERT INTO usage_events VALUES ('call_${id}', '${ORGANIZATION}', NULL, NULL, 'model', NULL, 'openai', '${at}',
     1, 0, 0, 0, 1, 0, 'reported', 5) ON CONFLICT DO NOTHING`

function partitionSuite(addressOf: () => DatabaseAddress): void {
  let opened: OpenDatabase
  const query = async (text: string) =>
    ((await opened.database.execute(sql.raw(text))) as unknown as { rows: Array<Record<string, unknown>> })
      .rows
  const partitionsOf = async (table: string) =>
    (
      await query(
        `SELECT tableoid::regclass::text AS partition, count(*)::int AS rows FROM ${table} GROUP BY 1`,
      )
    ).map(({ partition, rows }) => `${partition} ${rows}`)
  const names = async (table: string) =>
    (await query(`SELECT name FROM month_partitions('${table}')`)).map(({ name }) => name)

  beforeAll(async () => {
    opened = await openDatabase(addressOf())
  })
  afterAll(() => opened?.close())

  it('leaves the rows of a deployment where they are, as the partition of all time before the next month', async () => {
    const folder = earlierMigrations()
    await migrateDatabase(addressOf(), { folder })
    rmSync(folder, { recursive: true })
    for (const [index, at] of ['2026-01-05', '2026-02-05', '2026-03-05'].entries()) {
      await query(recordRow(index + 1, at))
      await query(usageRow(index + 1, at))
    }
    await migrateDatabase(addressOf())

    expect(await partitionsOf('audit_records')).toEqual(['audit_records_earlier 3'])
    expect(await partitionsOf('usage_events')).toEqual(['usage_events_earlier 3'])
    for (const table of ['audit_records', 'usage_events']) {
      const [earlier, ...months] = await names(table)
      expect([earlier, months.length]).toEqual([`${table}_earlier`, 2])
      // Its indexes are those that it had, under the ones of the partitioned table, and the one that came later.
      expect(
        await query(`SELECT count(*)::int AS n FROM pg_index WHERE indrelid = '${table}_earlier'::regclass`),
      ).toEqual([{ n: table === 'audit_records' ? 4 : 2 }])
    }
  })

  it('writes a row that is written again once', async () => {
    const at = '2033-05-31T23:59:59.999Z'
    expect(await query(`SELECT add_month_partition('audit_records', '2033-05-01') AS added`)).toEqual([
      { added: true },
    ])
    for (let time = 0; time < 2; time += 1) {
      await query(recordRow(4, at))
      await query(usageRow(4, at))
      await query(recordRow(2, '2026-02-05'))
    }
    expect((await partitionsOf('audit_records')).sort()).toEqual([
      'audit_records_2033_05 1',
      'audit_records_earlier 3',
    ])
    expect((await partitionsOf('usage_events')).sort()).toEqual([
      'usage_events_default 1',
      'usage_events_earlier 3',
    ])
  })

  it('takes a place of a chain once in a month, whatever the time', async () => {
    await query(recordRow(4, '2033-05-02'))
    expect(await query('SELECT count(*)::int AS n FROM audit_records WHERE sequence = 4')).toEqual([{ n: 1 }])
  })

  it('makes no partition of a month that has one, is of earlier rows, or has rows in the default partition', async () => {
    const before = await names('usage_events')
    for (const month of ['2033-05-01', '2026-01-01', '2019-01-01']) {
      expect(await query(`SELECT add_month_partition('usage_events', '${month}') AS added`)).toEqual([
        { added: false },
      ])
    }
    expect(await names('usage_events')).toEqual(before)
    expect(await query(`SELECT add_month_partition('audit_records', '2033-05-01') AS added`)).toEqual([
      { added: false },
    ])
  })

  it('reads only the partitions of a period', async () => {
    const explained =
      await query(`EXPLAIN SELECT * FROM audit_records WHERE organization_id = '${ORGANIZATION}'
      AND at AT TIME ZONE 'UTC' BETWEEN '2033-05-01' AND '2033-05-31'`)
    const plan = JSON.stringify(explained)
    expect(plan).toContain('audit_records_2033_05')
    expect(plan).not.toContain('audit_records_earlier')
    expect(plan).not.toContain('audit_records_default')
  })
}

describe('partitions on the embedded database, over HTTP', () => {
  let standIn: Awaited<ReturnType<typeof startPostgres>>
  let address: DatabaseAddress
  beforeAll(async () => {
    standIn = await startPostgres({})
    address = {
      DATABASE_URL: `postgres://headgate:local@127.0.0.1:${standIn.port}/headgate`,
      DATABASE_FETCH_ENDPOINT: `${standIn.url}/sql`,
    }
  })
  afterAll(() => standIn?.close())
  partitionSuite(() => address)
})

describe.skipIf(!hasRealPostgres)('partitions on PostgreSQL', () => {
  let real: Awaited<ReturnType<typeof startRealPostgres>>
  beforeAll(async () => {
    real = await startRealPostgres()
  })
  afterAll(() => real?.stop())
  partitionSuite(() => ({ DATABASE_URL: real.url }))
})
