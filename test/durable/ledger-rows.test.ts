import { runInDurableObject } from 'cloudflare:test'
import { sql } from 'drizzle-orm'
import { beforeEach, describe, expect, it } from 'vitest'
import { passTime, useDatabaseGate } from './database-gate.ts'
import {
  creditSum,
  database,
  expectIntactChain,
  LEASE_MS,
  newOrganization,
  type Organization,
  outcome,
} from './ledger-harness.ts'

const DAY_MS = 24 * 60 * 60_000
const gate = useDatabaseGate()

/** Rows by the statement that wrote them, as Cloudflare bills them: deleted ones and set alarms count as well. */
interface Written {
  inserted: number
  updated: number
  deleted: number
  alarms: number
}

/** Counts what the object of an organization writes, from now on until it is evicted. */
async function countRows(organization: Organization): Promise<() => Promise<Written>> {
  const counts: Written = { inserted: 0, updated: 0, deleted: 0, alarms: 0 }
  const members = { INSERT: 'inserted', UPDATE: 'updated', DELETE: 'deleted' } as const
  await runInDurableObject(organization.stub(), (_, { storage }) => {
    const { sql: statements } = storage
    const exec = statements.exec.bind(statements)
    const setAlarm = storage.setAlarm.bind(storage)
    const counted = (...parameters: Parameters<typeof exec>) => {
      const cursor = exec(...parameters)
      const verb = /^\s*(INSERT|UPDATE|DELETE)/.exec(parameters[0])?.[1] as keyof typeof members | undefined
      if (verb !== undefined) counts[members[verb]] += cursor.rowsWritten
      return cursor
    }
    Object.defineProperty(statements, 'exec', { configurable: true, value: counted })
    Object.defineProperty(storage, 'setAlarm', {
      configurable: true,
      value: (time: number) => {
        counts.alarms += 1
        return setAlarm(time)
      },
    })
  })
  return async () => {
    const written = { ...counts }
    Object.assign(counts, { inserted: 0, updated: 0, deleted: 0, alarms: 0 })
    return written
  }
}

const NOTHING: Written = { inserted: 0, updated: 0, deleted: 0, alarms: 0 }
const sumOf = ({ inserted, updated, deleted, alarms }: Written) => inserted + updated + deleted + alarms

/** Calls from one isolate, so many at a time, each of which takes some milliseconds. */
async function callTimes(organization: Organization, calls: number, atOnce: number): Promise<void> {
  let begun = 0
  const caller = async () => {
    while (begun < calls) {
      begun += 1
      const opening = organization.opening()
      await organization.open(1, opening)
      await new Promise((resolve) => setTimeout(resolve, 5))
      // As in the gateway, nobody waits for it.
      settling.push(organization.ledger.close(opening.callId, outcome({ cost: 1 })))
    }
  }
  const settling: Array<Promise<void>> = []
  await Promise.all(Array.from({ length: atOnce }, caller))
  await Promise.all(settling)
}

/** The commits that the object has stored. */
const commitsOf = (organization: Organization): Promise<number> =>
  runInDurableObject(organization.stub(), (_, { storage }) =>
    Number(storage.sql.exec('SELECT max(number) AS number FROM commits').one().number),
  )

