import { neon } from '@neondatabase/serverless'
import { eq, sql as expression } from 'drizzle-orm'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { startPostgres } from '../../scripts/local/postgres/start.ts'
import type { RunningServer } from '../../scripts/node/loopback-server.ts'
import {
  accounts,
  CONNECTION_STRING,
  CREATE_ACCOUNTS,
  configureNeon,
  failureOf,
  openHttp,
} from './neon-clients.ts'
import { findRealPostgres, type RealServer, startRealPostgres, tellSkipped } from './real-servers.ts'

const hasRealPostgres = findRealPostgres() !== undefined
if (!hasRealPostgres) tellSkipped('the Postgres stand-in before a real database', 'PostgreSQL')

describe.each([
  { backend: 'embedded Postgres', isReal: false },
  { backend: 'a real PostgreSQL', isReal: true },
])('the Neon stand-in over $backend', ({ isReal }) => {
  describe.skipIf(isReal && !hasRealPostgres)('', () => {
    let real: RealServer | undefined
    let standIn: RunningServer
    const { sql, database } = openHttp()

    beforeAll(async () => {
      real = isReal ? await startRealPostgres() : undefined
      standIn = await startPostgres(real === undefined ? {} : { databaseUrl: real.url })
      configureNeon(standIn.port)
    }, 60_000)
    afterAll(async () => {
      await standIn?.close()
      await real?.stop()
    })
    beforeEach(async () => {
      await sql.transaction(CREATE_ACCOUNTS.map((statement) => sql.query(statement)))
    })

    describe('types', () => {
      it('gives every type back as the driver parses it', async () => {
        const [row] = await sql`select
          9007199254740993::bigint as big, 0.1000::numeric as exact, 1.5::float8 as float, true as yes,
          '{"a":[1,"é"]}'::jsonb as json, ${['x', 'y"z', null]}::text[] as list, '\\x00ff'::bytea as bytes,
          '2026-01-02T03:04:05.678Z'::timestamptz as time, null::text as nothing, ${'grün 🌱'}::text as text`
        expect(row).toEqual({
          big: '9007199254740993',
          exact: '0.1000',
          float: 1.5,
          yes: true,
          json: { a: [1, 'é'] },
          list: ['x', 'y"z', null],
          bytes: Buffer.from([0, 255]),
          // Text, because drizzle turns the driver's parsing of times off for the whole process.
          time: '2026-01-02 03:04:05.678+00',
          nothing: null,
          text: 'grün 🌱',
        })
      })

      it('takes objects, numbers, booleans, dates, buffers and null as parameters', async () => {
        const [row] = await sql`select ${{ a: 1 }}::jsonb as json, ${2}::int as number, ${false}::bool as no,
          ${new Date(0)}::timestamptz as date, ${Buffer.from('hi')}::bytea as bytes, ${null}::int as nothing`
        expect(row).toMatchObject({
          json: { a: 1 },
          number: 2,
          no: false,
          date: '1970-01-01 00:00:00+00',
          nothing: null,
        })
        expect(String(row?.bytes)).toBe('hi')
      })

      it('reports fields, command and row count', async () => {
        const full = neon(CONNECTION_STRING, { fullResults: true })
        const created = await full`create table t_counts (n int)`
        expect(created).toMatchObject({ command: 'CREATE', rowCount: null, rows: [], fields: [] })
        expect(await full`insert into t_counts values (1), (2)`).toMatchObject({
          command: 'INSERT',
          rowCount: 2,
        })
        const selected = await full`select n from t_counts order by n`
        expect(selected).toMatchObject({ command: 'SELECT', rowCount: 2, rows: [{ n: 1 }, { n: 2 }] })
        expect(selected.fields[0]).toMatchObject({ name: 'n', dataTypeID: 23 })
        await full`drop table t_counts`
      })

      it('answers in JSON terms to a client that does not ask for raw text and arrays', async () => {
        const response = await fetch(`${standIn.url}/sql`, {
          method: 'POST',
          body: JSON.stringify({
            query: "select 1::int4 as n, 2::int8 as big, true as yes, '[1]'::jsonb as j, null::int as x",
          }),
        })
        expect(await response.json()).toMatchObject({
          rowAsArray: false,
          rows: [{ n: 1, big: '2', yes: true, j: [1], x: null }],
        })
      })
    })

    describe('drizzle over HTTP', () => {
      it('inserts, updates and selects with returning', async () => {
        const createdAt = new Date('2026-05-06T07:08:09.010Z')
        const values = {
          id: 'a',
          balance: 2n ** 60n,
          settings: { deep: [1] },
          tags: ['x'],
          createdAt,
          price: '1.50',
        }
        const [inserted] = await database.insert(accounts).values(values).returning()
        expect(inserted).toEqual({ ...values, email: null, active: null })
        const [updated] = await database
          .update(accounts)
          .set({ active: true })
          .where(eq(accounts.id, 'a'))
          .returning({ active: accounts.active })
        expect(updated).toEqual({ active: true })
        expect(await database.query.accounts.findMany()).toHaveLength(1)
      })

      it('runs a batch as one transaction', async () => {
        const [first, , all] = await database.batch([
          database.insert(accounts).values({ id: 'a' }).returning(),
          database.insert(accounts).values({ id: 'b' }),
          database.select().from(accounts).orderBy(accounts.id),
        ])
        expect(first).toMatchObject([{ id: 'a' }])
        expect(all.map(({ id }) => id)).toEqual(['a', 'b'])
      })

      it('leaves nothing of a batch that fails', async () => {
        const failure = await failureOf(
          database.batch([
            database.insert(accounts).values({ id: 'a' }),
            database.insert(accounts).values({ id: 'a' }),
          ]),
        )
        expect(failure.code).toBe('23505')
        expect(await database.select().from(accounts)).toEqual([])
      })

      it('runs prepared queries', async () => {
        const prepared = database
          .select()
          .from(accounts)
          .where(eq(accounts.id, expression.placeholder('id')))
          .prepare('by_id')
        await database.insert(accounts).values({ id: 'a' })
        expect(await prepared.execute({ id: 'a' })).toHaveLength(1)
        expect(await prepared.execute({ id: 'b' })).toHaveLength(0)
      })
    })

    describe('errors', () => {
      it.each([
        [
          "insert into accounts (id) values ('twice'), ('twice')",
          { code: '23505', constraint: 'accounts_pkey' },
        ],
        [
          "insert into accounts (id, balance) values ('a', -1)",
          { code: '23514', constraint: 'balance_not_negative' },
        ],
        ['insert into accounts (id) values (null)', { code: '23502', column: 'id', table: 'accounts' }],
        ['select * frm accounts', { code: '42601', position: '10' }],
        ['select * from nowhere', { code: '42P01' }],
        ['select 1; select 2', { code: '42601' }],
        ['select 1 / 0', { code: '22012', severity: 'ERROR' }],
      ])('tells what is wrong with: %s', async (query, expected) => {
        const failure = await failureOf(sql.query(query))
        expect(failure).toMatchObject({ name: 'NeonDbError', ...expected })
      })

      it.each([
        ['not json', 400],
        ['null', 400],
        ['{"query":1}', 400],
        ['{"queries":{}}', 400],
        ['{"query":"select 1","params":{}}', 400],
      ])('refuses the body %s without an SQLSTATE', async (body, status) => {
        const response = await fetch(`${standIn.url}/sql`, { method: 'POST', body })
        expect(response.status).toBe(status)
        expect(await response.json()).toMatchObject({ code: null })
      })

      it('refuses an unknown isolation level before anything runs', async () => {
        const response = await fetch(`${standIn.url}/sql`, {
          method: 'POST',
          headers: { 'neon-batch-isolation-level': 'Chaos' },
          body: JSON.stringify({ queries: [{ query: "insert into accounts (id) values ('a')" }] }),
        })
        expect(response.status).toBe(400)
        expect(await sql`select * from accounts`).toEqual([])
      })

      it('serves only POST /sql and GET /health', async () => {
        expect((await fetch(`${standIn.url}/sql`)).status).toBe(405)
        expect((await fetch(`${standIn.url}/other`, { method: 'POST' })).status).toBe(404)
        expect((await fetch(`${standIn.url}/health`)).status).toBe(200)
      })
    })

    describe('transactions over HTTP', () => {
      it.each([
        ['ReadCommitted', 'read committed'],
        ['RepeatableRead', 'repeatable read'],
        ['Serializable', 'serializable'],
      ] as const)('honours the isolation level %s', async (isolationLevel, expected) => {
        const [rows] = await sql.transaction([sql`show transaction_isolation`], { isolationLevel })
        expect(rows).toEqual([{ transaction_isolation: expected }])
      })

      it('honours read only and deferrable', async () => {
        const write = sql.transaction([sql`insert into accounts (id) values ('a')`], { readOnly: true })
        expect(await failureOf(write)).toMatchObject({ code: '25006' })
        const options = { isolationLevel: 'Serializable', readOnly: true, deferrable: true } as const
        const [rows] = await sql.transaction([sql`show transaction_deferrable`], options)
        expect(rows).toEqual([{ transaction_deferrable: 'on' }])
      })

      it('keeps settings, transactions and locks of one query from the next', async () => {
        await sql`set statement_timeout = 12345`
        await sql`begin`
        await sql`select pg_advisory_lock(77)`
        await sql`create temporary table leftovers (n int)`
        expect(await sql`show statement_timeout`).toEqual([{ statement_timeout: '0' }])
        expect(await sql`select count(*)::int as n from pg_locks where locktype = 'advisory'`).toEqual([
          { n: 0 },
        ])
        expect(await sql`select to_regclass('leftovers') as t`).toEqual([{ t: null }])
        await sql`insert into accounts (id) values ('a')`
        expect(await sql`select id from accounts`).toHaveLength(1)
      })
    })

    describe('a statement that comes again', () => {
      const idOf = (id: string) => sql`select id from accounts where id = ${id}`

      it('sees rows, columns and types as they are then', async () => {
        const rows = () => sql`select * from accounts`
        await sql`insert into accounts (id) values ('a')`
        for (let time = 0; time < 8; time++)
          expect(Object.keys((await rows())[0] ?? {})).not.toContain('note')
        await sql`alter table accounts add column note text`
        expect((await rows())[0]).toMatchObject({ id: 'a', note: null })
        await sql`alter table accounts alter column note type int using 7`
        expect((await rows())[0]).toMatchObject({ id: 'a', note: 7 })
      })

      it('runs after it failed to parse, failed with its values, and in a transaction that failed', async () => {
        const parts = () => sql`select n from parts`
        for (let time = 0; time < 2; time++) expect(await failureOf(parts())).toMatchObject({ code: '42P01' })
        const number = (text: string) => sql`select ${text}::int as number`
        for (const text of ['x', 'y']) expect(await failureOf(number(text))).toMatchObject({ code: '22P02' })
        expect(await number('5')).toEqual([{ number: 5 }])
        const failing = sql.transaction([idOf('a'), sql`select 1 / 0`, idOf('b')])
        expect(await failureOf(failing)).toMatchObject({ code: '22012' })
        expect(await idOf('a')).toEqual([])
        await sql.transaction([sql`create table parts (n int)`, sql`insert into parts values (1)`])
        expect(await parts()).toEqual([{ n: 1 }])
        await sql`drop table parts`
      })

      it('is one of a thousand', async () => {
        const numbers = [...Array(1_001).keys(), 0]
        const results = await sql.transaction(numbers.map((n) => sql.query(`select ${n} as n`)))
        expect(results).toEqual(numbers.map((n) => [{ n }]))
      })
    })

    it('loses no update under contention', async () => {
      await sql`insert into accounts (id) values ('counter')`
      const increments = Array.from({ length: 50 }, () => {
        return sql`update accounts set balance = balance + 1 where id = 'counter' returning balance`
      })
      const results = await Promise.all(increments)
      expect(new Set(results.map(([row]) => row?.balance)).size).toBe(50)
      expect(await sql`select balance::int as n from accounts`).toEqual([{ n: 50 }])
    })
  })
})
