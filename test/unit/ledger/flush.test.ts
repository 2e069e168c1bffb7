import { randomUUID } from 'node:crypto'
import { eq, type SQL, sql } from 'drizzle-orm'
import { beforeEach, describe, expect, it } from 'vitest'
import type { Database } from '../../../schema/database.ts'
import { auditRecords } from '../../../schema/governance.ts'
import { type CallOpening, type CallOutcome, NO_ACTOR } from '../../../src/ledger/audit-record.ts'
import { type ChainIdentity, type ChainLink, GENESIS, nextLink } from '../../../src/ledger/records/chain.ts'
import { writeLinks } from '../../../src/ledger/records/flush.store.ts'
import {
  callText,
  changeText,
  openingText,
  outcomeText,
  timeOfBody,
} from '../../../src/ledger/records/record-body.ts'
import { emptyPostgres } from '../calls/stand-ins.ts'

const BATCH = 50

function contentOf(callId: string, organizationId: string, at = Date.UTC(2026, 10, 21)): string {
  const opening: CallOpening = {
    callId,
    requestId: `req_${callId}`,
    organizationId,
    at,
    actor: { userId: 'user-1', keyId: 'key-1', administrator: null, ip: '192.0.2.1' },
    surface: 'messages',
    action: 'POST /v1/messages',
    modelId: 'test-model',
  }
  const outcome: CallOutcome = {
    status: 200,
    errorCode: null,
    provider: 'p',
    attempts: [],
    usage: null,
    provenance: null,
    cost: 7,
    durationMilliseconds: 3,
    request: null,
    response: null,
    dlp: null,
    connectionId: null,
    flags: [],
  }
  return callText(openingText(opening), outcomeText(outcome), 9)
}

/** The batches of a chain that has not been written before. */
function batchesOf(identity: ChainIdentity, batches: number): ChainLink[][] {
  let head: ChainLink | typeof GENESIS = GENESIS
  return Array.from({ length: batches }, () =>
    Array.from({ length: BATCH }, () => {
      const callId = `call_${identity.organizationId}_${head.sequence + 1}`
      const link = nextLink(identity, head, callId, contentOf(callId, identity.organizationId))
      head = link
      return link
    }),
  )
}

/** Rows of records that statements have read. */
async function rowsRead(database: Database): Promise<number> {
  await database.execute(sql`SELECT pg_stat_force_next_flush()`)
  const { rows } = await database.execute<{ read: string }>(
    sql`SELECT sum(seq_tup_read + idx_tup_fetch) AS read FROM pg_stat_user_tables WHERE relname LIKE 'audit_records_%'`,
  )
  return Number(rows[0]?.read)
}

