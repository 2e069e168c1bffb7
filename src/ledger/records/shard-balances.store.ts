import { eq, sql } from 'drizzle-orm'
import type { Database } from '../../../schema/database.ts'
import { creditEntries } from '../../../schema/governance.ts'

/** The balance of each shard of an organization as Postgres has it, in micro-credits. Reads all of its entries. */
export async function readShardBalances(
  database: Database,
  organizationId: string,
): Promise<Map<number, number>> {
  const { organizationId: owner, shard, amount } = creditEntries
  const rows = await database
    .select({ shard, balance: sql`sum(${amount})`.mapWith(Number) })
    .from(creditEntries)
    .where(eq(owner, organizationId))
    .groupBy(shard)
  return new Map(rows.map((row) => [row.shard, row.balance]))
}
