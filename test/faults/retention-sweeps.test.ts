import { sql } from 'drizzle-orm'
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import type { Database } from '../../schema/database.ts'
import { Budget } from '../../src/admin/retention/budget.ts'
import { dropOldPartitions } from '../../src/admin/retention/drop-partitions.ts'
import { beginRun } from '../../src/admin/retention/retention-run.ts'
import { sealRetention } from '../../src/admin/retention/retention-seal.ts'
import { readRetention, replaceRetention } from '../../src/admin/retention/retention-settings.ts'
import { applyRetention } from '../../src/admin/retention/sweep.ts'
import { DEPLOYMENT_ORGANIZATION_ID } from '../../src/ledger/audit-record.ts'
import { dropRecords, dropUsage, listPartitionsBefore } from '../../src/ledger/retention/partitions.store.ts'
import { type RetentionSettings, retentionSettings } from '../../src/wire/retention.ts'
import {
  changeScopeOf,
  createAged,
  emptyMonths,
  recordCalls,
  retentionDepsOf,
  verificationFaults,
} from '../harness/aged-organization.ts'
import { monthsAgo, storeRetention } from '../harness/old-records.ts'
import { type PostgresFront, startFront } from '../harness/postgres-front.ts'
import { configuration } from '../unit/calls/fixtures.ts'
import { emptyPostgres } from '../unit/calls/stand-ins.ts'
import { createMemoryLedgers, type MemoryLedgers } from '../unit/management/memory-ledger.ts'

// The sweep of retention, while its settings are tampered with, another run of it is under way, or a part of it fails.

const PEPPERS = configuration().KEY_PEPPERS
const MONTHS = [5, 4]

let database: Database
let ledgers: MemoryLedgers
let front: PostgresFront

beforeAll(async () => {
  const postgres = await emptyPostgres()
  database = postgres.database
  front = await startFront(postgres.url)
  return () => front.close()
})
beforeEach(async () => {
  ledgers = createMemoryLedgers(database)
  await emptyMonths(database, MONTHS)
})
afterEach(() => {
  front.mend()
  vi.restoreAllMocks()
})

const deployment = () => ({ database, ledgers })
const faultsOf = (organizationId: string) => verificationFaults(deployment(), organizationId)
const daysOf = (months: number) => Math.ceil((Date.now() - monthsAgo(months).getTime()) / 86_400_000)
const AGED = { audit_records: daysOf(3), usage_events: daysOf(3) }
/** So many months before now. */
const earlier = (months: number) => () => Date.now() - (monthsAgo(0).getTime() - monthsAgo(months).getTime())

const sweep = (
  values: Record<string, unknown> = {},
  clock: () => number = Date.now,
  through: Database = database,
) => applyRetention(retentionDepsOf({ database: through, ledgers }, values, clock))
/** Sets how long an organization keeps its rows, as the management API does. */
const set = async (organizationId: string, settings: Partial<RetentionSettings>, clock = Date.now) => {
  await replaceRetention(
    changeScopeOf(deployment(), organizationId, clock),
    retentionSettings.parse(settings),
  )
  await ledgers.of(organizationId).flush()
}
const store = (organizationId: string, settings: Partial<RetentionSettings>) =>
  storeRetention(database, PEPPERS, organizationId, retentionSettings.parse(settings))

const rowsOf = async <Row extends Record<string, unknown>>(query: ReturnType<typeof sql>) =>
  (await database.execute<Row>(query)).rows
const countOf = async (table: string, organizationId: string) =>
  (
    await rowsOf<{ n: number }>(
      sql`SELECT count(*)::int AS n FROM ${sql.identifier(table)} WHERE organization_id = ${organizationId}`,
    )
  )[0]?.n ?? 0
const sequencesOf = async (organizationId: string) =>
  (
    await rowsOf<{ sequence: string }>(
      sql`SELECT sequence FROM audit_records WHERE organization_id = ${organizationId} ORDER BY sequence`,
    )
  ).map(({ sequence }) => Number(sequence))
