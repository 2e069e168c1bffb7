import { evictDurableObject, runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { sql } from 'drizzle-orm'
import { expect } from 'vitest'
import type { Database } from '../../schema/database.ts'
import { NO_USAGE } from '../../src/calls/usage.ts'
import { configurationOf, createDatabase } from '../../src/deps.ts'
import type { CallOpening, CallOutcome } from '../../src/ledger/audit-record.ts'
import { ledgerClient } from '../../src/ledger/client.ts'
import type { CallToAdmit, CreditGrant } from '../../src/ledger/contract.ts'
import { ledgerName } from '../../src/ledger/ledger-object.ts'
import { readChain } from '../../src/ledger/records/chain.store.ts'
import { GENESIS } from '../../src/ledger/records/chain.ts'
import { verifyLinks } from '../../src/ledger/records/verify.ts'
import { newId } from '../../src/lib/ids.ts'

export const LEASE_MS = 120_000

export const database: Database = createDatabase(configurationOf(env))

/** One organization of its own for a test, with what a test does to its ledger and reads of it. */
export function newOrganization(namespace = env.LEDGER) {
  const organizationId = crypto.randomUUID()
  const ledger = ledgerClient(namespace, organizationId)
  const stub = () => namespace.getByName(ledgerName(organizationId))
  const opening = (overrides: Partial<CallOpening> = {}): CallOpening => ({
    callId: newId('call'),
    requestId: newId('req'),
    organizationId,
    at: Date.now(),
    actor: { userId: 'user-1', keyId: 'key-1', administrator: null, ip: '192.0.2.1' },
    surface: 'chat_completions',
    action: 'POST /v1/chat/completions',
    modelId: 'test-model',
    ...overrides,
  })
  const change = (action: string) => ({
    id: newId('change'),
    requestId: newId('req'),
    organizationId,
    at: Date.now(),
    actor: { userId: null, keyId: null, administrator: 'admin_token', ip: null },
    action,
    resource: `organizations/${organizationId}`,
    detail: {},
  })
  const grant = (amount: number, id = newId('grant')): CreditGrant => ({
    id,
    amount,
    reason: 'test',
    change: change('credits.granted'),
  })
  /** Opens a call that nothing but credits is asked for. */
  const open = (reserve: number, call = opening(), more: Partial<CallToAdmit> = {}) =>
    ledger.admit({
      opening: call,
      reserve,
      leaseMilliseconds: LEASE_MS,
      estimate: null,
      epochs: { organization: 0, catalogue: null },
      learned: null,
      limits: null,
      ...more,
    })
  return {
    organizationId,
    ledger,
    stub,
    opening,
    change,
    grant,
    open,
    runAlarm: () => runDurableObjectAlarm(stub()),
    evict: () => evictDurableObject(stub()),
    /** Loses everything the object has stored, as if it had never been. */
    loseStorage: async () => {
      await runInDurableObject(stub(), (_, state) => state.storage.deleteAll())
      await evictDurableObject(stub())
    },
    rows: () => readChain(database, { organizationId, shard: 0 }, 0, 10_000),
  }
}

export type Organization = ReturnType<typeof newOrganization>

export function outcome(overrides: Partial<CallOutcome> = {}): CallOutcome {
  return {
    status: 200,
    errorCode: null,
    provider: 'test-provider',
    attempts: [],
    usage: { ...NO_USAGE, input: 10, output: 5 },
    provenance: 'reported',
    cost: 0,
    durationMilliseconds: 12,
    request: null,
    response: null,
    dlp: null,
    connectionId: null,
    flags: [],
    ...overrides,
  }
}

/** Rows of a table that belong to an organization. */
export async function tableRows(
  table: 'audit_records' | 'credit_entries' | 'usage_events',
  organizationId: string,
): Promise<Record<string, unknown>[]> {
  const owned = sql`SELECT * FROM ${sql.identifier(table)} WHERE organization_id = ${organizationId}`
  return (await database.execute(owned)).rows
}

/** The balance as Postgres has it. */
export async function creditSum(organizationId: string): Promise<number> {
  const entries = await tableRows('credit_entries', organizationId)
  return entries.reduce((sum, { amount }) => sum + Number(amount), 0)
}

/** Fails unless the organization's chain in Postgres is whole. @returns its rows. */
export async function expectIntactChain(organization: Organization) {
  const rows = await organization.rows()
  const verification = verifyLinks(rows, GENESIS)
  expect(verification).toMatchObject({ intact: true })
  return rows
}
