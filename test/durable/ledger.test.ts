import { abortAllDurableObjects, runInDurableObject } from 'cloudflare:test'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { NO_USAGE } from '../../src/governance/credits.ts'
import { DatabaseGate } from './database-gate.ts'
import {
  creditSum,
  expectIntactChain,
  LEASE_MS,
  newOrganization,
  outcome,
  tableRows,
} from './ledger-harness.ts'

const gate = new DatabaseGate()

beforeEach(() => {
  Object.assign(gate, { mode: 'open', held: false, requests: 0 })
  gate.install()
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() })
})

afterEach(() => {
  gate.remove()
  vi.useRealTimers()
})

const passTime = (milliseconds: number) => vi.setSystemTime(Date.now() + milliseconds)

describe('admission', () => {
  it('admits exactly what the balance holds among concurrent calls', async () => {
    const organization = newOrganization()
    await organization.ledger.grantCredits(organization.grant(50 * 7 + 6))

    const results = await Promise.all(Array.from({ length: 200 }, () => organization.open(7)))

    expect(results.filter((result) => result.admitted)).toHaveLength(50)
    expect(results.find((result) => !result.admitted)).toEqual({
      admitted: false,
      reason: 'no_credits',
      available: 6,
      required: 7,
    })
    expect(await organization.ledger.balance()).toEqual({ balance: 356, reserved: 350, available: 6 })
  })

  it('lets concurrent first calls begin one account', async () => {
    const organization = newOrganization()
    await Promise.all(Array.from({ length: 20 }, () => organization.open(0)))
    expect(gate.requests).toBe(1)
    expect(await organization.ledger.flush()).toEqual({ pending: 0 })
  })

  it('admits a call that costs nothing on an empty or negative balance', async () => {
    const organization = newOrganization()
    expect(await organization.open(0)).toEqual({ admitted: true })
    await organization.ledger.grantCredits(organization.grant(-5))
    expect(await organization.open(0)).toEqual({ admitted: true })
    expect(await organization.open(1)).toMatchObject({ admitted: false, available: -5 })
  })

  it('reserves once however often the same call is opened', async () => {
    const organization = newOrganization()
    await organization.ledger.grantCredits(organization.grant(10))
    const call = organization.opening()
    await organization.open(6, call)
    expect(await organization.open(6, call)).toEqual({ admitted: true })
    expect((await organization.ledger.balance()).reserved).toBe(6)
    await organization.ledger.close(call.callId, outcome({ cost: 2 }))
    expect(await organization.open(6, call)).toEqual({ admitted: true })
    expect(await organization.ledger.balance()).toEqual({ balance: 8, reserved: 0, available: 8 })
  })

  it('refuses every call while an account cannot be begun, and begins it once Postgres is back', async () => {
    const organization = newOrganization()
    gate.mode = 'away'
    await expect(organization.open(0)).rejects.toThrow()
    await expect(organization.ledger.balance()).rejects.toThrow()
    gate.mode = 'open'
    expect(await organization.open(0)).toEqual({ admitted: true })
    gate.mode = 'away'
    expect(await organization.open(0)).toEqual({ admitted: true })
  })

  it.each([-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY])('refuses to reserve %s', async (reserve) => {
    const organization = newOrganization()
    await organization.ledger.grantCredits(organization.grant(100))
    await expect(organization.open(reserve)).rejects.toThrow('reserve')
    expect((await organization.ledger.balance()).available).toBe(100)
  })

  it('refuses the record of another organization', async () => {
    const organization = newOrganization()
    const foreign = organization.opening({ organizationId: crypto.randomUUID() })
    await expect(organization.open(0, foreign)).rejects.toThrow('another organization')
    await expect(organization.ledger.record(foreign, outcome())).rejects.toThrow('another organization')
  })
})

