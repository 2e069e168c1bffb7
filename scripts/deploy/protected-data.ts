import { sql } from 'drizzle-orm'
import type { OpenDatabase, ScriptDatabase } from '../database.ts'

/**
 * Finds the columns by their names, because a database may have an older or a newer schema than this checkout: `sealed_…` has what a
 * key of VAULT_KEYS sealed, and `pepper_id` names the pepper of KEY_PEPPERS that digested or signed a row. A partition is a part of its table.
 */
const PROTECTED_COLUMNS = sql`
  select quote_ident(relname) as table_name, quote_ident(attname) as column_name
  from pg_attribute join pg_class on pg_class.oid = attrelid
  where relnamespace = to_regnamespace('public') and relkind in ('r', 'p') and not relispartition
    and attnum > 0 and not attisdropped and (attname ~ '^sealed_' or attname = 'pepper_id')`

/** Whether a database has rows that can only be read or checked with the KEY_PEPPERS and VAULT_KEYS that made them. */
export async function hasProtectedData({ database }: OpenDatabase): Promise<boolean> {
  const columns = await rows<{ table_name: string; column_name: string }>(database, PROTECTED_COLUMNS)
  if (columns.length === 0) return false
  const conditions = columns.map(
    ({ table_name, column_name }) =>
      `exists (select from public.${table_name} where ${column_name} is not null)`,
  )
  const [found] = await rows<{ there: boolean }>(
    database,
    sql.raw(`select ${conditions.join(' or ')} as there`),
  )
  return found?.there === true
}

async function rows<Row>(database: ScriptDatabase, statement: ReturnType<typeof sql>): Promise<Row[]> {
  return ((await database.execute(statement)) as unknown as { rows: Row[] }).rows
}
