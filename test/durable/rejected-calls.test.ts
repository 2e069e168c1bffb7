import { evictDurableObject, runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { sql } from 'drizzle-orm'
import { describe, expect, it, vi } from 'vitest'
import type { LedgerObject } from '../../src/governance/ledger/ledger-object.ts'
import { rejectedCallsName } from '../../src/governance/ledger/rejected-calls/count-rejected-call.ts'
import {
  RejectedCalls,
  type RejectedCount,
} from '../../src/governance/ledger/rejected-calls/rejected-calls.ts'
import { passTime, useDatabaseGate } from './database-gate.ts'
import { database } from './ledger-harness.ts'

/** Later than any day that this runs on: an alarm in the past rings by itself. */
const minute = Date.UTC(2100, 0, 1, 10, 30)
const gate = useDatabaseGate(minute)
let nextAddress = 0

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

  it.each([0, 10 * 60_000])(
    'counted while a flush is on its way are flushed too (%i ms later)',
    async (later) => {
      const address = newAddress()
      await address.count(minute)
      passTime(later)
      gate.held = true
      const flushed = address.runAlarm()
      await address.count(minute)
      gate.held = false
      await flushed
      expect(await address.stored()).toEqual([[minute, 'messages', 2]])
    },
  )

  it('of addresses that go on being refused do not hold back those of others', async () => {
    await runInDurableObject(env.LEDGER.getByName('unauthenticated:fairness'), async (_, state) => {
      const sent = new Set<string>()
      const send = async (batch: RejectedCount[]) => {
        for (const { ip } of batch) sent.add(ip)
      }
      const counts = new RejectedCalls(state.storage.sql, send, Date.now)
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

  it('leave the object once Postgres has them and their minute is over', async () => {
    const address = newAddress()
    await address.count(minute)
    await address.runAlarm()
    expect(await address.held()).toHaveLength(1)
    vi.setSystemTime(minute + 3 * 60_000)
    gate.mode = 'away'
    await address.count(minute + 3 * 60_000)
    await address.count(minute)
    await address.runAlarm()
    expect(await address.held()).toHaveLength(2)
    gate.mode = 'open'
    await address.runAlarm()
    expect(await address.held()).toEqual([{ minute: minute + 3 * 60_000, surface: 'messages', count: 1 }])
    expect(await address.stored()).toEqual([
      [minute, 'messages', 2],
      [minute + 3 * 60_000, 'messages', 1],
    ])
  })

  it('do not lower a total that Postgres has, when the object lost its own', async () => {
    const address = newAddress()
    for (let call = 0; call < 5; call += 1) await address.count(minute)
    await address.runAlarm()
    vi.setSystemTime(minute + 3 * 60_000)
    await address.count(minute + 3 * 60_000)
    await address.runAlarm()
    await address.count(minute)
    await address.runAlarm()
    expect((await address.stored())[0]).toEqual([minute, 'messages', 5])
  })
})