describe('rows that are written', () => {
  let organization: Organization
  let written: () => Promise<Written>

  beforeEach(async () => {
    organization = newOrganization()
    await organization.ledger.grantCredits(organization.grant(1_000_000))
    await organization.ledger.flush()
    written = await countRows(organization)
  })

  it('by a call: one for its opening, one for its end, and none to write it to Postgres', async () => {
    const call = organization.opening()
    await organization.open(10, call)
    expect(await written()).toEqual({ ...NOTHING, inserted: 1, alarms: 1 })
    await organization.ledger.extend(call.callId, LEASE_MS, null)
    expect(await written()).toEqual({ ...NOTHING, inserted: 1 })
    await organization.ledger.close(call.callId, outcome({ cost: 3 }))
    expect(await written()).toEqual({ ...NOTHING, inserted: 1 })
    await organization.ledger.flush()
    expect(await written()).toEqual(NOTHING)
    passTime(61_000)
    await organization.open(0)
    await organization.ledger.record(organization.opening(), outcome())
    expect(await written()).toEqual({ ...NOTHING, inserted: 2 })
    await organization.ledger.flush()
    // Progress, once a minute.
    expect(await written()).toEqual({ ...NOTHING, updated: 1 })
  })

  it('by a call whose lease runs out: one to settle it', async () => {
    await organization.open(10)
    await written()
    passTime(LEASE_MS)
    await organization.runAlarm()
    expect((await written()).inserted).toBe(1)
  })

  it('by changes: one, and one more for a grant', async () => {
    await organization.ledger.recordChange(organization.change('api_key.created'))
    expect((await written()).inserted).toBe(1)
    await organization.ledger.grantCredits(organization.grant(5))
    expect((await written()).inserted).toBe(2)
  })

  it.each([
    { atOnce: 1, most: 1.3 },
    { atOnce: 8, most: 1.2 },
    { atOnce: 32, most: 0.8 },
  ])(
    'by calls, $atOnce at a time: one a commit, and none is deleted a day later',
    async ({ atOnce, most }) => {
      const calls = 20 * atOnce
      const day = async () => {
        const before = await commitsOf(organization)
        await callTimes(organization, calls, atOnce)
        await organization.runAlarm()
        await organization.ledger.flush()
        return { commits: (await commitsOf(organization)) - before, rows: await written() }
      }
      const first = await day()
      expect(first.rows).toMatchObject({ inserted: first.commits, deleted: 0 })
      passTime(DAY_MS + 60_000)
      const second = await day()
      passTime(DAY_MS + 60_000)
      const third = await day()
      expect(third.rows.deleted + second.rows.deleted).toBe(0)
      // A flush of the second finds that the rows of the first are old. It may come before the last calls of the second, which
      // then take some of these rows; the third takes the others.
      expect(second.rows.updated + third.rows.updated).toBeGreaterThanOrEqual(
        Math.min(third.commits, first.commits),
      )
      expect(sumOf(third.rows) - third.commits).toBeLessThanOrEqual(6)
      expect(sumOf(third.rows) / calls).toBeLessThanOrEqual(most)
      console.info(
        JSON.stringify({ counted: 'ledger rows', atOnce, calls, commits: third.commits, ...third.rows }),
      )
    },
  )

  it('by calls that are far apart: two, because a flush that is due needs no alarm of its own', async () => {
    // The interval of flushes in these tests. The lease is longer, so that its alarm is the one that is set.
    const interval = 3_600_000
    await organization.runAlarm()
    await organization.open(0, organization.opening(), { leaseMilliseconds: 100 * interval })
    expect((await written()).alarms).toBe(1)
    for (let call = 1; call <= 3; call += 1) {
      passTime(interval)
      const opening = organization.opening()
      await organization.open(1, opening, { leaseMilliseconds: 101 * interval })
      await organization.ledger.close(opening.callId, outcome({ cost: 1 }))
      await expect.poll(async () => (await organization.rows()).length).toBe(1 + call)
      // With the first of them, the call that has been open for long gets a row of its own.
      expect(await written()).toEqual({ ...NOTHING, inserted: call === 1 ? 3 : 2, updated: 1 })
    }
  })

  it('are repeated by the alarm that is set, when the object goes away before Postgres has the records', async () => {
    const interval = 3_600_000
    await organization.runAlarm()
    await organization.open(0, organization.opening(), { leaseMilliseconds: 2 * interval })
    passTime(interval)
    const opening = organization.opening()
    await organization.open(1, opening)
    gate.mode = 'away'
    await organization.ledger.close(opening.callId, outcome({ cost: 1 }))
    await organization.evict()
    gate.mode = 'open'
    expect(await organization.rows()).toHaveLength(1)
    await organization.runAlarm()
    expect(await expectIntactChain(organization)).toHaveLength(2)
  })
})

describe('records of a day', () => {
  it('are in the object, and are written again to a Postgres that has lost them', async () => {
    const organization = newOrganization()
    const { organizationId } = organization
    await organization.ledger.grantCredits(organization.grant(1_000))
    await organization.ledger.flush()
    for (let hour = 0; hour < 20; hour += 1) {
      passTime(3_600_000)
      const call = organization.opening({ at: Date.now() })
      await organization.open(5, call)
      await organization.ledger.close(call.callId, outcome({ cost: 2 }))
      await organization.ledger.flush()
    }
    const before = await expectIntactChain(organization)
    expect(before).toHaveLength(21)
    await database.execute(
      sql`DELETE FROM audit_records WHERE organization_id = ${organizationId} AND sequence > 3`,
    )
    for (const table of ['usage_events', 'credit_entries']) {
      const lost = before.slice(3).map(({ id }) => id)
      const column = sql.identifier(table === 'usage_events' ? 'call_id' : 'id')
      await database.execute(
        sql`DELETE FROM ${sql.identifier(table)} WHERE ${column} = ANY(string_to_array(${lost.join(' ')}, ' '))`,
      )
    }
    await runInDurableObject(organization.stub(), (_, { storage }) => {
      storage.sql.exec('UPDATE account SET flushed = 3')
    })
    await organization.evict()
    expect(await organization.ledger.flush()).toEqual({ pending: 0 })
    expect(await expectIntactChain(organization)).toEqual(before)
    expect(await creditSum(organizationId)).toBe(1_000 - 40)
    expect((await organization.ledger.balance()).balance).toBe(1_000 - 40)
  })
})