describe('writing records to Postgres', () => {
  let database: Database
  let identity: ChainIdentity

  beforeEach(async () => {
    ;({ database } = await emptyPostgres())
    identity = { organizationId: randomUUID(), shard: 0 }
  })

  const readBy = async (work: () => Promise<unknown>) => {
    const before = await rowsRead(database)
    await work()
    return (await rowsRead(database)) - before
  }

  it.each([
    { statistics: 'without statistics', analyzes: false },
    { statistics: 'with statistics', analyzes: true },
  ])('reads no more rows for a batch of a longer chain, $statistics', async ({ analyzes }) => {
    const batches = batchesOf(identity, 20)
    const reads: number[] = []
    for (const links of batches) {
      if (analyzes) await database.execute(sql`ANALYZE audit_records`)
      reads.push(await readBy(() => writeLinks(database, identity, links)))
    }
    const last = batches.at(-1) ?? []
    const repeated = await readBy(() => writeLinks(database, identity, last))
    expect(repeated).toBeGreaterThanOrEqual(BATCH)
    expect(Math.max(repeated, ...reads)).toBeLessThanOrEqual(4 * BATCH)
  })

  it('fails where Postgres holds another record in a place of the batch', async () => {
    const [first = []] = batchesOf(identity, 1)
    await writeLinks(database, identity, first)
    const id = 'call_of_another_chain'
    const other = nextLink(identity, GENESIS, id, contentOf(id, identity.organizationId))
    await expect(writeLinks(database, identity, [other])).rejects.toThrow('differs from what Postgres holds')
    await expect(writeLinks(database, identity, first)).resolves.toMatchObject({ catalogue: 1 })
  })

  it('writes nothing of a batch in whose places Postgres holds records of another month', async () => {
    const [first = []] = batchesOf(identity, 1)
    await writeLinks(database, identity, first)
    // A chain that was restored to its 20th record, and grows again ten days later.
    const prefix = first.slice(15, 20)
    let head = first[19] ?? GENESIS
    const again = Array.from({ length: 60 }, (_, index) => {
      const id = `call_again_${index}`
      const link = nextLink(identity, head, id, contentOf(id, identity.organizationId, Date.UTC(2026, 11, 1)))
      head = link
      return link
    })
    for (const batch of [again, [...prefix, ...again]]) {
      await expect(writeLinks(database, identity, batch)).rejects.toThrow('differs from what Postgres holds')
    }
    const { rows } = await database.execute(sql`SELECT
      (SELECT count(*)::int FROM audit_records WHERE organization_id = ${identity.organizationId}) AS records,
      (SELECT count(*)::int FROM calls WHERE organization_id = ${identity.organizationId}) AS calls,
      (SELECT count(*)::int FROM credit_entries WHERE organization_id = ${identity.organizationId}) AS entries`)
    expect(rows).toEqual([{ records: BATCH, calls: BATCH, entries: BATCH }])
  })

  /** Links of calls that were made at these times. */
  const linksAfter = (before: ChainLink | typeof GENESIS, times: readonly number[]) => {
    let head = before
    return times.map((at) => {
      const id = `call_${identity.organizationId}_${head.sequence + 1}`
      const link = nextLink(identity, head, id, contentOf(id, identity.organizationId, at))
      head = link
      return link
    })
  }
  const partitions = async () => {
    const { rows } = await database.execute<{ name: string }>(
      sql`SELECT name FROM month_partitions('audit_records')`,
    )
    return rows.map(({ name }) => name)
  }
  const countOfRecords = () =>
    database.$count(auditRecords, eq(auditRecords.organizationId, identity.organizationId))

  it('is planned for the partitions of its months, however many there are', async () => {
    const there = await partitions()
    const begins = sql`ahead * interval '1 month' + timestamp '2024-01-01'`
    await database.execute(
      sql`SELECT add_month_partition('audit_records', ${begins}) FROM generate_series(0, 35) AS ahead`,
    )
    const plans: string[] = []
    const explained: Database = Object.assign(Object.create(database), {
      execute: async (statement: SQL) => {
        const { rows } = await database.execute(sql`EXPLAIN (VERBOSE) ${statement}`)
        plans.push(JSON.stringify(rows))
        return database.execute(statement)
      },
    })
    const [first] = linksAfter(GENESIS, [Date.UTC(2026, 9, 15)])
    if (!first) throw new Error('there is no link')
    await writeLinks(database, identity, [first])
    await writeLinks(explained, identity, linksAfter(first, [Date.UTC(2026, 9, 20), Date.UTC(2026, 9, 18)]))
    const planned = plans.map((plan) => [...new Set(plan.match(/audit_records_\d{4}_\d\d/g))].sort())
    expect(planned).toEqual([['audit_records_2026_09', 'audit_records_2026_10', 'audit_records_2026_11']])
    expect(await countOfRecords()).toBe(3)
    // Other files have the same database.
    for (const name of await partitions()) {
      if (!there.includes(name)) await database.execute(sql`DROP TABLE ${sql.identifier(name)}`)
    }
  })

  it('follows a record that is years old', async () => {
    const [first] = linksAfter(GENESIS, [Date.UTC(2024, 1, 1)])
    if (!first) throw new Error('there is no link')
    await writeLinks(database, identity, [first])
    const links = linksAfter(first, [Date.UTC(2026, 10, 21)])
    expect(await writeLinks(database, identity, links)).toMatchObject({ catalogue: 1 })
    expect(await countOfRecords()).toBe(2)
    expect(await writeLinks(database, identity, links)).toMatchObject({ catalogue: 1 })
    expect(await countOfRecords()).toBe(2)
  })

  it.each([
    ['is missing', async () => database.delete(auditRecords).where(eq(auditRecords.sequence, 1))],
    ['is another one', async () => database.update(auditRecords).set({ hash: 'f'.repeat(64) })],
  ])('writes nothing after a record that %s', async (_, tamper) => {
    for (const at of [Date.UTC(2024, 1, 1), Date.UTC(2026, 10, 20)]) {
      identity = { organizationId: randomUUID(), shard: 0 }
      const [first] = linksAfter(GENESIS, [at])
      if (!first) throw new Error('there is no link')
      await writeLinks(database, identity, [first])
      await tamper()
      const left = await countOfRecords()
      const links = linksAfter(first, [Date.UTC(2026, 10, 21)])
      expect(await writeLinks(database, identity, links)).toBeNull()
      expect(await countOfRecords()).toBe(left)
    }
  })
})

describe('the time of a record', () => {
  const link = (content: string, id = 'call_1') =>
    nextLink({ organizationId: randomUUID(), shard: 3 }, GENESIS, id, content).body
  const change = {
    id: 'change_1',
    organizationId: '',
    requestId: 'req "at":1,',
    at: 5,
    actor: NO_ACTOR,
    action: 'x',
    resource: 'y',
    detail: { at: 7 },
  }
  const { detail: _, ...others } = change

  it.each([
    ['a call', link(contentOf('1', '', 1_795_000_000_001))],
    ['an id with quotes and an end', link(contentOf('\\"', '', 1), '\\","at":9,"x":"')],
    ['a change', link(changeText(change, null))],
    ['a change in another order', link(changeText({ detail: change.detail, ...others }, null))],
    ['a time before the epoch', link(contentOf('1', '', -5))],
  ])('is the member of %s', (_, body) => {
    expect(timeOfBody(body)).toBe(JSON.parse(body).at)
  })
})
