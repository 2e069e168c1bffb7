import { vi } from 'vitest'
import { query } from './gateway.ts'
import type { GatewayAddress } from './start-gateway.ts'
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
  parameters: Record<string, string> = {},
): Promise<Item[]> {
  const items: Item[] = []
  let cursor: string | null = null
  do {
    const query = new URLSearchParams({ limit: '200', ...parameters, ...(cursor !== null && { cursor }) })
    const page: List<Item> = await administrator(address).ask('GET', `${path}?${query}`)
    items.push(...page.data)
    cursor = page.next_cursor
  } while (cursor !== null)
  return items
}

/** All records of an organization that fit, newest first. */
export async function auditEntries(
  address: GatewayAddress,
  tenant: Pick<Tenant, 'base'>,
  parameters: Record<string, string> = {},
): Promise<AuditEntry[]> {
  await flush(address, tenant)
  return readList(address, `${tenant.base}/audit`, parameters)
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

/**
 * The one record of the call with this request id, as soon as it is there. It is read past the gateway: the API has
 * no filter for it, and a chain that many tests share is long.
 */
export function auditEntryOf(
  address: GatewayAddress,
  tenant: Pick<Tenant, 'base' | 'organizationId'>,
  requestId: unknown,
): Promise<AuditEntry> {
  return vi.waitFor(async () => {
    await flush(address, tenant)
    const rows = await query(
      address,
      'select * from audit_records where organization_id = $1 and request_id = $2',
      [tenant.organizationId, requestId],
    )
    if (rows.length !== 1) throw new Error(`${rows.length} records of request ${String(requestId)}`)
    const { model_id, sequence, credits_settled, body, ...row } = rows[0] ?? {}
    return {
      ...row,
      model: model_id,
      sequence: Number(sequence),
      credits_settled: Number(credits_settled),
      record: JSON.parse(String(body)),
    } as AuditEntry
  }, BOUND)
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
