import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Database } from '../../schema/database.ts'
import { countCalls, selectCalls } from '../../src/ledger/records/read-calls.store.ts'
import {
  type OverviewTimes,
  selectDay,
  selectLatestErrors,
} from '../../src/ledger/records/read-overview.store.ts'
import type { CallFilter } from '../../src/wire/calls.ts'
import { findRealPostgres, type RealServer, startRealPostgres, tellSkipped } from '../local/real-servers.ts'
import { databaseAt, migrateDatabase } from '../unit/calls/fixtures.ts'
import { type MeasuredPostgres, startMeasuredPostgres } from './statement-costs/measured-postgres.ts'

// Lists and charts of a million calls of one organization, among those of others, with PostgreSQL as a server: the index that each
// filter reads by, and the time of an answer.

const hasRealPostgres = findRealPostgres() !== undefined
if (!hasRealPostgres) tellSkipped('lists of a million calls', 'PostgreSQL')

const ROWS = Number(process.env.CALL_ROWS ?? 1_000_000)
const ORGANIZATION = '8f14e45f-ceea-4d7a-9b3c-0a1b2c3d4e5f'
/** The longest that a list may take (issue: a list over a million records). */
const LONGEST_MS = 300

/** Calls of a month, one after the other. One in a thousand has findings, one in a hundred has failed. */
const GROW = `
  INSERT INTO calls (organization_id, id, at, request_id, user_id, key_id, surface, action, model_id, tool, provider, response_id,
    run_id, status, error_code, outcome, flags, detectors, duration_milliseconds, input_tokens, output_tokens, cost, count)
  SELECT CASE WHEN n % 10 = 0 THEN gen_random_uuid() ELSE $1::uuid END, 'call_' || n,
    now() - interval '30 days' + n * interval '30 days' / $2::int, 'req_' || n, 'user_' || n % 50, 'key_' || n % 200, 'openai',
    'POST /v1/chat/completions', 'model-' || n % 7, CASE WHEN n % 500 = 1 THEN 'tool_' || n % 3 END,
    CASE WHEN n % 5 = 0 THEN 'rare-provider' ELSE 'provider' END, CASE WHEN n % 3 = 0 THEN 'resp_' || n % 1000 END,
    CASE WHEN n % 30 = 0 THEN 'run_' || n % 100 END, CASE WHEN n % 100 = 7 THEN 502 ELSE 200 END,
    CASE WHEN n % 100 = 7 THEN 'upstream_failed' END, CASE WHEN n % 100 = 7 THEN 'failed' ELSE 'ok' END,
    CASE WHEN n % 1000 = 3 THEN ARRAY['estimated'] END, CASE WHEN n % 1000 = 9 THEN ARRAY['card'] END, n % 90000, 100, 50, n % 5000, 1
  FROM generate_series(1, $2::int) AS n`

const FILTERS: Array<[name: string, filter: CallFilter, index: string]> = [
  ['nothing', {}, 'calls_at'],
  ['request', { request_id: 'req_500001' }, 'calls_request'],
  ['response', { response_id: 'resp_501' }, 'calls_response'],
  ['run', { run_id: 'run_90' }, 'calls_run'],
  ['key', { key_id: 'key_7' }, 'calls_key'],
  ['user', { user_id: 'user_7' }, 'calls_user'],
  ['a user without calls', { user_id: 'nobody' }, 'calls_user'],
  ['error', { error: 'upstream_failed' }, 'calls_error'],
  ['tool', { tool: 'tool_1' }, 'calls_tool'],
  ['found', { found: 'card' }, 'calls_found'],
  ['found, of none', { found: 'iban' }, 'calls_found'],
  ['flag', { flag: 'any' }, 'calls_flagged'],
  ['outcome', { outcome: 'failed' }, 'calls_outcome'],
  ['provider', { provider: 'provider' }, 'calls_provider'],
  ['model', { model: 'model-3' }, 'calls_model'],
  ['user and model', { user_id: 'user_7', model: 'model-3' }, 'calls_user'],
  ['outcome ok, surface of none', { outcome: 'ok', surface: 'none' }, 'calls_at'],
  ['cost', { cost_min: 4_990 }, 'calls_at'],
  ['duration of none', { duration_min: 1_000_000 }, 'calls_at'],
]

/** The times of an overview, of which the last 24 hours have a thirtieth of the rows. */
function overviewTimes(): OverviewTimes {
  const day = 24 * 60 * 60_000
  const now = new Date()
  const today = new Date(now.getTime() - (now.getTime() % day))
  const before = (time: Date) => new Date(time.getTime() - 7 * day)
  return {
    now,
    today,
    firstHour: new Date(now.getTime() - day),
    weekBefore: { from: before(today), to: before(now) },
  }
}

