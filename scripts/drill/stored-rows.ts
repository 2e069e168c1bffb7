import { sql } from 'drizzle-orm'
import { openDatabase } from '../database.ts'

const TABLES = {
  audit_records: `organization_id || ':' || shard || ':' || sequence || ':' || hash`,
  calls: `organization_id || ':' || id || ':' || cost`,
  usage_events: `organization_id || ':' || call_id || ':' || cost`,
  credit_entries: `organization_id || ':' || kind || ':' || id || ':' || amount`,
  audit_checkpoints: `id || ':' || mac`,
  rejected_calls: `ip || ':' || minute || ':' || surface || ':' || count`,
} as const
type TableName = keyof typeof TABLES

/** The rows of a ledger's tables in Postgres, each as a text that differs when the row does. */
export type StoredRows = Record<TableName, ReadonlySet<string>>

/** Reads them all, past the gateway. */
export async function readStoredRows(variables: Record<string, string>): Promise<StoredRows> {
  const { DATABASE_URL = '', DATABASE_FETCH_ENDPOINT } = variables
  const { database, close } = await openDatabase({ DATABASE_URL, DATABASE_FETCH_ENDPOINT })
  try {
    const entries: Array<[string, ReadonlySet<string>]> = []
    for (const [table, text] of Object.entries(TABLES)) {
      const query = sql`SELECT ${sql.raw(text)} AS text FROM ${sql.identifier(table)}`
      const { rows } = (await database.execute(query)) as unknown as { rows: Array<{ text: string }> }
      entries.push([table, new Set(rows.map((row) => row.text))])
    }
    return Object.fromEntries(entries) as StoredRows
  } finally {
    await close()
  }
}

/** How many rows of each table are missing in a later state. A count of rejected calls may have grown. */
export function missingRows(before: StoredRows, after: StoredRows): Array<[table: string, rows: number]> {
  return Object.entries(before).flatMap(([table, rows]): Array<[string, number]> => {
    const missing = [...rows].filter((row) => !after[table as TableName].has(row)).length
    return missing === 0 ? [] : [[table, missing]]
  })
}
