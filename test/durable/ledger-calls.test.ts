import { runInDurableObject } from 'cloudflare:test'
import { describe, expect, it, vi } from 'vitest'
import { NO_USAGE } from '../../src/calls/usage.ts'
import { passTime, useDatabaseGate } from './database-gate.ts'
import {
  creditSum,
  expectIntactChain,
  LEASE_MS,
  newOrganization,
  outcome,
  tableRows,
} from './ledger-harness.ts'

const gate = useDatabaseGate()

describe('admission', () => {
  it('admits exactly what the balance holds among concurrent calls', async () => {
    const organization = newOrganization()
    await organization.ledger.grantCredits(organization.grant(50 * 7 + 6))

    const results = await Promise.all(Array.from({ length: 200 }, () => organization.open(7)))

    expect(results.filter(({ kind }) => kind === 'admitted')).toHaveLength(50)
    expect(results.find(({ kind }) => kind !== 'admitted')).toEqual({
      kind: 'no_credits',
      available: 6,
      required: 7,
    })
    expect(await organization.ledger.balance()).toEqual({ balance: 356, reserved: 350, available: 6 })
  })

  it('lets concurrent first calls begin one account', async () => {
    const organization = newOrganization()
    await Promise.all(Array.from({ length: 20 }, () => organization.open(0)))
    expect(gate.requestsOf(organization.organizationId)).toBe(1)
    expect(await organization.ledger.flush()).toEqual({ pending: 0 })
  })

  it('admits a call that costs nothing on an empty or negative balance', async () => {
    const organization = newOrganization()
    expect(await organization.open(0)).toEqual({ kind: 'admitted' })
    await organization.ledger.grantCredits(organization.grant(-5))
    expect(await organization.open(0)).toEqual({ kind: 'admitted' })
    expect(await organization.open(1)).toMatchObject({ kind: 'no_credits', available: -5 })
  })

  it('reserves once however often the same call is opened, and does not open it again when it is settled', async () => {
    const organization = newOrganization()
    await organization.ledger.grantCredits(organization.grant(10))
    const call = organization.opening()
    await organization.open(6, call)
    expect(await organization.open(6, call)).toEqual({ kind: 'admitted' })
    expect((await organization.ledger.balance()).reserved).toBe(6)
    await organization.ledger.close(call.callId, outcome({ cost: 2 }))
    await expect(organization.open(6, call)).rejects.toThrow('was settled')
    expect(await organization.ledger.balance()).toEqual({ balance: 8, reserved: 0, available: 8 })
  })

  it('refuses every call while an account cannot be begun, and begins it once Postgres is back', async () => {
    const organization = newOrganization()
    gate.mode = 'away'
    await expect(organization.open(0)).rejects.toThrow()
    await expect(organization.ledger.balance()).rejects.toThrow()
    gate.mode = 'open'
    expect(await organization.open(0)).toEqual({ kind: 'admitted' })
    gate.mode = 'away'
    expect(await organization.open(0)).toEqual({ kind: 'admitted' })
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
    await organization.ledger.close(call.callId, outcome({ cost: 13 }))
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
    await Promise.all([1, 2, 3].map(() => organization.ledger.close(call.callId, outcome({ cost: 13 }))))
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

  it('settles an open call that is recorded as refused', async () => {
    const organization = newOrganization()
    await organization.ledger.grantCredits(organization.grant(100))
    const call = organization.opening()
    await organization.open(40, call)
    await organization.ledger.record(call, outcome({ status: 502, errorCode: 'upstream', usage: null }))
    expect(await organization.ledger.balance()).toEqual({ balance: 100, reserved: 0, available: 100 })
    await organization.ledger.close(call.callId, outcome({ cost: 5 }))
    await organization.ledger.flush()
    expect(await expectIntactChain(organization)).toHaveLength(2)
  })

  it.each([Number.NaN, -1, Date.UTC(10_000, 0), 1e300])('refuses a call at the instant %s', async (at) => {
    const organization = newOrganization()
    await expect(organization.open(0, organization.opening({ at }))).rejects.toThrow('instant')
    await expect(organization.ledger.record(organization.opening({ at }), outcome())).rejects.toThrow(
      'instant',
    )
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

    await organization.ledger.close(call.callId, outcome({ cost: 5 }))
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

  it.each([
    ['at its estimate', null, 7],
    ['at its progress, even if that is less than the estimate', { cost: 4 }, 4],
  ])('settles a lapsed call %s', async (_, reported, cost) => {
    const organization = newOrganization()
    await organization.ledger.grantCredits(organization.grant(100))
    const call = organization.opening()
    const estimate = { provider: 'p', usage: { ...NO_USAGE, input: 21 }, cost: 7 }
    await organization.open(40, call, { estimate })
    const progress = reported && { ...estimate, ...reported }
    await organization.ledger.extend(call.callId, LEASE_MS, progress)
    await organization.evict()
    passTime(LEASE_MS)
    await organization.runAlarm()
    const balance = 100 - cost
    expect(await organization.ledger.balance()).toEqual({ balance, reserved: 0, available: balance })
    const rows = await expectIntactChain(organization)
    expect(JSON.parse(rows[1]?.body ?? '')).toMatchObject({
      status: 0,
      errorCode: 'unsettled',
      provenance: 'estimated',
      provider: 'p',
      usage: { input: 21 },
      cost,
    })
  })

  it.each([{ cost: -1 }, { cost: Number.NaN }, { usage: { ...NO_USAGE, input: 0.5 } }])(
    'admits no call with the estimate %o',
    async (wrong) => {
      const organization = newOrganization()
      const estimate = { provider: 'p', usage: NO_USAGE, cost: 0, ...wrong }
      const opening = organization.opening()
      await expect(organization.open(0, opening, { estimate })).rejects.toThrow('whole number')
    },
  )

  it('settles the other lapsed calls when one cannot be recorded, and flushes', async () => {
    const organization = newOrganization()
    await organization.ledger.grantCredits(organization.grant(100))
    const [spoilt, sound] = [organization.opening(), organization.opening()]
    await organization.open(10, spoilt)
    await organization.open(10, sound)
    await runInDurableObject(organization.stub(), (_, state) => {
      state.storage.sql.exec(`CREATE TRIGGER spoil BEFORE INSERT ON commits WHEN NEW.ids = '${spoilt.callId}'
        BEGIN SELECT RAISE(ABORT, 'not this one'); END`)
    })
    passTime(LEASE_MS)
    await organization.runAlarm()
    expect(await organization.ledger.balance()).toEqual({ balance: 90, reserved: 10, available: 80 })
    expect(await expectIntactChain(organization)).toHaveLength(2)
    const alarm = await runInDurableObject(organization.stub(), (_, state) => state.storage.getAlarm())
    expect(alarm).toBe(Date.now() + 60_000)
  })

  it('is woken by its own alarm when a lease runs out', async () => {
    vi.useRealTimers()
    const organization = newOrganization()
    await organization.ledger.grantCredits(organization.grant(100))
    await organization.open(40, organization.opening(), { leaseMilliseconds: 30 })
    await expect
      .poll(() => organization.ledger.balance(), { timeout: 5_000 })
      .toEqual({ balance: 60, reserved: 0, available: 60 })
  })
})
