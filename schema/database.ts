import type { NeonHttpDatabase } from 'drizzle-orm/neon-http'

/** The query builder over these tables. Over HTTP each query is a request of its own, and there are no transactions. */
export type Database = NeonHttpDatabase
