import { setTimeout } from 'node:timers/promises'
import { count, sum } from 'drizzle-orm'
import { auditRecords } from '../../schema/governance.ts'
import { openDatabase } from '../database.ts'
import { BenchFailure } from './measure.ts'
import type { BenchSystem } from './system.ts'

export interface LedgerFigures {
  /** Audit records of calls in Postgres. */
  records: number
  /** Micro-credits they settled. */
  settled: number
}

const FLUSH_LIMIT_MS = 20_000

/**
 * Makes sure that governance was on: every call that was counted must have its audit record in Postgres. There may be
 * more of them, of the sections beside the scenarios.
 *
 * @throws BenchFailure when records are missing after twenty seconds
 */
export async function checkLedger(
  system: Pick<BenchSystem, 'variables'>,
  calls: number,
): Promise<LedgerFigures> {
  const { DATABASE_URL = '', DATABASE_FETCH_ENDPOINT } = system.variables
  const { database, close } = await openDatabase({ DATABASE_URL, DATABASE_FETCH_ENDPOINT })
  const end = performance.now() + FLUSH_LIMIT_MS
  try {
    while (true) {
      const [row] = await database
        .select({ records: count(), settled: sum(auditRecords.creditsSettled) })
        .from(auditRecords)
      const figures = { records: Number(row?.records ?? 0), settled: Number(row?.settled ?? 0) }
      if (figures.records >= calls && (calls === 0 || figures.settled > 0)) return figures
      if (performance.now() > end) {
        throw new BenchFailure(`${calls} calls were answered and ${figures.records} have an audit record`)
      }
      await setTimeout(250)
    }
  } finally {
    await close()
  }
}