/** The tables as versions before left them, whose commits were deleted after two minutes. */
const TABLES_BEFORE = `
  DROP TABLE commits; DROP TABLE account; DROP TABLE open_calls; DROP TABLE grants;
  CREATE TABLE account (
    id INTEGER PRIMARY KEY CHECK (id = 1), organization_id TEXT NOT NULL, shard INTEGER NOT NULL,
    balance INTEGER NOT NULL, sequence INTEGER NOT NULL, hash TEXT NOT NULL, flushed INTEGER NOT NULL,
    replay_from INTEGER NOT NULL DEFAULT 0, epoch INTEGER NOT NULL DEFAULT 0,
    epoch_confirmed_at INTEGER NOT NULL DEFAULT 0, catalogue_epoch INTEGER NOT NULL DEFAULT 0,
    catalogue_confirmed_at INTEGER NOT NULL DEFAULT 0);
  CREATE TABLE open_calls (
    call_id TEXT PRIMARY KEY, reserve INTEGER NOT NULL, deadline INTEGER NOT NULL, opening TEXT NOT NULL,
    progress TEXT) WITHOUT ROWID;
  CREATE TABLE grants (id TEXT PRIMARY KEY, amount INTEGER) WITHOUT ROWID;
  CREATE TABLE commits (
    number INTEGER PRIMARY KEY, at INTEGER NOT NULL, sequence INTEGER NOT NULL, hash TEXT NOT NULL,
    balance INTEGER NOT NULL, previous_hash TEXT NOT NULL, counted TEXT NOT NULL, opened TEXT NOT NULL,
    renewed TEXT NOT NULL, ids TEXT NOT NULL, hashes TEXT NOT NULL, bodies TEXT NOT NULL);`

/** Moves what the object has stored into tables of the version before, without the first commits. */
async function turnBack(organization: Organization, deletedCommits: number): Promise<void> {
  await runInDurableObject(organization.stub(), (_, { storage }) => {
    const tables = ['account', 'open_calls', 'grants', 'commits']
    const stored = tables.map((table) => [...storage.sql.exec(`SELECT * FROM ${table}`).raw()])
    storage.sql.exec(TABLES_BEFORE)
    for (const [index, table] of tables.entries()) {
      for (const row of stored[index] ?? []) {
        storage.sql.exec(`INSERT INTO ${table} VALUES (${row.map(() => '?').join(', ')})`, ...row)
      }
    }
    storage.sql.exec('DELETE FROM commits WHERE number <= ?', deletedCommits)
  })
  await organization.evict()
}

describe('a storage whose old commits were deleted', () => {
  it('goes on: balance, open calls, records that wait, grants, and rows that are overwritten a day later', async () => {
    const organization = newOrganization()
    const grant = organization.grant(100)
    await organization.ledger.grantCredits(grant)
    for (let call = 0; call < 5; call += 1) {
      await organization.ledger.record(organization.opening(), outcome({ cost: 1 }))
    }
    await organization.ledger.flush()
    const open = organization.opening()
    await organization.open(30, open)
    await organization.ledger.record(organization.opening(), outcome({ cost: 1 }))
    await turnBack(organization, 3)

    expect(await organization.ledger.balance()).toEqual({ balance: 94, reserved: 30, available: 64 })
    const again = { ...grant, change: organization.change('credits.granted') }
    expect((await organization.ledger.grantCredits(again)).balance).toBe(94)
    await expect(organization.open(30, open)).resolves.toEqual({ kind: 'admitted' })
    await organization.ledger.close(open.callId, outcome({ cost: 4 }))
    expect(await organization.ledger.flush()).toEqual({ pending: 0 })
    passTime(DAY_MS + 60_000)
    await organization.ledger.record(organization.opening(), outcome({ cost: 1 }))
    await organization.ledger.flush()
    const written = await countRows(organization)
    await organization.ledger.record(organization.opening(), outcome({ cost: 1 }))
    expect(await written()).toMatchObject({ inserted: 0, updated: 1 })
    await organization.evict()
    await organization.ledger.flush()
    expect(await expectIntactChain(organization)).toHaveLength(10)
    expect((await organization.ledger.balance()).balance).toBe(88)
  })
})
