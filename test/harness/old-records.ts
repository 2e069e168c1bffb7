import { randomUUID } from 'node:crypto'
import { neon, neonConfig } from '@neondatabase/serverless'
import { drizzle } from 'drizzle-orm/neon-http'
import type { Database } from '../../schema/database.ts'
import { sealRetention } from '../../src/admin/retention/retention-seal.ts'
import { updateRetention } from '../../src/admin/retention/retention-settings.store.ts'
import { type ChainHead, type ChainLink, GENESIS, nextLink } from '../../src/ledger/records/chain.ts'
import { writeLinks } from '../../src/ledger/records/flush.store.ts'
import { callText, openingText, outcomeText } from '../../src/ledger/records/record-body.ts'
import type { KeyRing } from '../../src/lib/crypto.ts'
import type { RetentionSettings } from '../../src/wire/retention.ts'
import type { GatewayAddress } from './start-gateway.ts'

/** The database of a gateway, as the gateway reaches it. */
export function databaseOf(address: Pick<GatewayAddress, 'variables'>): Database {
  neonConfig.fetchEndpoint = (host, port) => `http://${host}:${port}/sql`
  return drizzle({ client: neon(address.variables.DATABASE_URL ?? '') })
}

/** Stores how long an organization keeps its rows as the management API does, but without an audit record. */
export const storeRetention = (
  database: Database,
  peppers: KeyRing,
  organizationId: string,
  settings: RetentionSettings,
): Promise<boolean> =>
  updateRetention(
    { database, organizationId },
    settings,
    sealRetention(peppers, organizationId, settings, new Date()),
  )

/** Micro-credits of an old call. */
export const OLD_COST = 7

/**
 * Writes the records of calls that were made at given times, in this order, as a ledger would. The ledger of an organization that has not
 * been used continues them.
 * @returns the ids of the calls.
 */
export async function writeOldCalls(
  database: Database,
  organizationId: string,
  times: readonly Date[],
  {
    shard = 0,
    from = GENESIS,
    userId = randomUUID() as string,
  }: { shard?: number; from?: ChainHead; userId?: string } = {},
): Promise<ChainLink[]> {
  let head = from
  const links = times.map((at) => {
    const callId = `call_old_${organizationId}_${shard}_${head.sequence + 1}`
    const opening = openingText({
      callId,
      requestId: `req_${callId}`,
      organizationId,
      at: at.getTime(),
      actor: { userId, keyId: 'key-1', administrator: null, ip: '192.0.2.0' },
      surface: 'messages',
      action: 'POST /v1/messages',
      modelId: 'test-model',
    })
    const usage = {
      input: 1,
      cacheRead: 0,
      cacheWrite5Minutes: 0,
      cacheWrite1Hour: 0,
      output: 1,
      reasoning: 0,
    }
    const outcome = outcomeText({
      status: 200,
      errorCode: null,
      provider: 'p',
      attempts: [],
      usage,
      provenance: 'reported',
      cost: OLD_COST,
      durationMilliseconds: 3,
      request: null,
      response: null,
      dlp: null,
      connectionId: null,
      flags: [],
    })
    const link = nextLink({ organizationId, shard }, head, callId, callText(opening, outcome, 9))
    head = link
    return link
  })
  for (let start = 0; start < links.length; start += 200) {
    await writeLinks(database, { organizationId, shard }, links.slice(start, start + 200))
  }
  return links
}

/** The middle of the month so many months before this one, in UTC, and further days after it. */
export function monthsAgo(months: number, days = 0): Date {
  const now = new Date()
  return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - months, 15 + days, 12))
}
