import { randomUUID } from 'node:crypto'
import { sql } from 'drizzle-orm'
import { beforeEach, describe, expect, it } from 'vitest'
import type { Database } from '../../../schema/database.ts'
import type { CallOpening, CallOutcome } from '../../../src/ledger/audit-record.ts'
import { type ChainIdentity, type ChainLink, GENESIS, nextLink } from '../../../src/ledger/records/chain.ts'
import { writeLinks } from '../../../src/ledger/records/flush.store.ts'
import { callText, openingText, outcomeText } from '../../../src/ledger/records/record-body.ts'
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
})