const partitions = async (table: string) =>
  (await rowsOf<{ name: string }>(sql`SELECT name FROM month_partitions(${table})`)).map(({ name }) => name)
const nameOf = (table: string, months: number) =>
  `${table}_${monthsAgo(months).toISOString().slice(0, 7).replace('-', '_')}`

/** Lines of errors that are logged from now on. */
function loggedErrors(): Array<Record<string, unknown>> {
  const lines: Array<Record<string, unknown>> = []
  vi.spyOn(console, 'error').mockImplementation((line) => void lines.push(JSON.parse(String(line))))
  return lines
}

describe('settings of retention that are changed in the database', () => {
  const tamperings: Array<[what: string, tamper: (organizationId: string) => Promise<unknown>]> = [
    [
      'are set without a MAC',
      (id) =>
        database.execute(
          sql`UPDATE organizations SET retention = ${JSON.stringify(AGED)}::jsonb WHERE id = ${id}`,
        ),
    ],
    [
      'are changed',
      async (id) => {
        await store(id, { audit_records: 0 })
        await database.execute(
          sql`UPDATE organizations SET retention = retention || ${JSON.stringify(AGED)}::jsonb WHERE id = ${id}`,
        )
      },
    ],
    [
      'are those of another organization, with their MAC',
      async (id) => {
        const other = await createAged(deployment(), [])
        await store(other, AGED)
        await database.execute(
          sql`UPDATE organizations SET retention = other.retention, retention_seal = other.retention_seal
            FROM organizations AS other WHERE organizations.id = ${id} AND other.id = ${other}`,
        )
      },
    ],
    [
      'have a text in place of a number',
      async (id) => {
        await store(id, AGED)
        await database.execute(
          sql`UPDATE organizations SET retention = jsonb_set(retention, '{audit_records}', '"soon"') WHERE id = ${id}`,
        )
      },
    ],
    [
      'are no object',
      (id) =>
        database.execute(
          sql`UPDATE organizations SET retention = '[7]', retention_seal = '7' WHERE id = ${id}`,
        ),
    ],
    [
      'are removed',
      async (id) => {
        await set(id, { audit_records: 0, usage_events: 0 })
        await database.execute(
          sql`UPDATE organizations SET retention = NULL, retention_seal = NULL WHERE id = ${id}`,
        )
      },
    ],
    [
      'are earlier ones, with their MAC',
      async (id) => {
        const old = retentionSettings.parse(AGED)
        const seal = sealRetention(PEPPERS, id, old, new Date(Date.now() - 60_000))
        await set(id, { audit_records: 0, usage_events: 0 })
        await database.execute(
          sql`UPDATE organizations SET retention = ${JSON.stringify(old)}::jsonb, retention_seal = ${JSON.stringify(seal)}::jsonb
            WHERE id = ${id}`,
        )
      },
    ],
    [
      'are under a pepper that is not configured',
      async (id) => {
        await store(id, AGED)
        await database.execute(
          sql`UPDATE organizations SET retention_seal = jsonb_set(retention_seal, '{pepperId}', '"gone"') WHERE id = ${id}`,
        )
      },
    ],
  ]
  it.each(tamperings)('remove nothing where they %s, and others go on', async (_, tamper) => {
    const [first, last] = [await createAged(deployment()), await createAged(deployment())]
    const tampered = await createAged(deployment())
    const before = [await countOf('usage_events', tampered), await countOf('calls', tampered)]
    await set(first, AGED)
    await set(last, AGED)
    await tamper(tampered)
    const kept = await sequencesOf(tampered)
    const errors = loggedErrors()
    // By the deployment's own times everything would go, too.
    await sweep({ AUDIT_RETENTION_DAYS: daysOf(3), USAGE_RETENTION_DAYS: daysOf(3) })

    expect(errors.filter(({ organization }) => organization === tampered)).toEqual([
      expect.objectContaining({ event: 'retention.settings_rejected' }),
    ])
    expect(errors).toHaveLength(1)
    expect(await sequencesOf(tampered)).toEqual(kept)
    expect([await countOf('usage_events', tampered), await countOf('calls', tampered)]).toEqual(before)
    expect(await countOf('prunings', tampered)).toBe(0)
    for (const id of [first, last]) {
      expect([(await sequencesOf(id))[0], await countOf('usage_events', id)]).toEqual([5, 3])
    }
    for (const id of [first, tampered, last]) expect(await faultsOf(id)).toEqual([])
    await expect(readRetention(changeScopeOf(deployment(), tampered))).rejects.toThrow(/set again/)
  })

  it.each([
    ['action', 'retention.chain_broken', sql`action = 'retention.read'`],
    ['time', 'retention.settings_rejected', sql`at = at - interval '1 minute'`],
  ])(
    'leave the record of their change, whose %s was altered, where verification finds it',
    async (_, event, alteration) => {
      const id = await createAged(deployment(), [monthsAgo(5)])
      await set(id, { audit_records: 0, usage_events: 0 }, earlier(4))
      await recordCalls(deployment(), id, [monthsAgo(4, 1), new Date()])
      await ledgers.of(id).flush()
      const kept = await sequencesOf(id)
      await database.execute(
        sql`UPDATE audit_records SET ${alteration} WHERE organization_id = ${id} AND action = 'retention.replaced'`,
      )
      await database.execute(
        sql`UPDATE organizations SET retention = NULL, retention_seal = NULL WHERE id = ${id}`,
      )
      const errors = loggedErrors()
      await sweep({ AUDIT_RETENTION_DAYS: daysOf(3) })
      expect(errors).toContainEqual(expect.objectContaining({ event }))
      expect(await sequencesOf(id)).toEqual(kept)
      expect(await faultsOf(id)).not.toEqual([])
    },
  )

  it('hold again when they are set again', async () => {
    const id = await createAged(deployment())
    await database.execute(
      sql`UPDATE organizations SET retention = '{"audit_records": "x"}' WHERE id = ${id}`,
    )
    await set(id, AGED)
    expect(await readRetention(changeScopeOf(deployment(), id))).toMatchObject(AGED)
    await sweep()
    expect((await sequencesOf(id))[0]).toBe(5)
  })
})

