import { setTimeout as wait } from 'node:timers/promises'
import pg from 'pg'
import { withinTime } from '../../src/lib/time-limit.ts'
import { databaseErrorText } from '../database.ts'
import { StartError } from '../node/start-error.ts'

/** Any number that no other application locks. */
const LOCK_ID = 7_264_190_332

/** How long a start waits for the database, and for the lock of a node that has just ended. */
const START_LIMIT_MS = 60_000
const LOCK_LIMIT_MS = 15_000
const RETRY_MS = 1_000
const RELEASE_LIMIT_MS = 2_000
const CONNECT_LIMIT_MS = 10_000

export interface DatabaseLock {
  /** The connection that has the lock, for statements at the start. */
  client: pg.Client
  release(): Promise<void>
}

/**
 * Makes this process the only node of a database for as long as it runs: two nodes would each have a ledger of the same organization.
 * The lock belongs to a session, so it needs a direct connection (no pooler in transaction mode). When the session is lost, it is
 * taken again as soon as the database answers.
 *
 * @param onLost called if another node got it meanwhile
 * @throws StartError if the database does not answer, or another node uses it
 */
export async function lockDatabase(config: pg.ClientConfig, onLost: () => void): Promise<DatabaseLock> {
  let released = false
  let client = await connectWithin(config, START_LIMIT_MS)
  if (!(await lockWithin(client, LOCK_LIMIT_MS))) {
    await client.end()
    throw new StartError('another node uses this database')
  }
  const again = async (): Promise<void> => {
    while (!released) {
      await wait(RETRY_MS)
      const next = released ? null : await connect(config).catch(() => null)
      if (next === null) continue
      client = next
      watch(next)
      if (!(await lockWithin(next, LOCK_LIMIT_MS)) && !released) onLost()
      return
    }
  }
  const watch = (watched: pg.Client): void => {
    // An error without a listener would end the process.
    watched.on('error', () => {})
    watched.once('end', () => {
      if (!released && watched === client) void again().catch(() => {})
    })
  }
  watch(client)
  return {
    get client() {
      return client
    },
    release: async () => {
      released = true
      // A connection that is dead without a reset never ends.
      await withinTime(client.end(), RELEASE_LIMIT_MS, 'the end of the connection').catch(() => {})
    },
  }
}

async function connect(config: pg.ClientConfig): Promise<pg.Client> {
  const client = new pg.Client({ ...config, connectionTimeoutMillis: CONNECT_LIMIT_MS })
  await client.connect()
  return client
}

async function connectWithin(config: pg.ClientConfig, limitMs: number): Promise<pg.Client> {
  const end = performance.now() + limitMs
  for (;;) {
    try {
      return await connect(config)
    } catch (error) {
      // A server that refuses the password or the certificate will not change its mind.
      const isFinal = error instanceof pg.DatabaseError && error.code !== '57P03'
      if (isFinal || performance.now() > end)
        throw new StartError(`the database does not answer: ${databaseErrorText(error)}`)
      await wait(RETRY_MS)
    }
  }
}

async function lockWithin(client: pg.Client, limitMs: number): Promise<boolean> {
  const end = performance.now() + limitMs
  for (;;) {
    const text = 'select pg_try_advisory_lock($1) as locked'
    const { rows } = await client.query<{ locked: boolean }>(text, [LOCK_ID])
    if (rows[0]?.locked === true) return true
    if (performance.now() > end) return false
    await wait(RETRY_MS)
  }
}
