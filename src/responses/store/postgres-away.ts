import type { Database } from '../../../schema/database.ts'
import { ApiError } from '../../lib/api-error.ts'
import { TimeLimitError, withinTime } from '../../lib/time-limit.ts'
import { pingDatabase } from './rows.store.ts'

/** Time after which a probe shows whether Postgres answers at all: large contexts may take longer. */
const SLOW_MS = 2_000
const PING_LIMIT_MS = 1_500

/**
 * The result of work that uses Postgres. When Postgres is away it fails within four seconds, so that the caller gets an
 * error while it still waits. The work itself continues.
 * @throws ApiError internal with a time to try again, unless the work throws an ApiError of its own.
 */
export async function fromPostgres<Result>(database: Database, work: Promise<Result>): Promise<Result> {
  try {
    return await unlessAway(database, work)
  } catch (error) {
    if (error instanceof ApiError) throw error
    const message = 'Responses cannot be stored at the moment. Try again soon.'
    throw new ApiError('internal', message, { retryAfterSeconds: 2, cause: error })
  }
}

async function unlessAway<Result>(database: Database, work: Promise<Result>): Promise<Result> {
  try {
    return await withinTime(work, SLOW_MS, 'a statement')
  } catch (error) {
    if (!(error instanceof TimeLimitError)) throw error
  }
  await withinTime(Promise.race([work, pingDatabase(database)]), PING_LIMIT_MS, 'Postgres')
  return work
}
