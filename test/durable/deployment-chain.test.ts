import { evictDurableObject, runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { sql } from 'drizzle-orm'
import { describe, expect, it, vi } from 'vitest'
import { configurationOf } from '../../src/deps.ts'
import { DEPLOYMENT_ORGANIZATION_ID } from '../../src/ledger/audit-record.ts'
import { ledgerClient } from '../../src/ledger/client.ts'
import { DEPLOYMENT_LEDGER, type LedgerObject } from '../../src/ledger/ledger-object.ts'
import { readChain } from '../../src/ledger/records/chain.store.ts'
import { verifyCheckpoints, writeCheckpoint } from '../../src/ledger/records/checkpoint.ts'
import { exportedRecord, importedRecord } from '../../src/ledger/records/exported-rows.store.ts'
import { withExtractedRows } from '../../src/ledger/records/extracted-rows.store.ts'
import type { StoredRecord } from '../../src/ledger/records/record-body.ts'
import { REJECTED_CALLS_COUNTED } from '../../src/ledger/records/stated-rows.ts'
import { verifyRecord } from '../../src/ledger/records/verify.ts'
import { rejectedCallsName } from '../../src/ledger/rejected-calls/count-rejected-call.ts'
import { RejectedCalls, type RejectedCount } from '../../src/ledger/rejected-calls/rejected-calls.ts'
import { stateCounts } from '../../src/ledger/rejected-calls/state-counts.ts'
import { passTime, useDatabaseGate } from './database-gate.ts'
import { database } from './ledger-harness.ts'

// The only file whose objects write the chain of the deployment: a chain has one writer.

/** Later than any day that this runs on: an alarm in the past rings by itself. */
const minute = Date.UTC(2100, 0, 1, 10, 30)
const gate = useDatabaseGate(minute)
let nextAddress = 0

/** The chain of the deployment, with what Postgres has of its rows. */
async function deploymentRecords() {
  await (env.LEDGER.getByName(DEPLOYMENT_LEDGER) as unknown as LedgerObject).flush()
  const chain = { organizationId: DEPLOYMENT_ORGANIZATION_ID, shard: 0 }
  return withExtractedRows(database, await readChain(database, chain, 0, 10_000))
}

const headBefore = ({ sequence, previousHash }: StoredRecord) => ({
  sequence: sequence - 1,
  hash: previousHash,
})

function newAddress() {
  nextAddress += 1
  const ip = `2001:db8::${nextAddress}`
  const stub = () => env.LEDGER.getByName(rejectedCallsName(ip))
  return {
    ip,
    count: (at: number, surface = 'messages', calls = 1) =>
      (stub() as unknown as LedgerObject).countRejected(ip, at - (at % 60_000), surface, calls),
    runAlarm: () => runDurableObjectAlarm(stub()),
    evict: () => evictDurableObject(stub()),
    held: () =>
      runInDurableObject(stub(), (_, state) =>
        state.storage.sql.exec('SELECT minute, surface, count FROM rejected WHERE ip = ?', ip).toArray(),
      ),
    stored: async () => {
      const { rows } = await database.execute(sql`SELECT minute, surface, count FROM rejected_calls
        WHERE ip = ${ip} ORDER BY minute, surface`)
      return rows.map((row) => [new Date(String(row.minute)).getTime(), row.surface, row.count])
    },
    loseStorage: async () => {
      await runInDurableObject(stub(), (_, state) => state.storage.deleteAll())
      await evictDurableObject(stub())
    },
    /** What the deployment's chain states of the address. */
    stated: async () => {
      const records = (await deploymentRecords()).map(({ record }) => JSON.parse(record.body))
      return records
        .filter(({ action }) => action === REJECTED_CALLS_COUNTED)
        .flatMap(({ detail }) => detail.counts as Array<[string, string, string, number]>)
        .filter(([of]) => of === ip)
        .map(([, at, surface, count]) => [Date.parse(at), surface, count])
    },
    /** What verification finds of the address, in Postgres and in an export. */
    faults: async () => {
      const entries = await deploymentRecords()
      const exported = JSON.parse(JSON.stringify(entries.map(exportedRecord))).map(importedRecord)
      const [found, foundOffline] = [entries, exported].map((records: typeof entries) =>
        records
          .flatMap((entry) => verifyRecord(entry, headBefore(entry.record)))
          .filter(({ detail }) => detail.includes(ip)),
      )
      expect(foundOffline).toEqual(found)
      return found
    },
  }
}

describe('keyless calls', () => {
  it('are counted per address, minute and surface', async () => {
    const address = newAddress()
    await Promise.all(Array.from({ length: 20 }, (_, index) => address.count(minute + index)))
    await address.count(minute + 59_999, 'mcp')
    await address.count(minute + 60_000)
    expect(await address.stored()).toEqual([])
    expect(await address.runAlarm()).toBe(true)
    expect(await address.stored()).toEqual([
      [minute, 'mcp', 1],
      [minute, 'messages', 20],
      [minute + 60_000, 'messages', 1],
    ])
  })

  it('are added up when several are told at once', async () => {
    const address = newAddress()
    await address.count(minute, 'messages', 40)
    await address.count(minute, 'messages', 2)
    await address.runAlarm()
    expect(await address.stored()).toEqual([[minute, 'messages', 42]])
  })

  it('are counted once, whatever becomes of the object or the answer of Postgres', async () => {
    const address = newAddress()
    await address.count(minute)
    gate.mode = 'answer_lost'
    await address.runAlarm()
    await address.count(minute)
    await address.evict()
    gate.mode = 'away'
    await address.runAlarm()
    await address.count(minute)
    gate.mode = 'open'
    await address.runAlarm()
    await address.evict()
    await address.count(minute)
    await address.runAlarm()
    expect(await address.stored()).toEqual([[minute, 'messages', 4]])
  })

  it('are not told to the log when they cannot be written', async () => {
    const address = newAddress()
    await address.count(minute)
    gate.mode = 'away'
    await address.runAlarm()
    const lines = gate.errorLog.join('\n')
    expect(lines).toContain('ledger.flush_failed')
    expect(lines).toContain('connection refused')
    expect(lines).not.toContain(address.ip)
  })

  it.each([
    [0, [[minute, 'messages', 2]]],
    // The totals of the first minute are final by then.
    [
      10 * 60_000,
      [
        [minute, 'messages', 1],
        [minute + 10 * 60_000, 'messages', 1],
      ],
    ],
  ])('counted while a flush is on its way are flushed too (%i ms later)', async (later, stored) => {
    const address = newAddress()
    await address.count(minute)
    passTime(later)
    gate.held = true
    const flushed = address.runAlarm()
    await address.count(minute)
    gate.held = false
    await flushed
    expect(await address.stored()).toEqual(stored)
  })

  it('of addresses that go on being refused do not hold back those of others', async () => {
    await runInDurableObject(env.LEDGER.getByName('unauthenticated:fairness'), async (_, state) => {
      const sent = new Set<string>()
      const send = async (batch: RejectedCount[]) => {
        for (const { ip } of batch) sent.add(ip)
      }
      const options = { name: 'fairness', clock: Date.now, write: send, state: async () => {} }
      const counts = new RejectedCalls(state.storage.sql, options)
      const busy = Array.from({ length: 500 }, (_, index) => `198.51.100.${index}`)
      const refuseBusyOnes = () => {
        for (const ip of busy) counts.count(ip, minute, 'messages')
      }
      refuseBusyOnes()
      counts.count('192.0.2.77', minute, 'messages')
      for (let round = 0; round < 2; round += 1) {
        const batch = counts.take() ?? []
        refuseBusyOnes()
        await counts.write(batch)
        counts.written(batch)
      }
      expect([...sent]).toContain('192.0.2.77')
      expect(sent.size).toBe(501)
      expect(counts.pending()).toBe(500)
    })
  })

  it('leave the object once their totals are final, Postgres has them, and the chain states them', async () => {
    const address = newAddress()
    await address.count(minute)
    await address.runAlarm()
    expect(await address.held()).toHaveLength(1)
    vi.setSystemTime(minute + 3 * 60_000)
    await address.count(minute)
    vi.setSystemTime(minute + 6 * 60_000)
    gate.mode = 'away'
    await address.count(minute)
    await address.runAlarm()
    expect(await address.held()).toHaveLength(2)
    gate.mode = 'open'
    await address.runAlarm()
    expect(await address.held()).toEqual([{ minute: minute + 6 * 60_000, surface: 'messages', count: 1 }])
    expect(await address.stored()).toEqual([
      [minute, 'messages', 2],
      [minute + 6 * 60_000, 'messages', 1],
    ])
    expect(await address.stated()).toEqual([[minute, 'messages', 2]])
  })

  it('are stated once, when the answer of the chain was lost', async () => {
    const address = newAddress()
    await address.count(minute)
    await address.runAlarm()
    vi.setSystemTime(minute + 6 * 60_000)
    const counts = [{ ip: address.ip, minute, surface: 'messages', count: 1 }]
    await stateCounts(env.LEDGER, counts, Date.now())
    await address.runAlarm()
    expect(await address.held()).toEqual([])
    expect(await address.stated()).toEqual([[minute, 'messages', 1]])
  })

  it.each([
    ['changed', 'rejected_calls_differs', sql`UPDATE rejected_calls SET count = count + 1 WHERE ip =`],
    ['deleted', 'rejected_calls_missing', sql`DELETE FROM rejected_calls WHERE ip =`],
  ])('are found to be %s in Postgres, also in an export', async (_, reason, damage) => {
    const address = newAddress()
    await address.count(minute, 'messages', 3)
    await address.runAlarm()
    vi.setSystemTime(minute + 6 * 60_000)
    await address.runAlarm()
    expect(await address.faults()).toEqual([])
    await database.execute(sql`${damage} ${address.ip}`)
    expect(await address.faults()).toEqual([
      expect.objectContaining({ reason, detail: expect.stringContaining(address.ip) }),
    ])
  })

  it('do not lower a total that Postgres has, when the object lost its own', async () => {
    const address = newAddress()
    for (let call = 0; call < 5; call += 1) await address.count(minute)
    await address.runAlarm()
    await address.loseStorage()
    await address.count(minute)
    await address.runAlarm()
    expect((await address.stored())[0]).toEqual([minute, 'messages', 5])
  })
})

describe('checkpoints', () => {
  const deps = {
    database,
    clock: () => Date.now(),
    configuration: configurationOf(env),
    ledgerOf: (organizationId: string) => ledgerClient(env.LEDGER, organizationId),
  }
  const verify = async (id: string) => {
    const { faults } = await verifyCheckpoints(deps, { organizationId: null, after: null, limit: 1_000 })
    return [
      ...faults.filter(({ checkpointId }) => checkpointId === id),
      ...(await deploymentRecords())
        .flatMap((entry) => verifyRecord(entry, headBefore(entry.record)))
        .filter(({ detail }) => detail.includes(id)),
    ]
  }

  it.each([
    ['deleted', 'checkpoint_missing', (id: string) => sql`DELETE FROM audit_checkpoints WHERE id = ${id}`],
    [
      'replaced by the state of another one',
      'checkpoint_differs',
      (id: string) => sql`UPDATE audit_checkpoints SET (at, heads, pepper_id, mac) =
        (SELECT at, heads, pepper_id, mac FROM audit_checkpoints WHERE id <> ${id} LIMIT 1) WHERE id = ${id}`,
    ],
  ])('are found to be %s', async (_, reason, damage) => {
    await writeCheckpoint(deps)
    passTime(1)
    const { id } = await writeCheckpoint(deps)
    expect(await verify(id)).toEqual([])
    await database.execute(damage(id))
    expect(await verify(id)).toEqual([expect.objectContaining({ reason })])
    await database.execute(sql`DELETE FROM audit_checkpoints WHERE id = ${id}`)
  })
})

describe('a Postgres that was taken back', () => {
  it('gets the counts and the checkpoints again that the records state', async () => {
    const address = newAddress()
    const before = (await deploymentRecords()).at(-1)?.record.sequence ?? 0
    await address.count(minute, 'messages', 3)
    await address.runAlarm()
    vi.setSystemTime(minute + 6 * 60_000)
    await address.runAlarm()
    const deps = {
      database,
      clock: () => Date.now(),
      configuration: configurationOf(env),
      ledgerOf: (organizationId: string) => ledgerClient(env.LEDGER, organizationId),
    }
    const checkpoint = await writeCheckpoint(deps)
    const records = await deploymentRecords()
    const owned = sql`organization_id = ${DEPLOYMENT_ORGANIZATION_ID}`
    await database.batch([
      database.execute(sql`DELETE FROM audit_records WHERE ${owned} AND sequence > ${before}`),
      database.execute(sql`DELETE FROM rejected_calls WHERE ip = ${address.ip}`),
      database.execute(sql`DELETE FROM audit_checkpoints WHERE id = ${checkpoint.id}`),
    ])

    const ledger = ledgerClient(env.LEDGER, DEPLOYMENT_ORGANIZATION_ID)
    const [reflushed] = await ledger.reflush({ shard: null, from: null })
    expect(reflushed).toMatchObject({ again: records.length - before, lost: null, conflict: null })
    const after = await deploymentRecords()
    expect(after.slice(0, records.length)).toEqual(records)
    expect(await address.stored()).toEqual([[minute, 'messages', 3]])
    expect(await address.faults()).toEqual([])
    const { rows } = await database.execute(sql`SELECT * FROM audit_checkpoints WHERE id = ${checkpoint.id}`)
    expect(rows).toEqual([
      expect.objectContaining({
        mac: checkpoint.mac,
        heads: checkpoint.heads,
        pepper_id: checkpoint.pepperId,
      }),
    ])
    const { faults } = await verifyCheckpoints(deps, { organizationId: null, after: null, limit: 1_000 })
    expect(faults.filter(({ checkpointId }) => checkpointId === checkpoint.id)).toEqual([])
  })

  it('continues the epoch of the catalogue above the one that was announced', async () => {
    const ledger = ledgerClient(env.LEDGER, DEPLOYMENT_ORGANIZATION_ID)
    const epochOf = async () => {
      const query = sql`SELECT epoch FROM deployment_epochs WHERE name = 'catalogue'`
      const { rows } = await database.execute(query)
      return Number(rows[0]?.epoch ?? 1)
    }
    const announced = (await epochOf()) + 100
    await ledger.announceCatalogue(announced)
    const [reflushed] = await ledger.reflush({ shard: null, from: null })
    expect(reflushed?.raised).toEqual({ organization: null, catalogue: announced + 1 })
    expect(await epochOf()).toBe(announced + 1)
    const [again] = await ledger.reflush({ shard: null, from: null })
    expect(again?.raised.catalogue).toBeNull()
  })
})
