import { setTimeout as wait } from 'node:timers/promises'
import pg from 'pg'
import { BACKUP_LOCK_ID } from '../../migrate.ts'
import { StartError } from '../../node/start-error.ts'
import { installationOf } from '../installation.ts'

/** How long a migration that runs is waited for, in milliseconds. Calls are served meanwhile. */
const MIGRATION_LIMIT_MS = 10_000
const RETRY_MS = 500

/** Runs a step with a connection of its own. @returns what the step does. @throws if the database does not answer */
export async function withClient<Result>(
  config: pg.ClientConfig,
  step: (client: pg.Client) => Promise<Result>,
): Promise<Result> {
  const client = new pg.Client(config)
  // A connection that breaks while it is idle must not end the process; the next query fails instead.
  client.on('error', () => {})
  try {
    await client.connect()
    return await step(client)
  } finally {
    await client.end().catch(() => {})
  }
}

/**
 * Checks that a backup of a data folder may take the records of a database.
 * @param installation id of the data folder
 * @throws StartError if they do not belong together, or for a replica, whose records may be older than the folder
 */
export async function checkDatabase(client: pg.ClientBase, installation: string): Promise<void> {
  const { rows } = await client.query<{ standby: boolean }>('select pg_is_in_recovery() as standby')
  if (rows[0]?.standby)
    throw new StartError(
      'DATABASE_URL is a replica, which may be behind the objects: set that of the primary server',
    )
  const inDatabase = await installationOf(client)
  if (inDatabase === null) throw new StartError('the database has no data of a node')
  if (inDatabase !== installation)
    throw new StartError('DATA_DIR and the database belong to different installations')
}

/**
 * Keeps migrations from being applied until the connection ends: locks of tables would refuse only some of them. It is taken before
 * the snapshot, and therefore belongs to the session.
 *
 * @param limitMs milliseconds for which a migration that runs is waited for
 * @throws StartError if one still runs then
 */
export async function refuseMigrations(client: pg.ClientBase, limitMs = MIGRATION_LIMIT_MS): Promise<void> {
  const end = performance.now() + limitMs
  for (;;) {
    const text = 'select pg_try_advisory_lock_shared($1) as locked'
    const { rows } = await client.query<{ locked: boolean }>(text, [BACKUP_LOCK_ID])
    if (rows[0]?.locked) return
    if (performance.now() >= end)
      throw new StartError('a migration of the database runs: make the backup when it is done')
    await wait(RETRY_MS)
  }
}
