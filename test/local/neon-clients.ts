import { neon, neonConfig } from '@neondatabase/serverless'
import { drizzle } from 'drizzle-orm/neon-http'
import { bigint, boolean, check, jsonb, numeric, pgTable, text, timestamp } from 'drizzle-orm/pg-core'
import { sql as expression } from 'drizzle-orm/sql'

/** The address that a client is configured with; the stand-in takes any. */
export const CONNECTION_STRING = 'postgres://postgres:secret@localhost.test/postgres'

/** A table that has one column of each kind that matters. */
export const accounts = pgTable(
  'accounts',
  {
    id: text('id').primaryKey(),
    email: text('email').unique(),
    balance: bigint('balance', { mode: 'bigint' }).notNull().default(0n),
    price: numeric('price'),
    settings: jsonb('settings'),
    active: boolean('active'),
    tags: text('tags').array(),
    createdAt: timestamp('created_at', { withTimezone: true }),
  },
  (table) => [check('balance_not_negative', expression`${table.balance} >= 0`)],
)

/** The statements that make `accounts`. */
export const CREATE_ACCOUNTS = [
  'drop table if exists accounts',
  `create table accounts (
    id text primary key, email text unique, balance bigint not null default 0, price numeric, settings jsonb,
    active boolean, tags text[], created_at timestamptz,
    constraint balance_not_negative check (balance >= 0))`,
]

/** Points the unmodified Neon driver at a stand-in, for this process. */
export function configureNeon(port: number): void {
  neonConfig.fetchEndpoint = () => `http://127.0.0.1:${port}/sql`
}

/** The driver and drizzle over SQL by HTTP. */
export function openHttp() {
  const sql = neon(CONNECTION_STRING)
  return { sql, database: drizzle(sql, { schema: { accounts } }) }
}

/** The members of a database error that callers look at, wherever drizzle has wrapped it. */
export async function failureOf(promise: PromiseLike<unknown>): Promise<Record<string, unknown>> {
  try {
    await promise
  } catch (error) {
    const failure = error as { code?: unknown; cause?: unknown }
    return (failure.code === undefined ? (failure.cause ?? failure) : failure) as Record<string, unknown>
  }
  throw new Error('expected the query to fail')
}