describe('settlement', () => {
  it('releases what was held, takes the cost and records both, with the usage', async () => {
    const organization = newOrganization()
    await organization.ledger.grantCredits(organization.grant(100))
    const call = organization.opening()
    await organization.open(40, call)
    expect(await organization.ledger.close(call.callId, outcome({ cost: 13 }))).toEqual({ closed: true })
    expect(await organization.ledger.balance()).toEqual({ balance: 87, reserved: 0, available: 87 })

    expect(await organization.ledger.flush()).toEqual({ pending: 0 })
    const rows = await expectIntactChain(organization)
    expect(rows).toHaveLength(2)
    expect(rows[1]).toMatchObject({ id: call.callId, kind: 'call', status: 200, creditsSettled: 13 })
    expect(JSON.parse(rows[1]?.body ?? '')).toMatchObject({ reserved: 40, cost: 13, usage: { input: 10 } })
    expect(await tableRows('usage_events', organization.organizationId)).toMatchObject([
      { call_id: call.callId, input_tokens: '10', output_tokens: '5', provenance: 'reported', cost: '13' },
    ])
    expect(await creditSum(organization.organizationId)).toBe(87)
  })

  it('settles a call closed twice once', async () => {
    const organization = newOrganization()
    await organization.ledger.grantCredits(organization.grant(100))
    const call = organization.opening()
    await organization.open(40, call)
    const results = await Promise.all(
      [1, 2, 3].map(() => organization.ledger.close(call.callId, outcome({ cost: 13 }))),
    )
    expect(results.filter(({ closed }) => closed)).toHaveLength(1)
    expect((await organization.ledger.balance()).balance).toBe(87)
    await organization.ledger.flush()
    expect(await organization.rows()).toHaveLength(2)
  })

  it('keeps a call open when its outcome cannot be recorded', async () => {
    const organization = newOrganization()
    await organization.ledger.grantCredits(organization.grant(100))
    const call = organization.opening()
    await organization.open(40, call)
    for (const wrong of [{ cost: Number.NaN }, { cost: -1 }, { usage: { ...NO_USAGE, input: 0.5 } }]) {
      await expect(organization.ledger.close(call.callId, outcome(wrong))).rejects.toThrow()
    }
    expect(await organization.ledger.balance()).toEqual({ balance: 100, reserved: 40, available: 60 })
  })

  it('takes a cost above the reservation in full and says so', async () => {
    const organization = newOrganization()
    await organization.ledger.grantCredits(organization.grant(10))
    const call = organization.opening()
    await organization.open(10, call)
    await organization.ledger.close(call.callId, outcome({ cost: 12 }))
    expect((await organization.ledger.balance()).available).toBe(-2)
    await organization.ledger.flush()
    expect((await organization.rows())[1]?.body).toContain('cost_exceeded_reservation')
  })

  it('records a refused call once, without a reservation', async () => {
    const organization = newOrganization()
    const call = organization.opening()
    const refused = outcome({ status: 403, errorCode: 'model_not_allowed', usage: null, provenance: null })
    await organization.ledger.record(call, refused)
    await organization.ledger.record(call, refused)
    await organization.ledger.flush()
    await organization.ledger.record(call, refused)
    await organization.ledger.flush()
    expect(await expectIntactChain(organization)).toMatchObject([{ id: call.callId, status: 403 }])
    expect(await tableRows('usage_events', organization.organizationId)).toEqual([])
    expect(await tableRows('credit_entries', organization.organizationId)).toEqual([])
  })

  it('stores whatever text a caller sends', async () => {
    const organization = newOrganization()
    const modelId = `a\0b\ud800 ${'x'.repeat(100_000)}`
    await organization.ledger.record(organization.opening({ modelId }), outcome({ cost: 0 }))
    expect(await organization.ledger.flush()).toEqual({ pending: 0 })
    const [row] = await expectIntactChain(organization)
    expect(row?.modelId).toMatch(/^a\ufffdb\ufffd x{490,500}…$/)
  })
})

