import { sql } from 'drizzle-orm'
import type { Database } from '../../schema/database.ts'

/** Runs the smallest statement. @throws if the database does not answer */
export const pingDatabase = async (database: Database): Promise<void> => {
  await database.execute(sql`select 1`)
}
