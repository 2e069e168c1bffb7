import { runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { expect } from 'vitest'
import { ledgerClient } from '../../src/ledger/client.ts'
import { batchOf as batchOfEntries, callEntry } from '../../src/ledger/commits/commit-entries.ts'
import type { Admission, CallLimits } from '../../src/ledger/contract.ts'
import { ledgerName } from '../../src/ledger/ledger-object.ts'
import { readChain } from '../../src/ledger/records/chain.store.ts'
import { GENESIS } from '../../src/ledger/records/chain.ts'
import { verifyLinks } from '../../src/ledger/records/verify.ts'
import { passTime } from './database-gate.ts'
import { creditSum, database, LEASE_MS, newOrganization } from './ledger-harness.ts'

export const SHARDS = 4

/** The clock of these tests begins a minute, and lies ahead of the runtime's, so that no alarm runs unless a test runs it. */
export const BEGINNING = Date.UTC(2100, 0, 1, 12)

const UNCHECKED = {
  estimate: null,
  epochs: { organization: 0, catalogue: null },
  learned: null,
  limits: null,
}

export type Limits = Required<CallLimits> | null
export type Sharded = ReturnType<typeof shardedOrganization>

/** An organization whose ledger has four shards. */
export function shardedOrganization() {
  const organization = newOrganization()
  const { organizationId } = organization
  const ledgers = Array.from({ length: SHARDS }, (_, shard) =>
    ledgerClient(env.LEDGER, organizationId, () => {}, { shard }),
  )
  const stub = (shard: number) => env.LEDGER.getByName(ledgerName(organizationId, shard))
  const ledgerOf = (shard: number) => ledgers[shard] as (typeof ledgers)[number]
  const open = (shard: number, reserve: number, opening = organization.opening(), limits = null as Limits) =>
    ledgerOf(shard).admit({
      opening,
      reserve,
      leaseMilliseconds: LEASE_MS,
      ...UNCHECKED,
      limits,
    })
  /** A commit of one call, as an isolate sends it. */
  const batchOf = (reserve: number) =>
    batchOfEntries(
      [
        callEntry(organizationId, {
          opening: organization.opening(),
          reserve,
          leaseMilliseconds: LEASE_MS,
          ...UNCHECKED,
        }),
      ],
      (entry) => entry,
    ).batch
  const held = () => Promise.all(Array.from({ length: SHARDS }, (_, shard) => balanceAt(stub(shard))))
  const runAlarms = async () => {
    for (let shard = SHARDS - 1; shard >= 0; shard -= 1) await runDurableObjectAlarm(stub(shard))
  }
  /** Lets the time pass after which transfers are asked for again, debts covered and surpluses given back. */
  const comeToRest = async () => {
    for (let minute = 0; minute < 3; minute += 1) {
      passTime(60_000)
      await runAlarms()
    }
  }
  return { ...organization, ledgerOf, stub, open, held, batchOf, runAlarms, comeToRest }
}

/** The same with this balance. */
export async function fundedOrganization(credits: number): Promise<Sharded> {
  const organization = shardedOrganization()
  await organization.ledger.grantCredits(organization.grant(credits))
  return organization
}

/** What one shard holds, as its own storage says. */
const balanceAt = (stub: DurableObjectStub): Promise<number> =>
  runInDurableObject(stub, (_, { storage }) => {
    const tables = storage.sql.exec("SELECT name FROM sqlite_master WHERE name = 'commits'").toArray()
    if (tables.length === 0) return 0
    const [newest] = storage.sql.exec('SELECT balance FROM commits ORDER BY number DESC LIMIT 1').toArray()
    return Number(newest?.balance ?? 0)
  })

export const sumOf = (amounts: readonly number[]) => amounts.reduce((sum, each) => sum + each, 0)

export const kindsOf = (admissions: readonly Admission[], kind: string) =>
  admissions.filter((admission) => admission.kind === kind).length

/** Each chain is whole, and all entries together come to the balance. @returns what each call cost, by id. */
export async function expectWhole(organization: Sharded, balance: number): Promise<Map<string, number>> {
  const settled = new Map<string, number>()
  for (let shard = 0; shard < SHARDS; shard += 1) {
    const rows = await readChain(database, { organizationId: organization.organizationId, shard }, 0, 10_000)
    expect(verifyLinks(rows, GENESIS)).toMatchObject({ intact: true })
    for (const { id, kind, creditsSettled } of rows) {
      if (kind !== 'call') continue
      expect(settled.has(id)).toBe(false)
      settled.set(id, creditsSettled)
    }
  }
  expect(await creditSum(organization.organizationId)).toBe(balance)
  return settled
}
