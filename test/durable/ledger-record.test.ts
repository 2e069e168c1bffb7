import { abortAllDurableObjects, runInDurableObject } from 'cloudflare:test'
import { sql } from 'drizzle-orm'
import { describe, expect, it } from 'vitest'
import type { CallOpening } from '../../src/ledger/audit-record.ts'
import type { CommitBatch } from '../../src/ledger/commits/commit.ts'
import {
  batchOf,
  type CommitEntry,
  callEntry,
  closingEntry,
  recordEntry,
} from '../../src/ledger/commits/commit-entries.ts'
import { OTHER_GRANT } from '../../src/ledger/contract.ts'
import type { LedgerObject } from '../../src/ledger/ledger-object.ts'
import { passTime, useDatabaseGate } from './database-gate.ts'
import {
  creditSum,
  database,
  expectIntactChain,
  LEASE_MS,
  newOrganization,
  type Organization,
  outcome,
  tableRows,
} from './ledger-harness.ts'

const gate = useDatabaseGate()

describe('loss of the object', () => {
  it.each([
    ['eviction', (organization: Organization) => organization.evict()],
    ['abort', () => abortAllDurableObjects()],
  ])('%s between any two steps loses and doubles nothing', async (_, lose) => {
    const organization = newOrganization()
    await organization.ledger.grantCredits(organization.grant(100))
    await lose(organization)
    const call = organization.opening()
    await organization.open(40, call)
    await lose(organization)
    expect(await organization.ledger.balance()).toEqual({ balance: 100, reserved: 40, available: 60 })
    await organization.ledger.close(call.callId, outcome({ cost: 13 }))
    await lose(organization)
    expect(await organization.ledger.balance()).toEqual({ balance: 87, reserved: 0, available: 87 })
    await expect(organization.open(40, call)).rejects.toThrow('was settled')
    expect((await organization.ledger.balance()).reserved).toBe(0)
    await organization.ledger.flush()
    await lose(organization)
    await organization.ledger.flush()
    expect(await expectIntactChain(organization)).toHaveLength(2)
    expect(await creditSum(organization.organizationId)).toBe(87)
  })

  it('begins again from Postgres when its storage is gone', async () => {
    const organization = newOrganization()
    const grant = organization.grant(100)
    await organization.ledger.grantCredits(grant)
    const call = organization.opening()
    await organization.open(40, call)
    await organization.ledger.close(call.callId, outcome({ cost: 13 }))
    await organization.ledger.flush()
    await organization.loseStorage()

    expect(await organization.ledger.balance()).toEqual({ balance: 87, reserved: 0, available: 87 })
    await organization.ledger.grantCredits(grant)
    await organization.ledger.recordChange(organization.change('api_key.created'))
    await organization.ledger.flush()
    const rows = await expectIntactChain(organization)
    expect(rows.map(({ sequence }) => sequence)).toEqual([1, 2, 3])
    expect((await organization.ledger.balance()).balance).toBe(87)
  })

  it('is called again on a fresh stub when its object goes away', async () => {
    const organization = newOrganization()
    await organization.open(0)
    await abortAllDurableObjects()
    expect(await organization.open(0)).toEqual({ kind: 'admitted' })
  })
})

