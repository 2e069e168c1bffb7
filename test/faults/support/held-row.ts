import pg from 'pg'
import { expect, onTestFinished } from 'vitest'

/** All that wait for a session of Postgres, or for one another behind it. */
const WAITING = `WITH RECURSIVE waiting AS (
    SELECT $1::int AS pid
    UNION SELECT other.pid FROM pg_stat_activity other JOIN waiting ON waiting.pid = ANY (pg_blocking_pids(other.pid))
  ) SELECT count(*)::int - 1 AS count FROM waiting`

/** Rows that a transaction of the test holds, so that requests meet there in the order in which they were made. */
export interface HeldRow {
  /** Returns when the request waits for the rows, or has been answered. */
  queue<Answer>(request: Promise<Answer>): Promise<{ answer: Promise<Answer> }>
  release(): Promise<void>
}

/** @param url of a real PostgreSQL. @param select what selects the rows. */
export async function holdRow(url: string, select: string, parameters: unknown[]): Promise<HeldRow> {
  const [holder, observer] = [new pg.Client(url), new pg.Client(url)]
  await Promise.all([holder.connect(), observer.connect()])
  await holder.query('BEGIN')
  const { rows } = await holder.query(
    `SELECT pg_backend_pid() AS pid FROM (${select} FOR UPDATE) AS held`,
    parameters,
  )
  const pid: unknown = rows[0]?.pid
  if (pid === undefined) throw new Error(`no row to hold: ${select}`)
  const waiting = async (): Promise<number> => (await observer.query(WAITING, [pid])).rows[0].count
  let releasing: Promise<void> | undefined
  const release = (): Promise<void> => {
    releasing ??= holder
      .query('COMMIT')
      .then(() => Promise.all([holder.end(), observer.end()]))
      .then(() => undefined)
    return releasing
  }
  onTestFinished(release)
  return {
    async queue(request) {
      const before = await waiting()
      let isAnswered = false
      const answer = request.finally(() => {
        isAnswered = true
      })
      await expect.poll(async () => isAnswered || (await waiting()) > before, { timeout: 10_000 }).toBe(true)
      return { answer }
    },
    release,
  }
}
