import { writeFileSync } from 'node:fs'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { readCrons } from '../../scripts/node/wrangler-settings.ts'
import { AuthorizationServer } from '../harness/authorization-server.ts'
import { IdentityProvider } from '../harness/identity-provider.ts'
import { serve } from '../harness/serve.ts'
import { type StartedGateway, startGateway, WRANGLER_FILE } from '../harness/start-gateway.ts'
import { findRealPostgres, type RealServer, startRealPostgres, tellSkipped } from '../local/real-servers.ts'
import { compareCosts } from './statement-costs/compare-costs.ts'
import { driveAgents } from './statement-costs/drive-agents.ts'
import { driveCalls, driveMcp, driveResponses } from './statement-costs/drive-calls.ts'
import { driveIntegrations } from './statement-costs/drive-integrations.ts'
import {
  driveCompanyAccounts,
  driveDeployment,
  drivePeople,
  driveRecords,
  driveRefusals,
  driveSignIn,
} from './statement-costs/drive-management.ts'
import { TableGrowth } from './statement-costs/grow-tables.ts'
import { leaveOldRows } from './statement-costs/leave-old-rows.ts'
import {
  type Execution,
  type MeasuredPostgres,
  startMeasuredPostgres,
} from './statement-costs/measured-postgres.ts'
import { createWorld, type World } from './statement-costs/world.ts'

const hasRealPostgres = findRealPostgres() !== undefined
if (!hasRealPostgres) tellSkipped('the costs of statements on large tables', 'PostgreSQL')

/**
 * Millions of rows are loaded in minutes with these. No setting that the planner reads is among them. Statistics would come while
 * the campaign runs with autovacuum.
 */
const SERVER_SETTINGS = [
  'autovacuum=off',
  'shared_buffers=2GB',
  'maintenance_work_mem=512MB',
  'wal_level=minimal',
  'max_wal_senders=0',
  'max_wal_size=8GB',
  'checkpoint_timeout=1h',
]

/** Rows of one user in each table that grows with use; a tenth of it for each of other users and other organizations. */
const SIZES = (process.env.TABLE_ROWS ?? '1000,100000,1000000').split(',').map(Number)

describe.skipIf(!hasRealPostgres)('statements on tables that grow', { timeout: 3_600_000 }, () => {
  let real: RealServer
  let measured: MeasuredPostgres
  let client: pg.Client
  let gateway: StartedGateway
  let world: World
  let closeServer: () => Promise<void>

  const provider = new IdentityProvider({ sub: 'nobody' })
  beforeAll(async () => {
    real = await startRealPostgres(SERVER_SETTINGS)
    client = new pg.Client({ connectionString: real.url })
    await client.connect()
    measured = await startMeasuredPostgres(real.url)
    const holder: { server?: AuthorizationServer } = {}
    const { standIn, host, close } = await serve((origin) => ({
      origin,
      handle: async (request: Request) =>
        (await holder.server?.handle(request)) ?? new Response(null, { status: 500 }),
    }))
    closeServer = close
    holder.server = new AuthorizationServer({ origin: standIn.origin })
    await provider.start()
    const allowed = `${host},${new URL(provider.issuer).host}`
    gateway = await startGateway({
      bundleDirectory: inject('bundleDirectory'),
      postgresUrl: real.url,
      variables: {
        DATABASE_FETCH_ENDPOINT: measured.endpoint,
        EGRESS_ALLOW: allowed,
        LEDGER_FLUSH_MS: '200',
      },
    })
    world = await createWorld(gateway, client, holder.server, provider)
  }, 300_000)
  afterAll(async () => {
    await gateway?.stop()
    await closeServer?.()
    await provider.stop()
    await client?.end()
    await measured?.close()
    await real?.stop()
  })

  /** Uses every surface once. @returns what the gateway sent to Postgres. */
  async function drive(): Promise<Execution[]> {
    measured.take()
    world.round += 1
    await driveCalls(world)
    await driveResponses(world)
    const agentId = await driveAgents(world)
    await driveMcp(world, agentId)
    await driveIntegrations(world)
    await driveDeployment(world)
    await drivePeople(world)
    await driveSignIn(world)
    await driveCompanyAccounts(world)
    await driveRefusals(world)
    await driveRecords(world)
    await leaveOldRows(world)
    for (const cron of readCrons(WRANGLER_FILE)) await gateway.workerd.runScheduled(cron)
    return measured.take()
  }

  async function forgetStatistics(): Promise<void> {
    await client.query('DELETE FROM pg_statistic')
    await client.query(`UPDATE pg_class SET relpages = 0, reltuples = -1
      WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'i', 'p')`)
  }

  /** Partitions of the months into which the tables grow, and of more that are empty. */
  async function addPartitions(): Promise<void> {
    await client.query(`SELECT add_month_partition(parent, date_trunc('month', now() AT TIME ZONE 'UTC') - ago * interval '1 month')
      FROM unnest(ARRAY['audit_records', 'usage_events']) AS parent CROSS JOIN generate_series(1, 12) AS ago`)
  }

  /** Rows of work that is pending: a gateway that is well has none a moment later. */
  async function leaveWork(): Promise<void> {
    const { organizationId } = world.tenant
    await client.query(`INSERT INTO content_erasures VALUES ('left', $1, now())`, [organizationId])
    await client.query(
      `INSERT INTO run_outbox SELECT id, rev, organization_id, now(), now() FROM runs WHERE organization_id = $1 LIMIT 1`,
      [organizationId],
    )
    await client.query(
      `INSERT INTO due_verdicts (run_id, number, attempt, organization_id, response_id, created_at, due_at)
      SELECT id, 99, 1, organization_id, 'resp_left', now(), now() + interval '1 day' FROM runs
      WHERE organization_id = $1 LIMIT 1`,
      [organizationId],
    )
  }

  it('cost no more than what they return', async () => {
    await addPartitions()
    await drive()
    await leaveWork()
    const { organizationId } = world.tenant
    const growth = await TableGrowth.begin(
      client,
      (table, row) =>
        (row.organization_id ?? organizationId) === organizationId &&
        (table !== 'organizations' || row.id === organizationId),
    )
    expect(growth.empty).toEqual([])
    const rounds: Array<{ size: number; statistics: boolean; executions: Execution[] }> = []
    for (const size of SIZES) {
      // Without indexes, a row of the ledger that is written again would be there twice.
      await measured.without(() => growth.growTo(size))
      await forgetStatistics()
      rounds.push({ size, statistics: false, executions: await drive() })
      // In place of autovacuum: until then, the next search of a sweep passes over the rows that the last one deleted.
      await client.query('VACUUM ANALYZE')
      rounds.push({ size, statistics: true, executions: await drive() })
    }
    const { dearer, report } = compareCosts(rounds)
    if (process.env.COST_REPORT) writeFileSync(process.env.COST_REPORT, report)
    expect(world.surfaces.failures).toEqual([])
    expect(world.surfaces.unused()).toEqual([])
    expect(dearer).toEqual([])
  })
})
