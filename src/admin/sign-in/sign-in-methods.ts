import type { Database } from '../../../schema/database.ts'
import type { Clock } from '../../lib/clock.ts'
import { selectHasProvider } from '../identity-provider.store.ts'

/** Age up to which an isolate answers from memory, in milliseconds: everyone may ask, and a page needs no newer answer. */
const CACHED_MS = 10_000

const known = new WeakMap<Database, { at: number; hasProvider: boolean }>()

/** Whether any organization has an identity provider. */
export async function hasIdentityProviders({
  database,
  clock,
}: {
  database: Database
  clock: Clock
}): Promise<boolean> {
  const now = clock()
  const cached = known.get(database)
  if (cached !== undefined && Math.abs(now - cached.at) < CACHED_MS) return cached.hasProvider
  const hasProvider = await selectHasProvider(database)
  known.set(database, { at: now, hasProvider })
  return hasProvider
}
