import { runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { sql } from 'drizzle-orm'
import { describe, expect, it } from 'vitest'
import { ledgerClient } from '../../src/ledger/client.ts'
import { callLedger, ledgerName } from '../../src/ledger/ledger-object.ts'
import { readChain } from '../../src/ledger/records/chain.store.ts'
import { GENESIS } from '../../src/ledger/records/chain.ts'
import type { Reflushed } from '../../src/ledger/records/chain-writer.ts'
import { withExtractedRows } from '../../src/ledger/records/extracted-rows.store.ts'
import { verifyRecord } from '../../src/ledger/records/verify.ts'
import { passTime, useDatabaseGate } from './database-gate.ts'
import {
  creditSum,
  database,
  expectIntactChain,
  newOrganization,
  type Organization,
  outcome,
} from './ledger-harness.ts'
import { fundedOrganization, SHARDS } from './ledger-shards-harness.ts'

const gate = useDatabaseGate()
const everything = { shard: null, from: null }

/** Takes Postgres back to a record of a chain: the records after it are gone, with the rows that were taken from them. */
async function restoreTo(organizationId: string, sequence: number, shard = 0): Promise<void> {
  const lost = await readChain(database, { organizationId, shard }, sequence, 10_000)
  const ids = lost.flatMap(({ id, body }) => [id, JSON.parse(body).credit?.id ?? id])
  const list = sql`(SELECT jsonb_array_elements_text(${JSON.stringify(ids)}::jsonb))`
  await database.batch([
    database.execute(sql`DELETE FROM audit_records
      WHERE organization_id = ${organizationId} AND shard = ${shard} AND sequence > ${sequence}`),
    database.execute(sql`DELETE FROM calls WHERE organization_id = ${organizationId} AND id IN ${list}`),
    database.execute(sql`DELETE FROM usage_events WHERE call_id IN ${list}`),
    database.execute(
      sql`DELETE FROM credit_entries WHERE organization_id = ${organizationId} AND id IN ${list}`,
    ),
  ])
}

async function spend(organization: Organization, calls: number): Promise<void> {
  for (let call = 0; call < calls; call += 1) {
    await organization.ledger.record(organization.opening({ at: Date.now() }), outcome({ cost: 2 }))
  }
}

/** An organization with a grant and ten calls that Postgres has. */
async function recordedOrganization(): Promise<Organization> {
  const organization = newOrganization()
  await organization.ledger.grantCredits(organization.grant(1_000))
  await spend(organization, 10)
  expect(await organization.ledger.flush()).toEqual({ pending: 0 })
  return organization
}

/** Verifies every record of a chain with its rows. @returns the number of records. */
async function expectWholeChain(organizationId: string, shard = 0): Promise<number> {
  const records = await readChain(database, { organizationId, shard }, 0, 10_000)
  let head = GENESIS
  for (const entry of await withExtractedRows(database, records)) {
    expect(verifyRecord(entry, head)).toEqual([])
    head = entry.record
  }
  return records.length
}

/** Postgres and the ledger agree about all of it. */
async function expectAgreement({ organizationId, ledger }: Organization): Promise<void> {
  expect(await ledger.flush()).toEqual({ pending: 0 })
  await expectWholeChain(organizationId)
  expect(await creditSum(organizationId)).toBe((await ledger.balance()).balance)
}

const reflushRecords = async (organization: Organization) =>
  (await organization.rows()).flatMap(({ action, body }) =>
    action === 'audit.reflushed' ? [JSON.parse(body).detail] : [],
  )

const onlyOf = (reflushed: Reflushed[]) => {
  expect(reflushed).toHaveLength(1)
  return reflushed[0] as Reflushed
}

describe('a ledger whose Postgres was taken back', () => {
  it('finds it out with its next record, and writes again what is missing', async () => {
    const organization = await recordedOrganization()
    const before = await organization.rows()
    await restoreTo(organization.organizationId, 4)
    await spend(organization, 1)
    expect(await organization.ledger.flush()).toEqual({ pending: 0 })
    await expectAgreement(organization)
    const after = await organization.rows()
    expect(after.slice(0, before.length)).toEqual(before)
    expect(await reflushRecords(organization)).toEqual([{ shard: 0, from: 5, to: 11 }])
    expect(gate.errorLog.join()).toContain('ledger.postgres_behind')
  })

  it('begins at its first record when Postgres has none', async () => {
    const organization = await recordedOrganization()
    await restoreTo(organization.organizationId, 0)
    await spend(organization, 1)
    await organization.ledger.flush()
    await expectAgreement(organization)
    expect(await organization.rows()).toHaveLength(13)
  })

  it('writes it again on request, where no record follows', async () => {
    const organization = await recordedOrganization()
    await restoreTo(organization.organizationId, 6)
    expect(onlyOf(await organization.ledger.reflush(everything))).toMatchObject({
      shard: 0,
      stored: 6,
      confirmed: 11,
      again: 5,
      lost: null,
      conflict: null,
      keptFrom: { sequence: 1 },
      pending: 6,
    })
    await expectAgreement(organization)
    const again = onlyOf(await organization.ledger.reflush(everything))
    expect(again).toMatchObject({ again: 0, stored: 12, confirmed: 12, pending: 0 })
    expect(await organization.rows()).toHaveLength(12)
  })

  it('repairs rows in the middle, from the record that is named', async () => {
    const organization = await recordedOrganization()
    const { organizationId } = organization
    const [, , , row] = await organization.rows()
    await database.execute(sql`DELETE FROM usage_events WHERE call_id = ${row?.id}`)
    await database.execute(
      sql`DELETE FROM audit_records WHERE organization_id = ${organizationId} AND sequence = 7`,
    )
    expect(onlyOf(await organization.ledger.reflush(everything))).toMatchObject({ again: 0 })
    expect(onlyOf(await organization.ledger.reflush({ shard: null, from: 4 }))).toMatchObject({
      again: 8,
      lost: null,
    })
    await expectAgreement(organization)
  })

  it('goes on after a restart in the middle, and loses nothing when answers are lost', async () => {
    const organization = await recordedOrganization()
    await restoreTo(organization.organizationId, 2)
    gate.mode = 'away'
    await expect(organization.ledger.reflush(everything)).rejects.toThrow()
    gate.mode = 'answer_lost'
    gate.lostText = 'link AS MATERIALIZED'
    expect(onlyOf(await organization.ledger.reflush(everything))).toMatchObject({ again: 9, pending: 10 })
    expect((await organization.ledger.flush()).pending).toBe(10)
    await organization.evict()
    gate.mode = 'open'
    await organization.ledger.flush()
    await expectAgreement(organization)
    expect(await organization.rows()).toHaveLength(12)
  })

  it('ignores the late answer of a write from before', async () => {
    const organization = await recordedOrganization()
    await spend(organization, 3)
    gate.held = true
    gate.heldText = 'link AS MATERIALIZED'
    const first = organization.ledger.flush()
    await expect.poll(() => gate.requestsOf(organization.organizationId)).toBeGreaterThan(2)
    await restoreTo(organization.organizationId, 5)
    gate.held = false
    await first
    await organization.ledger.reflush(everything)
    await expectAgreement(organization)
    expect((await organization.rows()).filter(({ kind }) => kind === 'call')).toHaveLength(13)
  })

  it('overwrites none of these commits, however old, until they are written', async () => {
    const organization = await recordedOrganization()
    await restoreTo(organization.organizationId, 1)
    gate.mode = 'answer_lost'
    gate.lostText = 'link AS MATERIALIZED'
    await organization.ledger.reflush(everything)
    expect((await organization.ledger.flush()).pending).toBe(11)
    for (let day = 0; day < 3; day += 1) {
      passTime(25 * 3_600_000)
      await spend(organization, 4)
      await organization.ledger.flush()
    }
    gate.mode = 'open'
    await restoreTo(organization.organizationId, 1)
    await organization.ledger.reflush(everything)
    await expectAgreement(organization)
    expect((await organization.rows()).filter(({ kind }) => kind === 'call')).toHaveLength(22)
  })

  it('says what neither of them has, and writes the rest', async () => {
    const organization = await recordedOrganization()
    await restoreTo(organization.organizationId, 2)
    await runInDurableObject(organization.stub(), (_, { storage }) => {
      storage.sql.exec('DELETE FROM commits WHERE number <= 6')
    })
    await organization.evict()
    const reflushed = onlyOf(await organization.ledger.reflush(everything))
    expect(reflushed).toMatchObject({ lost: { from: 3, to: 6 }, again: 5, keptFrom: { sequence: 7 } })
    expect(await organization.ledger.flush()).toEqual({ pending: 0 })
    expect((await organization.rows()).map(({ sequence }) => sequence)).toEqual([1, 2, 7, 8, 9, 10, 11, 12])
    expect(await reflushRecords(organization)).toEqual([
      { shard: 0, from: 7, to: 11, lost: { from: 3, to: 6 } },
    ])
    await spend(organization, 1)
    expect(await organization.ledger.flush()).toEqual({ pending: 0 })
  })

  it('goes on by itself where it has none of the lost records', async () => {
    const organization = await recordedOrganization()
    await restoreTo(organization.organizationId, 2)
    await runInDurableObject(organization.stub(), (_, { storage }) => {
      storage.sql.exec('DELETE FROM commits WHERE number < 11')
    })
    await organization.evict()
    passTime(9 * 24 * 3_600_000)
    await spend(organization, 2)
    expect(await organization.ledger.flush()).toEqual({ pending: 0 })
    expect((await organization.rows()).map(({ sequence }) => sequence)).toEqual([1, 2, 12, 13])
  })

  it('writes nothing over the chain of another ledger', async () => {
    const organization = await recordedOrganization()
    const { organizationId } = organization
    await restoreTo(organizationId, 4)
    await database.execute(
      sql`UPDATE audit_records SET hash = repeat('f', 64) WHERE organization_id = ${organizationId} AND sequence = 4`,
    )
    const reflushed = onlyOf(await organization.ledger.reflush(everything))
    expect(reflushed).toMatchObject({ again: 0, conflict: expect.stringContaining('another record') })
    await spend(organization, 1)
    expect((await organization.ledger.flush()).pending).toBeGreaterThan(0)
    expect(await organization.rows()).toHaveLength(4)
  })

  it('raises the epochs above those that it knows', async () => {
    const organization = await recordedOrganization()
    const { organizationId, ledger } = organization
    const slug = `restored-${organizationId.slice(0, 8)}`
    await database.execute(
      sql`INSERT INTO organizations (id, slug, name, epoch) VALUES (${organizationId}, ${slug}, ${slug}, 3)`,
    )
    await ledger.learnEpoch(7)
    const { raised } = onlyOf(await ledger.reflush(everything))
    expect(raised.organization).toBe(8)
    const { rows } = await database.execute(sql`SELECT epoch FROM organizations WHERE id = ${organizationId}`)
    expect(rows.map(({ epoch }) => Number(epoch))).toEqual([8])
    expect(onlyOf(await ledger.reflush(everything)).raised.organization).toBeNull()
    const stale = await organization.open(0, organization.opening(), {
      epochs: { organization: 7, catalogue: null },
    })
    expect(stale).toEqual({ kind: 'stale', organization: 8, catalogue: null })
  })
})

describe('the epochs of a Postgres that was taken back', () => {
  it('are raised by the first call whose rights were read there, or by the next flush', async () => {
    const organization = await recordedOrganization()
    const { organizationId, ledger } = organization
    const slug = `restored-${organizationId.slice(0, 8)}`
    await database.execute(
      sql`INSERT INTO organizations (id, slug, name, epoch) VALUES (${organizationId}, ${slug}, ${slug}, 7)`,
    )
    const epochOf = async () => {
      const { rows } = await database.execute(
        sql`SELECT epoch FROM organizations WHERE id = ${organizationId}`,
      )
      return Number(rows[0]?.epoch)
    }
    const takeBack = () =>
      database.execute(sql`UPDATE organizations SET epoch = 3 WHERE id = ${organizationId}`)
    const openAt = (epoch: number) =>
      organization.open(0, organization.opening(), {
        epochs: { organization: epoch, catalogue: null },
        learned: { organization: epoch, catalogue: null },
      })
    await ledger.learnEpoch(7)
    expect(await openAt(7)).toMatchObject({ kind: 'admitted' })
    await takeBack()
    expect(await openAt(3)).toEqual({ kind: 'stale', organization: 8, catalogue: null })
    expect(await epochOf()).toBe(8)
    expect(await openAt(8)).toMatchObject({ kind: 'admitted' })
    // A reader that was slow changes nothing.
    passTime(2_000)
    expect(await openAt(6)).toMatchObject({ kind: 'stale' })
    expect(await epochOf()).toBe(8)
    passTime(2_000)
    await takeBack()
    await spend(organization, 1)
    await ledger.flush()
    expect(await epochOf()).toBe(9)
    expect(await openAt(9)).toMatchObject({ kind: 'admitted' })
  })
})

describe('shards whose Postgres was taken back', () => {
  it('each write again what is missing, with the credits between them', async () => {
    const organization = await fundedOrganization(10_000)
    const { organizationId } = organization
    const calls = async () => {
      for (let shard = 0; shard < SHARDS; shard += 1) {
        const opening = organization.opening()
        expect(await organization.open(shard, 20, opening)).toMatchObject({ kind: 'admitted' })
        await organization.ledgerOf(shard).close(opening.callId, outcome({ cost: 5 }))
      }
      await organization.ledger.flush()
    }
    await calls()
    const lengths = await Promise.all(
      Array.from({ length: SHARDS }, async (_, shard) => {
        const rows = await readChain(database, { organizationId, shard }, 0, 1_000)
        return rows.length
      }),
    )
    await calls()
    await calls()
    const { balance } = await organization.ledger.balance()
    for (const [shard, length] of lengths.entries()) await restoreTo(organizationId, length, shard)
    expect(await creditSum(organizationId)).not.toBe(balance)

    const [second] = await organization.ledger.reflush({ shard: 2, from: null })
    expect(second).toMatchObject({ shard: 2, conflict: null, lost: null })
    const reflushed = await organization.ledger.reflush(everything)
    expect(reflushed.map(({ shard }) => shard)).toEqual([0, 1, 2, 3])
    expect(reflushed.map(({ again }) => again > 0)).toEqual([true, true, false, true])
    await organization.ledger.flush()
    for (let shard = 0; shard < SHARDS; shard += 1) await expectWholeChain(organizationId, shard)
    expect(await creditSum(organizationId)).toBe(balance)
    expect((await organization.ledger.balance()).balance).toBe(balance)
  })
})

describe('the place that a ledger can write again from', () => {
  it('moves on as commits are overwritten', async () => {
    const organization = await recordedOrganization()
    const keptFrom = async () => (await organization.ledger.chains())[0]?.keptFrom
    const at = Date.now()
    expect(await keptFrom()).toEqual({ sequence: 1, at })
    for (let day = 0; day < 2; day += 1) {
      passTime(25 * 3_600_000)
      await spend(organization, 1)
      await organization.ledger.flush()
    }
    await spend(organization, 4)
    expect((await keptFrom())?.sequence).toBeGreaterThan(3)
    await organization.ledger.flush()
    expect(await expectIntactChain(organization)).toHaveLength(17)
  })

  it('is asked of an object without beginning one', async () => {
    const name = ledgerName(crypto.randomUUID())
    expect(await callLedger(env.LEDGER, name, (ledger) => ledger.chains())).toEqual([])
    expect(await ledgerClient(env.LEDGER, name.split(':')[0] ?? '').chains()).toEqual([])
  })
})
