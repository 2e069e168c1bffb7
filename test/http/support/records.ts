import { vi } from 'vitest'
import type { GatewayAddress } from '../../harness/start-gateway.ts'
import { administrator, type Tenant } from './tenant.ts'

/** A record as `GET /api/organizations/{id}/audit` answers it. */
export interface AuditEntry {
  id: string
  kind: 'call' | 'change'
  sequence: number
  request_id: string
  user_id: string | null
  key_id: string | null
  surface: string
  action: string
  model: string | null
  status: number
  credits_settled: number
  record: Record<string, unknown>
}

interface List<Item> {
  data: Item[]
  has_more: boolean
  next_cursor: string | null
}

/** How long a record may take: a stream is settled after its answer, and then everything is flushed. */
const BOUND = { timeout: 5_000, interval: 25 }

/** Writes what an organization's ledger holds to Postgres. */
export async function flush(address: GatewayAddress, tenant: Pick<Tenant, 'base'>): Promise<void> {
  const { pending } = await administrator(address).ask<{ pending: number }>(
    'POST',
    `${tenant.base}/ledger/flush`,
  )
  if (pending > 0) throw new Error(`${pending} records still wait`)
}

/** Every element of a list, page after page. */
export async function readList<Item>(
  address: GatewayAddress,
  path: string,
  query: Record<string, string> = {},
): Promise<Item[]> {
  const items: Item[] = []
  for await (const page of pages<Item>(address, path, { limit: '200', ...query })) items.push(...page)
  return items
}

async function* pages<Item>(address: GatewayAddress, path: string, query: Record<string, string>) {
  let cursor: string | null = null
  do {
    const parameters = new URLSearchParams({ ...query, ...(cursor !== null && { cursor }) })
    const page: List<Item> = await administrator(address).ask('GET', `${path}?${parameters}`)
    yield page.data
    cursor = page.next_cursor
  } while (cursor !== null)
}

/** All records of an organization that fit, newest first. */
export async function auditEntries(
  address: GatewayAddress,
  tenant: Pick<Tenant, 'base'>,
  query: Record<string, string> = {},
): Promise<AuditEntry[]> {
  await flush(address, tenant)
  return readList(address, `${tenant.base}/audit`, query)
}

/** The records of an organization's calls, newest first, as soon as there are so many. Calls are closed after their answers. */
export function callEntries(
  address: GatewayAddress,
  tenant: Pick<Tenant, 'base'>,
  count: number,
  isMeant: (entry: AuditEntry) => boolean = () => true,
): Promise<AuditEntry[]> {
  return vi.waitFor(async () => {
    const all = await auditEntries(address, tenant)
    const entries = all.filter((entry) => entry.kind === 'call' && isMeant(entry))
    if (entries.length !== count) throw new Error(`${entries.length} calls are recorded`)
    return entries
  }, BOUND)
}

/** The one record of the call with this request id, as soon as it is there. */
export function auditEntryOf(
  address: GatewayAddress,
  tenant: Pick<Tenant, 'base'>,
  requestId: unknown,
): Promise<AuditEntry> {
  return vi.waitFor(async () => {
    await flush(address, tenant)
    const entries = await newestWith(address, tenant, requestId)
    if (entries.length !== 1) throw new Error(`${entries.length} records of request ${String(requestId)}`)
    return entries[0] as AuditEntry
  }, BOUND)
}

/** Reads from the newest record back to those of a request: all of a long chain would be read for each test. */
async function newestWith(
  address: GatewayAddress,
  tenant: Pick<Tenant, 'base'>,
  requestId: unknown,
): Promise<AuditEntry[]> {
  for await (const page of pages<AuditEntry>(address, `${tenant.base}/audit`, { limit: '20' })) {
    const found = page.filter((entry) => entry.request_id === requestId)
    if (found.length > 0) return found
  }
  return []
}

/** A credit balance as `GET /api/organizations/{id}/credits` answers it. */
export interface Credits {
  balance: number
  reserved: number
  available: number
}

export function credits(address: GatewayAddress, tenant: Pick<Tenant, 'base'>): Promise<Credits> {
  return administrator(address).ask('GET', `${tenant.base}/credits`)
}

/** The balance once no call holds credits any more. */
export function settledCredits(address: GatewayAddress, tenant: Pick<Tenant, 'base'>): Promise<Credits> {
  return vi.waitFor(async () => {
    const now = await credits(address, tenant)
    if (now.reserved !== 0) throw new Error(`${now.reserved} micro-credits are still reserved`)
    return now
  }, BOUND)
}