/** For all of an organization, for a user, and for a user without calls, each with the index of its rows. */
const OVERVIEWS: Array<[userId: string | undefined, index: string]> = [
  [undefined, 'calls_at'],
  ['user_7', 'calls_user'],
  ['nobody', 'calls_user'],
]

describe.skipIf(!hasRealPostgres)('lists of a million calls', { timeout: 600_000 }, () => {
  let real: RealServer
  let measured: MeasuredPostgres
  let database: Database
  /** Without the measurement of plans. */
  let plain: MeasuredPostgres

  beforeAll(async () => {
    real = await startRealPostgres()
    measured = await startMeasuredPostgres(real.url)
    plain = await startMeasuredPostgres(real.url, [])
    database = databaseAt(measured.endpoint.replace(/\/sql$/, ''))
    await migrateDatabase(database)
    const client = new pg.Client({ connectionString: real.url })
    await client.connect()
    await client.query('ALTER TABLE calls SET (autovacuum_enabled = off)')
    await client.query(GROW, [ORGANIZATION, ROWS])
    await client.end()
  }, 600_000)
  afterAll(async () => {
    await measured?.close()
    await plain?.close()
    await real?.stop()
  })

  const scope = () => ({ database, organizationId: ORGANIZATION })
  const indexesOf = (node: unknown): string[] => {
    const { Plans: plans = [], ...own } = node as {
      Plans?: unknown[]
      'Index Name'?: string
      'Relation Name'?: string
    }
    const scan =
      own['Relation Name'] === 'calls' || own['Index Name'] ? [own['Index Name'] ?? 'the table'] : []
    return [...scan, ...plans.flatMap(indexesOf)]
  }

  async function expectIndexes(): Promise<void> {
    const read: Record<string, string[]> = {}
    for (const [name, filter] of FILTERS) {
      measured.take()
      await selectCalls(scope(), filter, { limit: 50, after: null })
      read[`list by ${name}`] = measured.take().flatMap(({ plan }) => indexesOf(plan))
      await countCalls(scope(), filter, { from: new Date(0), to: new Date(), bucketMilliseconds: 86_400_000 })
      read[`chart by ${name}`] = measured.take().flatMap(({ plan }) => indexesOf(plan))
    }
    for (const [userId] of OVERVIEWS) {
      await selectDay(scope(), userId, overviewTimes())
      read[`overview of ${userId}`] = measured.take().flatMap(({ plan }) => indexesOf(plan))
      await selectLatestErrors(scope(), userId, overviewTimes().firstHour)
      read[`errors of ${userId}`] = [...new Set(measured.take().flatMap(({ plan }) => indexesOf(plan)))]
    }
    const expected = [
      ...FILTERS.flatMap(([name, , index]) => [
        [`list by ${name}`, [index]],
        [`chart by ${name}`, [index]],
      ]),
      ...OVERVIEWS.flatMap(([userId, index]) => [
        [`overview of ${userId}`, [index, index]],
        [`errors of ${userId}`, [userId === undefined ? 'calls_outcome' : index]],
      ]),
    ]
    expect(read).toEqual(Object.fromEntries(expected))
  }

  it('are read by the index of their first filter, without statistics', expectIndexes)

  it('are read by the index of their first filter, with statistics', async () => {
    const client = new pg.Client({ connectionString: real.url })
    await client.connect()
    await client.query('VACUUM ANALYZE calls')
    await client.end()
    await expectIndexes()
  })

  it('answer in time', async () => {
    const timed = { database: databaseAt(plain.endpoint.replace(/\/sql$/, '')), organizationId: ORGANIZATION }
    const times: Array<[string, number, number]> = []
    const medianOf = async (run: () => Promise<unknown>) => {
      const all: number[] = []
      for (let round = 0; round < 3; round++) {
        const begun = performance.now()
        await run()
        all.push(performance.now() - begun)
      }
      return Math.round(all.sort((left, right) => left - right)[1] ?? 0)
    }
    const month = { from: new Date(0), to: new Date(), bucketMilliseconds: 86_400_000 }
    for (const [name, filter] of FILTERS) {
      const list = await medianOf(() => selectCalls(timed, filter, { limit: 200, after: null }))
      times.push([name, list, await medianOf(() => countCalls(timed, filter, month))])
    }
    for (const [userId] of OVERVIEWS) {
      const overview = await medianOf(() => selectDay(timed, userId, overviewTimes()))
      const errors = await medianOf(() => selectLatestErrors(timed, userId, overviewTimes().firstHour))
      times.push([`overview of ${userId}, errors`, overview, errors])
    }
    console.log(`milliseconds of ${ROWS} calls: filter, list, chart`)
    for (const [name, list, chart] of times) console.log(`${name.padEnd(30)} ${list} ${chart}`)
    expect(times.filter(([, list]) => list > LONGEST_MS)).toEqual([])
  })
})