describe('flush', () => {
  it.each(['away', 'answer_lost'] as const)('keeps what it has while Postgres is %s', async (mode) => {
    const organization = newOrganization()
    await organization.ledger.grantCredits(organization.grant(1000))
    gate.mode = mode
    for (let call = 0; call < 5; call += 1) {
      const opening = organization.opening()
      await organization.open(10, opening)
      await organization.ledger.close(opening.callId, outcome({ cost: 3 }))
      expect((await organization.ledger.flush()).pending).toBe(call + 2)
    }
    await organization.evict()
    gate.mode = 'open'
    expect(await organization.ledger.flush()).toEqual({ pending: 0 })
    expect(await expectIntactChain(organization)).toHaveLength(6)
    expect(await tableRows('usage_events', organization.organizationId)).toHaveLength(5)
    expect(await creditSum(organization.organizationId)).toBe(1000 - 15)
  })

  it('tries again by alarm, ever later, until Postgres is back', async () => {
    const organization = newOrganization()
    await organization.ledger.recordChange(organization.change('model.created'))
    gate.mode = 'away'
    const waits: number[] = []
    for (let attempt = 0; attempt < 9; attempt += 1) {
      await organization.runAlarm()
      const alarm = await runInDurableObject(organization.stub(), (_, state) => state.storage.getAlarm())
      waits.push((alarm ?? 0) - Date.now())
    }
    expect(waits).toEqual([1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000, 60_000])
    gate.mode = 'open'
    await organization.runAlarm()
    expect(await expectIntactChain(organization)).toHaveLength(1)
    expect(await organization.runAlarm()).toBe(false)
  })

  it('writes once when it is asked for several times at once', async () => {
    const organization = newOrganization()
    await organization.ledger.recordChange(organization.change('x'))
    const before = gate.requestsOf(organization.organizationId)
    const flushes = await Promise.all([1, 2, 3, 4].map(() => organization.ledger.flush()))
    expect(flushes).toEqual(Array(4).fill({ pending: 0 }))
    expect(gate.requestsOf(organization.organizationId) - before).toBe(1)
  })

  it('goes on admitting and settling while a flush waits for Postgres', async () => {
    const organization = newOrganization()
    await organization.ledger.grantCredits(organization.grant(100))
    gate.held = true
    const flushed = organization.ledger.flush()
    const call = organization.opening()
    await organization.open(10, call)
    await organization.ledger.close(call.callId, outcome({ cost: 3 }))
    gate.held = false
    expect(await flushed).toEqual({ pending: 0 })
    expect(await expectIntactChain(organization)).toHaveLength(2)
  })

  it('moves more than a batch holds, in order', async () => {
    const organization = newOrganization()
    const calls = Array.from({ length: 450 }, () => organization.opening())
    await Promise.all(calls.map((call) => organization.ledger.record(call, outcome())))
    // Old enough to be forgotten, which none of them may be before its own batch is written.
    passTime(3_600_000)
    await organization.ledger.record(organization.opening(), outcome())
    const before = gate.requestsOf(organization.organizationId)
    expect(await organization.ledger.flush()).toEqual({ pending: 0 })
    expect(gate.requestsOf(organization.organizationId) - before).toBe(3)
    expect(await expectIntactChain(organization)).toHaveLength(451)
  })

  it('keeps its records when another chain has taken their place in Postgres', async () => {
    const organization = newOrganization()
    await organization.ledger.recordChange(organization.change('a'))
    await organization.ledger.flush()
    await organization.loseStorage()
    // Begun while Postgres had no record, as if the earlier chain had been restored behind the object's back.
    await organization.ledger.balance()
    await runInDurableObject(organization.stub(), (_, state) => {
      state.storage.sql.exec('UPDATE account SET sequence = 0, flushed = 0, hash = ?', '0'.repeat(64))
    })
    await organization.evict()
    await organization.ledger.recordChange(organization.change('b'))
    expect(await organization.ledger.flush()).toMatchObject({ pending: 1 })
  })
})

describe('a record that Postgres refuses', () => {
  it('holds back nothing before it, is named in the log, and is followed by the rest once it is accepted', async () => {
    const organization = newOrganization()
    const changes = Array.from({ length: 20 }, (_, index) => organization.change(`change.${index}`))
    const started = new Date(Date.now()).toISOString()
    for (const change of changes) await organization.ledger.recordChange(change)
    const refused = changes[12]?.id ?? ''
    await database.execute(
      sql`ALTER TABLE audit_records ADD CONSTRAINT refuses CHECK (id <> ${sql.raw(`'${refused}'`)}) NOT VALID`,
    )
    try {
      passTime(60_000)
      expect(await organization.ledger.flush()).toEqual({ pending: 8, since: started })
      expect(await expectIntactChain(organization)).toHaveLength(12)
      await organization.evict()
      expect(await organization.ledger.flush()).toEqual({ pending: 8, since: started })
      const lines = gate.errorLog.map((line) => JSON.parse(line))
      // Ledgers of earlier tests may log their retries meanwhile.
      const named = lines.filter(({ event, id }) => event === 'ledger.record_refused' && id === refused)
      expect(named).toHaveLength(2)
      expect(named[0]).toMatchObject({ sequence: 13, code: '23514' })
      const failed = lines.filter(({ event }) => event === 'ledger.flush_failed')
      expect(failed).toContainEqual(expect.objectContaining({ pending: 8, since: started }))
      expect(gate.errorLog.join()).not.toContain('192.0.2.1')
    } finally {
      await database.execute(sql`ALTER TABLE audit_records DROP CONSTRAINT refuses`)
    }
    expect(await organization.ledger.flush()).toEqual({ pending: 0 })
    expect(await expectIntactChain(organization)).toHaveLength(20)
  })

  it('is not looked for while Postgres itself is away', async () => {
    const organization = newOrganization()
    for (const action of ['a', 'b', 'c']) await organization.ledger.recordChange(organization.change(action))
    gate.mode = 'away'
    const before = gate.requestsOf(organization.organizationId)
    expect(await organization.ledger.flush()).toMatchObject({ pending: 3 })
    expect(gate.requestsOf(organization.organizationId) - before).toBe(1)
    expect(gate.errorLog.join()).not.toContain('ledger.record_refused')
  })
})

