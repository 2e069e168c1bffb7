import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { startPostgres } from '../../scripts/local/postgres/start.ts'
import type { RunningStandIn } from '../../scripts/local/stand-in-process.ts'
import { configureNeon, failureOf, openHttp, openSocket } from './neon-clients.ts'
import { findRealPostgres, type RealServer, startRealPostgres, tellSkipped } from './real-servers.ts'

const hasRealPostgres = findRealPostgres() !== undefined
if (!hasRealPostgres) tellSkipped('contention in Postgres (embedded Postgres has one session)', 'PostgreSQL')

describe.skipIf(!hasRealPostgres)('contention, which only a real PostgreSQL has', () => {
  let real: RealServer
  let standIn: RunningStandIn
  const { sql } = openHttp()

  beforeAll(async () => {
    real = await startRealPostgres()
    standIn = await startPostgres({ databaseUrl: real.url })
    configureNeon(standIn.port)
  }, 60_000)
  afterAll(async () => {
    await standIn?.close()
    await real?.stop()
  })
  beforeEach(async () => {
    await sql.transaction([
      sql`drop table if exists jobs`,
      sql`create table jobs (id int primary key, state text not null default 'open', n int not null default 0)`,
      sql`insert into jobs select generate_series(1, 20)`,
    ])
  })

  it('serves other queries while a transaction is open', async () => {
    const { pool } = openSocket(1)
    const client = await pool.connect()
    await client.query('begin')
    await client.query("update jobs set state = 'taken' where id = 1")
    expect(await sql`select state from jobs where id = 1`).toEqual([{ state: 'open' }])
    await client.query('commit')
    client.release()
    await pool.end()
  })

  it('counts 50 increments from five clients', async () => {
    const { pool } = openSocket(5)
    const increment = async (): Promise<void> => {
      const client = await pool.connect()
      await client.query('begin')
      const { rows } = await client.query('select n from jobs where id = 1 for update')
      await client.query('update jobs set n = $1 where id = 1', [rows[0].n + 1])
      await client.query('commit')
      client.release()
    }
    await Promise.all(Array.from({ length: 50 }, increment))
    expect(await sql`select n from jobs where id = 1`).toEqual([{ n: 50 }])
    await pool.end()
  })

  it('gives every job to one claimer with SKIP LOCKED', async () => {
    const claims = await Promise.all(
      Array.from({ length: 20 }, () => {
        return sql`update jobs set state = 'taken' where id = (
          select id from jobs where state = 'open' order by id limit 1 for update skip locked) returning id`
      }),
    )
    const ids = claims.flat().map((row) => row.id)
    expect(new Set(ids).size).toBe(ids.length)
    expect(await sql`select count(*)::int as n from jobs where state = 'taken'`).toEqual([{ n: ids.length }])
  })

  it('excludes others by an advisory lock', async () => {
    const { pool } = openSocket(2)
    const [holder, other] = [await pool.connect(), await pool.connect()]
    await holder.query('select pg_advisory_lock(5)')
    const attempt = 'select pg_try_advisory_lock(5) as taken'
    expect((await other.query(attempt)).rows).toEqual([{ taken: false }])
    await holder.query('select pg_advisory_unlock(5)')
    expect((await other.query(attempt)).rows).toEqual([{ taken: true }])
    holder.release()
    other.release()
    await pool.end()
  })

  it('reports a serialization failure', async () => {
    const { pool } = openSocket(2)
    const [first, second] = [await pool.connect(), await pool.connect()]
    for (const client of [first, second]) {
      await client.query('begin isolation level serializable')
      await client.query('select sum(n) from jobs')
    }
    await first.query('update jobs set n = 1 where id = 1')
    await second.query('update jobs set n = 1 where id = 2')
    await first.query('commit')
    expect(await failureOf(second.query('commit'))).toMatchObject({ code: '40001' })
    first.release()
    second.release()
    await pool.end()
  })

  it('reports a deadlock to one of the two', async () => {
    const { pool } = openSocket(2)
    const [first, second] = [await pool.connect(), await pool.connect()]
    const lock = (client: typeof first, id: number) =>
      client.query('update jobs set n = 1 where id = $1', [id])
    for (const client of [first, second]) await client.query('begin')
    await lock(first, 1)
    await lock(second, 2)
    const outcomes = await Promise.allSettled([lock(first, 2), lock(second, 1)])
    const failures = outcomes.filter((outcome) => outcome.status === 'rejected')
    expect(failures.map(({ reason }) => reason.code)).toEqual(['40P01'])
    for (const client of [first, second]) {
      await client.query('rollback')
      client.release()
    }
    await pool.end()
  })
})