/** An organization that keeps its rows for ever, so that no month is dropped. */
const createKeeper = () => createAged(deployment())

interface Statement extends Record<string, unknown> {
  kind: string
  sequence: number
  before: string
}
const statementsOf = (organizationId: string) =>
  rowsOf<Statement>(sql`SELECT kind, (statement::jsonb->>'sequence')::int AS sequence, statement::jsonb->>'before' AS before
    FROM prunings WHERE organization_id = ${organizationId} ORDER BY kind`)

describe('a statement of retention', () => {
  it('never states less than before: a later sweep has an earlier time', async () => {
    const id = await createAged(deployment(), [monthsAgo(5), monthsAgo(4), monthsAgo(5, 1)])
    await store(id, { audit_records: daysOf(1), usage_events: daysOf(1) })
    await sweep()
    const stated = await statementsOf(id)
    await recordCalls(deployment(), id, [new Date()])
    await database.execute(sql`UPDATE organizations SET retention_swept_at = NULL`)
    await sweep({}, earlier(2))
    for (const [index, { kind, sequence, before }] of (await statementsOf(id)).entries()) {
      expect(before >= (stated[index]?.before ?? ''), kind).toBe(true)
      expect(sequence ?? 0, kind).toBeGreaterThanOrEqual(stated[index]?.sequence ?? 0)
    }
    expect(await faultsOf(id)).toEqual([])
  })

  it.each(['records', 'usage', 'rejected_calls'])(
    'never states less than before: a sweep with an earlier time stores its own of %s after another is done',
    async (kind) => {
      const id = await createAged(deployment())
      const settings = retentionSettings.parse({ audit_records: daysOf(1), usage_events: daysOf(1) })
      await store(id, settings)
      for (const months of [5, 2]) {
        await database.execute(
          sql`INSERT INTO rejected_calls VALUES ('192.0.2.1', ${monthsAgo(months).toISOString()}::timestamptz, 'messages', 1)`,
        )
      }
      const owner = kind === 'rejected_calls' ? DEPLOYMENT_ORGANIZATION_ID : id
      const stated: Statement[] = []
      front.before = async (text) => {
        if (!/insert into \\"prunings\\"/.test(text) || !text.includes(`"${kind}"`)) return
        if (!text.includes(owner) || stated.length > 0) return
        await sweep({ REJECTED_CALL_RETENTION_DAYS: 30 })
        stated.push(...(await statementsOf(owner)))
      }
      await sweep({ REJECTED_CALL_RETENTION_DAYS: 30 }, earlier(2), front.database)
      expect(stated.length).toBeGreaterThan(0)
      expect(await statementsOf(owner)).toEqual(stated)
      expect(await faultsOf(id)).toEqual([])
      // What the later sweep has left is what its statement says.
      expect((await sequencesOf(id))[0]).toBe(
        (stated.find((each) => each.kind === 'records')?.sequence ?? 5) + 1,
      )
    },
  )

  it('survives a death before what it states is removed, and a sweep with an earlier time after it', async () => {
    const id = await createAged(deployment())
    await createKeeper()
    await store(id, { audit_records: daysOf(1), usage_events: daysOf(1) })
    let isDead = false
    front.before = (text) => {
      isDead ||= /DELETE FROM \\"audit_records/.test(text)
      if (isDead) throw new Error('killed')
    }
    vi.spyOn(console, 'error').mockImplementation(() => {})
    await expect(sweep({}, Date.now, front.database)).rejects.toThrow()
    const stated = await statementsOf(id)
    expect(stated.map(({ kind }) => kind)).toContain('records')
    expect((await sequencesOf(id))[0]).toBe(1)
    expect(await faultsOf(id)).toEqual([])

    await sweep({}, earlier(1))
    expect((await statementsOf(id)).find(({ kind }) => kind === 'records')).toEqual(
      stated.find(({ kind }) => kind === 'records'),
    )
    expect(await faultsOf(id)).toEqual([])
    await database.execute(sql`UPDATE organizations SET retention_swept_at = NULL`)
    await sweep()
    expect([(await sequencesOf(id))[0], await countOf('usage_events', id)]).toEqual([6, 2])
    expect(await faultsOf(id)).toEqual([])
  })

  it('is made after a checkpoint and an intent, also for a record that stayed as the last one of its chain', async () => {
    const id = await createAged(deployment(), [monthsAgo(5), monthsAgo(4)])
    await createKeeper()
    await store(id, { audit_records: daysOf(1) })
    const removed: unknown[] = []
    // Each finds one record more: the intent of the one before it is the last of the chain then.
    for (const [first, checkpoints] of [
      [2, 1],
      [3, 2],
      [3, 2],
    ]) {
      await sweep()
      await ledgers.of(id).flush()
      expect((await sequencesOf(id))[0]).toBe(first)
      removed.push(
        ledgers.changes.flatMap(({ organizationId, action, detail }) =>
          organizationId === id && action === 'audit_records.pruned'
            ? [[detail.from_sequence, detail.to_sequence]]
            : [],
        ),
      )
      expect(await rowsOf(sql`SELECT id FROM audit_checkpoints`)).toHaveLength(checkpoints ?? 0)
      expect(await faultsOf(id)).toEqual([])
      await database.execute(sql`UPDATE organizations SET retention_swept_at = NULL`)
    }
    const both = [
      [1, 1],
      [2, 2],
    ]
    expect(removed).toEqual([[[1, 1]], both, both])
  })

  it('is made for two sweeps at once, with different times', async () => {
    const ids = [await createAged(deployment()), await createAged(deployment())]
    for (const id of ids) await store(id, { audit_records: daysOf(1), usage_events: daysOf(1) })
    const errors = loggedErrors()
    await Promise.all([sweep(), sweep({}, earlier(2)), sweep()])
    expect(errors).toEqual([])
    for (const id of ids) {
      expect([(await sequencesOf(id))[0], await countOf('usage_events', id)]).toEqual([6, 2])
      expect(await faultsOf(id)).toEqual([])
    }
  })
})

