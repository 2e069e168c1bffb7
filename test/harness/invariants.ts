import { expect, vi } from 'vitest'
import { GENESIS } from '../../src/ledger/records/chain.ts'
import type { StoredRecord } from '../../src/ledger/records/record-body.ts'
import { verifyLinks } from '../../src/ledger/records/verify.ts'
import { query } from './gateway.ts'
import type { CallResult } from './model-calls.ts'
import type { GatewayAddress } from './start-gateway.ts'
import { administrator, type Tenant } from './tenant.ts'

type Address = Pick<GatewayAddress, 'baseUrl' | 'adminToken' | 'variables' | 'standIns'>

export interface LedgerReport {
  balance: number
  /** Records of model calls, in order of their sequence. */
  calls: Array<{ id: string; requestId: string; status: number; cost: number; flags: string[] }>
}

/** How long leases may take to run out, and what waits to reach Postgres. */
const SETTLED_WITHIN_MS = 30_000

/**
 * Expects the invariants of an organization after all calls: those of `expectSettledLedger`, a record for each request,
 * and a balance that is not negative.
 *
 * @param results what clients saw: each request id among them has exactly one record, unless nobody was identified
 */
export async function expectWholeLedger(
  address: Address,
  tenant: Pick<Tenant, 'base' | 'organizationId'>,
  results: readonly CallResult[],
): Promise<LedgerReport> {
  const { balance, records } = await expectSettledLedger(address, tenant)
  const calls = records
    .filter(({ kind, modelId }) => kind === 'call' && modelId !== null)
    .map((body) => ({
      id: String(body.id),
      requestId: String(body.requestId),
      status: Number(body.status),
      cost: Number(body.cost),
      flags: body.flags as string[],
    }))
  expectOneRecordEach(results, records)
  expect(balance).toBeGreaterThanOrEqual(0)
  return { balance, calls }
}

/**
 * Expects a ledger without open reservations or pending writes, and an intact chain without a gap. Each movement of
 * credits exists once, and their sum is the balance.
 * @param within milliseconds until leases have run out. @returns the bodies of all records, in order of their sequence.
 */
export async function expectSettledLedger(
  address: Address,
  tenant: Pick<Tenant, 'base' | 'organizationId'>,
  within = SETTLED_WITHIN_MS,
): Promise<{ balance: number; records: Array<Record<string, unknown>> }> {
  const { ask } = administrator(address)
  const balance = await vi.waitFor(
    async () => {
      const credits = await ask<{ balance: number; reserved: number }>('GET', `${tenant.base}/credits`)
      // Afterwards: a call that ends in between leaves a record that waits.
      const { pending } = await ask<{ pending: number }>('POST', `${tenant.base}/ledger/flush`)
      if (pending > 0 || credits.reserved !== 0) {
        throw new Error(`not settled: ${credits.reserved} reserved, ${pending} records wait`)
      }
      return credits.balance
    },
    { timeout: within, interval: 100 },
  )
  const rows = await auditRows(address, tenant.organizationId)
  expect(rows.map(({ sequence }) => sequence)).toEqual(rows.map((_, index) => index + 1))
  expect(verifyLinks(rows, GENESIS)).toMatchObject({ intact: true })
  const records = rows.map(({ body }) => JSON.parse(body) as Record<string, unknown>)
  await expectCreditsAddUp(address, tenant.organizationId, balance, records)
  return { balance, records }
}

function expectOneRecordEach(results: readonly CallResult[], bodies: Array<Record<string, unknown>>): void {
  const counts = new Map<unknown, number>()
  for (const { requestId, kind } of bodies) {
    if (kind === 'call') counts.set(requestId, (counts.get(requestId) ?? 0) + 1)
  }
  expect([...counts].filter(([, count]) => count !== 1)).toEqual([])
  const unrecorded = results.filter(({ requestId }) => requestId !== null && !counts.has(requestId))
  // A call that nobody could be identified for, or that was refused because nothing could be recorded, got nothing.
  const given = unrecorded.filter(({ status }) => status !== null && status < 400)
  expect(given.map(({ requestId, kind, status }) => ({ requestId, kind: kind.name, status }))).toEqual([])
  expect(counts.size).toBeGreaterThanOrEqual(results.filter(({ status }) => status === 200).length)
}

async function expectCreditsAddUp(
  address: Address,
  organizationId: string,
  balance: number,
  records: ReadonlyArray<Record<string, unknown>>,
): Promise<void> {
  const entries = await query(
    address,
    'select id, kind, amount from credit_entries where organization_id = $1',
    [organizationId],
  )
  expect(entries.reduce((sum, { amount }) => sum + Number(amount), 0)).toBe(balance)
  const settled = entries.filter(({ kind }) => kind === 'settlement')
  const charged = records.filter(({ kind, cost }) => kind === 'call' && cost !== 0)
  expect(settled.map(({ id, amount }) => `${id} ${amount}`).toSorted()).toEqual(
    charged.map(({ id, cost }) => `${id} ${-Number(cost)}`).toSorted(),
  )
}

export async function auditRows(
  address: Address,
  organizationId: string,
  shard = 0,
): Promise<StoredRecord[]> {
  const rows = await query(
    address,
    'select * from audit_records where organization_id = $1 and shard = $2 order by sequence',
    [organizationId, shard],
  )
  return rows.map((row) => ({
    organizationId: String(row.organization_id),
    shard: Number(row.shard),
    sequence: Number(row.sequence),
    id: String(row.id),
    kind: row.kind as StoredRecord['kind'],
    at: new Date(row.at as string),
    requestId: String(row.request_id),
    userId: row.user_id as string | null,
    keyId: row.key_id as string | null,
    surface: String(row.surface),
    action: String(row.action),
    modelId: row.model_id as string | null,
    status: Number(row.status),
    creditsSettled: Number(row.credits_settled),
    body: String(row.body),
    previousHash: String(row.previous_hash),
    hash: String(row.hash),
  }))
}
