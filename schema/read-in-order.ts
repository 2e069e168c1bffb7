import { type SQL, sql } from 'drizzle-orm'
import type { Database } from './database.ts'

/**
 * Forces reading by the index, for one transaction. Without statistics Postgres estimates an organization at a two-hundredth of
 * the table. If that is fewer rows than are read, it would read and sort all rows of the organization, instead of the first
 * by the index. A sort that it needs nevertheless, of what was read, then counts as so dear that Postgres would compile the statement
 * (`jit`), for some 300 ms.
 */
export const READ_IN_ORDER = sql`SELECT set_config('enable_sort', 'off', true), set_config('jit', 'off', true)`

/** Executes a statement that reads the first rows of an index, in a transaction with `READ_IN_ORDER`. @returns its rows. */
export async function executeInOrder<Row extends Record<string, unknown>>(
  database: Database,
  statement: SQL,
): Promise<Row[]> {
  const [, { rows }] = await database.batch([
    database.execute(READ_IN_ORDER),
    database.execute<Row>(statement),
  ])
  return rows
}