describe('a part of the sweep that fails', () => {
  const failing: Array<[part: string, text: (organizationId: string) => RegExp]> = [
    ['statements of one organization', (id) => new RegExp(`insert into \\\\"prunings[^]*${id}`)],
    [
      'the deletion of records of one organization',
      (id) => new RegExp(`DELETE FROM \\\\"audit_records[^]*${id}`),
    ],
    ['counts of rejected calls', () => /FROM \\"rejected_calls/],
    ['the list of settings', () => /WITH RECURSIVE found/],
    ['the partitions of the months to come', () => /add_month_partition/],
  ]
  it.each(failing)('leaves the others: %s', async (_, text) => {
    const ids = [
      await createAged(deployment()),
      await createAged(deployment()),
      await createAged(deployment()),
    ]
    for (const id of ids) await store(id, AGED)
    await createKeeper()
    // The first one that is swept: they are in order of their ids.
    const broken = [...ids].sort()[0] ?? ''
    const others = ids.filter((id) => id !== broken)
    const errors = loggedErrors()
    front.before = (sent) => {
      if (text(broken).test(sent)) throw new Error('refused')
    }
    await expect(sweep({ REJECTED_CALL_RETENTION_DAYS: 30 }, Date.now, front.database)).rejects.toThrow()
    expect(errors.map(({ event }) => event)).toContain('retention.failed')
    for (const id of others) {
      expect([(await sequencesOf(id))[0], await countOf('usage_events', id)]).toEqual([5, 3])
    }
    // It waits behind the others: the sweep has come to it.
    const waiting = await rowsOf(sql`SELECT id FROM organizations WHERE retention_swept_at IS NULL`)
    expect(waiting).toEqual([])
    for (const id of ids) expect(await faultsOf(id)).toEqual([])
  })
})

describe('the turn of an organization', () => {
  const HOUR_MS = 3_600_000
  /** Organizations with due rows, in the order of their first turns. */
  async function createQueue(): Promise<[string, string, string]> {
    const ids = [
      await createAged(deployment()),
      await createAged(deployment()),
      await createAged(deployment()),
    ]
    await createKeeper()
    for (const id of ids) await store(id, AGED)
    await database.execute(sql`UPDATE organizations SET retention_swept_at = now() WHERE retention IS NULL`)
    return ids.sort() as [string, string, string]
  }
  const isShortened = async (id: string) => (await sequencesOf(id))[0] === 5

  it('comes after those of the others, where every run is killed in it', async () => {
    const [killing, ...others] = await createQueue()
    let isDead = false
    front.before = (text) => {
      isDead ||= new RegExp(`DELETE FROM \\\\"audit_records[^]*${killing}`).test(text)
      if (isDead) throw new Error('killed')
    }
    vi.spyOn(console, 'error').mockImplementation(() => {})
    for (const hours of [0, 1]) {
      isDead = false
      await expect(sweep({}, () => Date.now() + hours * HOUR_MS, front.database)).rejects.toThrow()
      expect(isDead).toBe(true)
      for (const id of others) expect(await isShortened(id)).toBe(hours === 1)
    }
    front.mend()
    await sweep({}, () => Date.now() + 2 * HOUR_MS)
    expect(await isShortened(killing)).toBe(true)
    for (const id of [killing, ...others]) expect(await faultsOf(id)).toEqual([])
  })

  it('is not begun after ten minutes, nor is another batch', async () => {
    const [slow, ...others] = await createQueue()
    let now = Date.now()
    front.before = (text) => {
      if (/DELETE FROM \\"audit_records/.test(text)) now += 10 * 60_000
    }
    await sweep({}, () => now, front.database)
    // Its records are gone, and what would follow waits for its next turn.
    expect([await isShortened(slow), await countOf('usage_events', slow)]).toEqual([true, 7])
    for (const id of others) expect(await isShortened(id)).toBe(false)
    front.mend()
    now += HOUR_MS
    await sweep({}, () => now)
    for (const id of [slow, ...others]) {
      expect([await isShortened(id), await countOf('usage_events', id)]).toEqual([true, 3])
      expect(await faultsOf(id)).toEqual([])
    }
  })
})

describe('the drop of a month', () => {
  const OWN = { AUDIT_RETENTION_DAYS: daysOf(3), USAGE_RETENTION_DAYS: daysOf(3) }
  const dropped = [nameOf('audit_records', 5), nameOf('audit_records', 4)]

  it('moves the records of a broken chain, and removes those of the others', async () => {
    const [broken, whole] = [await createAged(deployment()), await createAged(deployment())]
    await database.execute(
      sql`UPDATE audit_records SET body = replace(body, '"cost":3', '"cost":1') WHERE organization_id = ${broken} AND sequence = 2`,
    )
    const errors = loggedErrors()
    await sweep(OWN)
    expect(await partitions('audit_records')).not.toEqual(expect.arrayContaining([dropped[0]]))
    expect(await partitions('audit_records')).not.toEqual(expect.arrayContaining([dropped[1]]))
    expect((await sequencesOf(broken)).slice(0, 7)).toEqual([1, 2, 3, 4, 5, 6, 7])
    expect((await sequencesOf(whole))[0]).toBe(5)
    expect(errors.map(({ event }) => event)).toContain('retention.chain_broken')
    expect(await faultsOf(broken)).toEqual([expect.objectContaining({ sequence: 2, reason: 'altered' })])
    expect(await faultsOf(whole)).toEqual([])
  })

  it('moves the records of the deployment, which keeps them for ever by default', async () => {
    const id = await createAged(deployment())
    await recordCalls(deployment(), DEPLOYMENT_ORGANIZATION_ID, [monthsAgo(5), monthsAgo(4), new Date()])
    await set(id, AGED)
    await sweep()
    for (const name of dropped) expect(await partitions('audit_records')).not.toContain(name)
    expect((await sequencesOf(DEPLOYMENT_ORGANIZATION_ID)).slice(0, 3)).toEqual([1, 2, 3])
    expect(await faultsOf(DEPLOYMENT_ORGANIZATION_ID)).toEqual([])
    expect(await faultsOf(id)).toEqual([])
  })

  it('is not made where more rows would have to be moved than it may', async () => {
    const id = await createAged(deployment())
    for (const [table, drop] of [
      ['audit_records', (most: number) => dropRecords(database, partitionOf('audit_records'), [], most)],
      ['usage_events', (most: number) => dropUsage(database, partitionOf('usage_events'), [], most)],
    ] as const) {
      expect(await drop(1)).toBeNull()
      expect(await partitions(table)).toContain(nameOf(table, 5))
      expect(await drop(2)).toBe(2)
      expect(await partitions(table)).not.toContain(nameOf(table, 5))
      expect(await countOf(table, id)).toBe(7)
    }
  })
  const partitionOf = (table: string) => ({ name: nameOf(table, 5), ends: new Date() })

  it('is prepared by as many runs as its budget takes, each of which goes on', async () => {
    const ids = []
    for (let count = 0; count < 4; count += 1) ids.push(await createAged(deployment()))
    let runs = 0
    for (; runs < 20; runs += 1) {
      const run = beginRun(retentionDepsOf(deployment(), OWN), 1_000, 60_000)
      await dropOldPartitions({ ...run, budget: new Budget(2, Date.now, 60_000) })
      run.attempts.throwFirst()
      if ((await listPartitionsBefore(database, 'audit_records', monthsAgo(3))).length === 0) break
    }
    // A chain takes two: one to begin, and one for its statement.
    expect(runs).toBeGreaterThanOrEqual(3)
    expect(runs).toBeLessThan(20)
    for (const id of ids) expect(await faultsOf(id)).toEqual([])
  })
})