describe('grants', () => {
  it('adds once however often the same grant comes', async () => {
    const organization = newOrganization()
    const grant = organization.grant(100)
    await organization.ledger.grantCredits(grant)
    const again = { ...grant, change: organization.change('credits.granted') }
    expect((await organization.ledger.grantCredits(again)).balance).toBe(100)
    await organization.ledger.flush()
    passTime(3_600_000)
    await organization.ledger.recordChange(organization.change('x'))
    await organization.ledger.flush()
    await organization.evict()
    expect((await organization.ledger.grantCredits(again)).balance).toBe(100)
    expect(await tableRows('credit_entries', organization.organizationId)).toMatchObject([
      { id: grant.id, kind: 'grant', amount: '100', reason: 'test' },
    ])
    expect(await expectIntactChain(organization)).toHaveLength(2)
  })

  it.each([
    ['before Postgres has it', async () => {}],
    [
      'after the object lost it',
      async (organization: Organization) => {
        await organization.ledger.flush()
        await organization.loseStorage()
      },
    ],
  ])('refuses another amount under the id of a grant, %s', async (_, then) => {
    const organization = newOrganization()
    const grant = organization.grant(100)
    await organization.ledger.grantCredits(grant)
    await then(organization)
    const other = { ...grant, amount: 101, change: organization.change('credits.granted') }
    await expect(organization.ledger.grantCredits(other)).rejects.toThrow(OTHER_GRANT)
    const again = { ...other, amount: 100 }
    expect((await organization.ledger.grantCredits(again)).balance).toBe(100)
  })

  it('takes a grant that is kept without its amount for the same one', async () => {
    const organization = newOrganization()
    const grant = organization.grant(100)
    await organization.ledger.grantCredits(grant)
    await runInDurableObject(organization.stub(), (_, state) => {
      state.storage.sql.exec('ALTER TABLE grants DROP COLUMN amount')
    })
    await organization.evict()
    const other = { ...grant, amount: 101, change: organization.change('credits.granted') }
    expect((await organization.ledger.grantCredits(other)).balance).toBe(100)
    const next = organization.grant(5)
    expect((await organization.ledger.grantCredits(next)).balance).toBe(105)
    await expect(organization.ledger.grantCredits({ ...next, amount: 6 })).rejects.toThrow(OTHER_GRANT)
  })

  it('refuses another grant under a change that was recorded before', async () => {
    const organization = newOrganization()
    const grant = organization.grant(100)
    await organization.ledger.grantCredits(grant)
    const other = { ...organization.grant(100), change: grant.change }
    await expect(organization.ledger.grantCredits(other)).rejects.toThrow('recorded before')
    expect((await organization.ledger.balance()).balance).toBe(100)
  })

  it.each([0.5, Number.NaN, 2 ** 53])('refuses a grant of %s', async (amount) => {
    const organization = newOrganization()
    await expect(organization.ledger.grantCredits(organization.grant(amount))).rejects.toThrow('amount')
  })
})

describe('what it costs', () => {
  it('writes one row for a commit, whatever it does', async () => {
    const organization = newOrganization()
    const { organizationId } = organization
    await organization.ledger.grantCredits(organization.grant(100))
    const written = (batch: CommitBatch) =>
      runInDurableObject(organization.stub(), async (instance, state) => {
        const { sql } = state.storage
        const exec = sql.exec.bind(sql)
        const cursors: Array<ReturnType<typeof exec>> = []
        Object.defineProperty(sql, 'exec', {
          configurable: true,
          value: (...parameters: Parameters<typeof exec>) => {
            const cursor = exec(...parameters)
            cursors.push(cursor)
            return cursor
          },
        })
        const answer = await (instance as unknown as LedgerObject).commit(batch)
        Reflect.deleteProperty(sql, 'exec')
        expect(answer).toEqual({ refused: [], unsettled: [] })
        return cursors.reduce((rows, cursor) => rows + cursor.rowsWritten, 0)
      })
    const batch = (...entries: CommitEntry[]) => batchOf(entries, (entry) => entry).batch
    const checks = { epochs: { organization: 0, catalogue: null }, learned: null, limits: null }
    const call = (opening: CallOpening) =>
      callEntry(organizationId, {
        opening,
        reserve: 10,
        leaseMilliseconds: LEASE_MS,
        estimate: null,
        ...checks,
      })
    const openings = Array.from({ length: 5 }, () => organization.opening())
    expect(await written(batch(...openings.map(call)))).toBe(1)
    const closings = openings.map(({ callId }) => closingEntry(callId, outcome({ cost: 3 })))
    const refused = recordEntry(organizationId, organization.opening(), outcome({ status: 403 }))
    expect(await written(batch(...closings, refused, call(organization.opening())))).toBe(1)
    expect(await organization.ledger.balance()).toEqual({ balance: 85, reserved: 10, available: 75 })
  })
})
