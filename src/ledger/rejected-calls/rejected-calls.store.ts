import { sql } from 'drizzle-orm'
import type { Database } from '../../../schema/database.ts'
import { rejectedCalls } from '../../../schema/governance.ts'
import type { RejectedCount } from './rejected-calls.ts'

/** Sets the totals of addresses, minutes and surfaces. A total never shrinks, whatever arrives late. */
export async function writeRejectedCounts(database: Database, counts: RejectedCount[]): Promise<void> {
  const rows = counts.map((count) => ({ ...count, minute: new Date(count.minute) }))
  const { ip, minute, surface, count } = rejectedCalls
  await database
    .insert(rejectedCalls)
    .values(rows)
    .onConflictDoUpdate({
      target: [ip, minute, surface],
      set: { count: sql`greatest(${count}, excluded.count)` },
    })
}