describe('leases', () => {
  it('settles a lapsed call at all that was held, and refuses its late close', async () => {
    const organization = newOrganization()
    await organization.ledger.grantCredits(organization.grant(100))
    const call = organization.opening()
    await organization.open(40, call)
    passTime(LEASE_MS - 1)
    await organization.runAlarm()
    expect((await organization.ledger.balance()).reserved).toBe(40)
    passTime(1)
    await organization.runAlarm()
    expect(await organization.ledger.balance()).toEqual({ balance: 60, reserved: 0, available: 60 })

    expect(await organization.ledger.close(call.callId, outcome({ cost: 5 }))).toEqual({ closed: false })
    expect(await organization.ledger.extend(call.callId, LEASE_MS, null)).toEqual({ open: false })
    expect((await organization.ledger.balance()).balance).toBe(60)
    const rows = await expectIntactChain(organization)
    expect(rows).toHaveLength(2)
    expect(JSON.parse(rows[1]?.body ?? '')).toMatchObject({
      status: 0,
      errorCode: 'unsettled',
      provenance: 'unknown',
      usage: null,
      cost: 40,
      durationMilliseconds: LEASE_MS,
      flags: ['settled_by_alarm'],
    })
  })

  it('settles a lapsed stream at the cost it last reported', async () => {
    const organization = newOrganization()
    await organization.ledger.grantCredits(organization.grant(100))
    const call = organization.opening()
    await organization.open(40, call)
    passTime(LEASE_MS / 2)
    const progress = { provider: 'p', usage: { ...NO_USAGE, output: 3 }, cost: 9 }
    expect(await organization.ledger.extend(call.callId, LEASE_MS, progress)).toEqual({ open: true })
    expect(await organization.ledger.extend(call.callId, LEASE_MS, null)).toEqual({ open: true })
    passTime(LEASE_MS / 2)
    await organization.runAlarm()
    expect((await organization.ledger.balance()).reserved).toBe(40)
    await organization.evict()
    passTime(LEASE_MS / 2)
    await organization.runAlarm()
    expect(await organization.ledger.balance()).toEqual({ balance: 91, reserved: 0, available: 91 })
    const rows = await expectIntactChain(organization)
    expect(JSON.parse(rows[1]?.body ?? '')).toMatchObject({
      provenance: 'estimated',
      provider: 'p',
      usage: { output: 3 },
      cost: 9,
    })
  })

  it('is woken by its own alarm when a lease runs out', async () => {
    vi.useRealTimers()
    const organization = newOrganization()
    await organization.ledger.grantCredits(organization.grant(100))
    await organization.ledger.open({
      opening: organization.opening(),
      reserve: 40,
      leaseMilliseconds: 30,
    })
    await expect
      .poll(() => organization.ledger.balance(), { timeout: 5_000 })
      .toEqual({ balance: 60, reserved: 0, available: 60 })
  })
})

describe('loss of the object', () => {
  it.each([
    ['eviction', (organization: ReturnType<typeof newOrganization>) => organization.evict()],
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
    expect(await organization.open(40, call)).toEqual({ admitted: true })
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
    expect(await organization.open(0)).toEqual({ admitted: true })
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
    const before = gate.requests
    expect(await organization.ledger.flush()).toEqual({ pending: 0 })
    expect(gate.requests - before).toBe(3)
    expect(await expectIntactChain(organization)).toHaveLength(450)
  })

  it('forgets records only when Postgres has them and they are old, and never the newest', async () => {
    const organization = newOrganization()
    const stored = () =>
      runInDurableObject(organization.stub(), (_, state) =>
        state.storage.sql.exec('SELECT sequence FROM outbox ORDER BY sequence').toArray(),
      )
    await organization.ledger.record(organization.opening(), outcome())
    await organization.ledger.record(organization.opening(), outcome())
    passTime(3_600_000)
    gate.mode = 'away'
    await organization.ledger.flush()
    expect(await stored()).toHaveLength(2)
    gate.mode = 'open'
    await organization.ledger.flush()
    expect(await stored()).toEqual([{ sequence: 2 }])
    await organization.evict()
    await organization.ledger.record(organization.opening(), outcome())
    await organization.ledger.flush()
    expect(await expectIntactChain(organization)).toHaveLength(3)
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
    expect(await organization.ledger.flush()).toEqual({ pending: 1 })
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

  it.each([0.5, Number.NaN, 2 ** 53])('refuses a grant of %s', async (amount) => {
    const organization = newOrganization()
    await expect(organization.ledger.grantCredits(organization.grant(amount))).rejects.toThrow('amount')
  })
})

describe('what it costs', () => {
  it('writes one row to open a call and two to close it', async () => {
    const organization = newOrganization()
    await organization.ledger.grantCredits(organization.grant(100))
    const written = (use: (instance: Organization['ledger']) => Promise<unknown>) =>
      runInDurableObject(organization.stub(), async (instance, state) => {
        let rows = 0
        const { sql } = state.storage
        const exec = sql.exec.bind(sql)
        Object.defineProperty(sql, 'exec', {
          configurable: true,
          value: (...parameters: Parameters<typeof exec>) => {
            const cursor = exec(...parameters)
            cursors.push(cursor)
            return cursor
          },
        })
        const cursors: Array<ReturnType<typeof exec>> = []
        await use(instance as unknown as Organization['ledger'])
        for (const cursor of cursors) rows += cursor.rowsWritten
        Reflect.deleteProperty(sql, 'exec')
        return rows
      })
    const call = organization.opening()
    const opened = await written((ledger) =>
      ledger.open({ opening: call, reserve: 10, leaseMilliseconds: LEASE_MS }),
    )
    expect(opened).toBe(1)
    expect(await written((ledger) => ledger.close(call.callId, outcome({ cost: 3 })))).toBe(2)
  })
})

type Organization = ReturnType<typeof newOrganization>
