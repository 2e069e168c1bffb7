import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { startPostgres } from '../../scripts/local/postgres/start.ts'
import type { RunningServer } from '../../scripts/node/loopback-server.ts'
import type { CloudDeployment, DeployOutput } from '../harness/cloud/cloud-deployment.ts'
import type { StoredScript } from '../harness/cloud/cloudflare-state.ts'
import { DatabaseRelay } from '../harness/cloud/database-relay.ts'
import { migratedDatabase } from '../harness/migrated-database.ts'
import { accountWithoutDatabase, emptyAccount, sqlOf } from './support/cloud-account.ts'

let postgres: RunningServer
let deployment: CloudDeployment
let release = 1

beforeAll(async () => {
  postgres = await startPostgres({ template: await migratedDatabase() })
})
afterAll(() => postgres.close())
afterEach(() => expect(deployment.cloud.unknown).toEqual([]))

const sql = (...statements: string[]) => sqlOf(postgres.url, ...statements)

async function beginEmpty(): Promise<void> {
  deployment = await emptyAccount(postgres.url)
}

/** An account with a deployment, and changed scripts to deploy. */
async function deployedAccount(): Promise<void> {
  await beginEmpty()
  expect(await deployment.run()).toMatchObject({ code: 0, stderr: '' })
  changeScripts()
}

function changeScripts(): void {
  release += 1
  deployment.writeScripts(String(release))
}

const gatewayScript = (): StoredScript => {
  const script = deployment.cloud.cloudflare.scripts.get('headgate')
  if (script === undefined) throw new Error('there is no gateway')
  return script
}

/** Texts of the versions that have traffic, with their shares. */
const serving = (name = 'headgate'): string[] => {
  const script = deployment.cloud.cloudflare.scripts.get(name)
  const shares = script === undefined ? [] : deployment.cloud.cloudflare.shares(script)
  return shares.map(({ version, percentage }) => `${/\d+$/m.exec(version.code)?.[0]} at ${percentage}`)
}

/** Takes the network away at a change: before it has its effect, or before its answer. */
function cutAt(index: number, kind: 'before' | 'after'): void {
  const { cloud } = deployment
  let changes = -1
  cloud.onRequest = ({ isChange }) => {
    if (changes === index) cloud.isAway = true
    if (isChange) changes += 1
    if (changes !== index || cloud.isAway) return
    if (kind === 'before') cloud.isAway = true
    else cloud.faults.push({ matches: /./, kind: 'cut after', times: 1 })
  }
}

function heal(): void {
  deployment.cloud.onRequest = () => {}
  deployment.cloud.isAway = false
  deployment.cloud.faults.length = 0
}

/** After a cut: the next run completes, and the one after it has nothing to do. */
async function expectContinued(broken: DeployOutput): Promise<void> {
  expect(broken.code, broken.stdout).toBe(1)
  expect(broken.stderr).toMatch(/^deploy: /)
  heal()
  const continued = await deployment.run()
  expect(continued, `after ${broken.stderr}`).toMatchObject({ code: 0, stderr: '' })
  expect((await deployment.run(['--plan'])).stdout).toMatch(/\nno change\n$/)
  expect(deployment.leaks(broken, continued)).toEqual([])
}

const CUTS = [...Array(12).keys()].flatMap((index) => [
  [index, 'before' as const] as const,
  [index, 'after' as const] as const,
])

describe('a first deployment that is cut', () => {
  beforeEach(async () => {
    deployment = await accountWithoutDatabase(postgres.url)
  })
  afterEach(() => deployment.stop())
  let whole: unknown

  it('makes twelve changes when it is not cut', async () => {
    expect(await deployment.run()).toMatchObject({ code: 0, stderr: '' })
    expect(deployment.cloud.changes.length).toBe(CUTS.length / 2)
    whole = deployment.cloud.cloudflare.summary()
  })

  it.each(CUTS)('at change %i, %s its effect, continues', async (index, kind) => {
    cutAt(index, kind)
    await expectContinued(await deployment.run())
    expect(deployment.cloud.cloudflare.summary()).toEqual(whole)
    const { neon, upstash } = deployment.cloud
    expect([neon.projects.length, upstash.databases.length]).toEqual([1, 1])
  })
})

describe('an update that is cut', () => {
  beforeAll(deployedAccount)
  afterAll(() => deployment.stop())
  let changes = 0

  it('counts its changes when it is not cut', async () => {
    deployment.cloud.requests.length = 0
    expect(await deployment.run()).toMatchObject({ code: 0, stderr: '' })
    expect(deployment.clock.waits).toContain(60_000)
    changes = deployment.cloud.changes.length
    expect(changes).toBeLessThanOrEqual(CUTS.length / 2)
  })

  it.each(CUTS)('at change %i, %s its effect, continues', async (index, kind) => {
    if (index >= changes) return
    changeScripts()
    cutAt(index, kind)
    await expectContinued(await deployment.run())
    expect([serving(), serving('headgate-tools')]).toEqual([[`${release} at 100`], [`${release} at 100`]])
  })
})

describe('two deployments', () => {
  beforeAll(deployedAccount)
  afterAll(() => deployment.stop())

  it('at once: one is refused, and the other is whole', async () => {
    const outputs = await Promise.all([deployment.run(), deployment.run()])
    expect(outputs.map(({ code }) => code).sort()).toEqual([0, 1])
    const refused = outputs.find(({ code }) => code === 1)
    expect(refused?.stderr).toMatch(/another deployment of headgate runs \(.+, process \d+\)/)
    expect(serving()).toEqual([`${release} at 100`])
  })

  it('continue after one that died, when its lease has ended', async () => {
    changeScripts()
    await sql(
      "update headgate_deployment.leases set holder = 'dead', label = 'ci@host, process 7', expires_at = now() + interval '100 seconds'",
    )
    const refused = await deployment.run()
    expect(refused.stderr).toMatch(
      /runs \(ci@host, process 7\); if it has died, its lease ends in (99|100) s/,
    )
    await sql("update headgate_deployment.leases set expires_at = now() - interval '1 second'")
    expect(await deployment.run()).toMatchObject({ code: 0, stderr: '' })
    expect(serving()).toEqual([`${release} at 100`])
  })

  it('of which one lost its lease: it changes nothing more', async () => {
    changeScripts()
    const { cloud } = deployment
    cloud.onRequest = async ({ method, path }) => {
      if (method !== 'POST' || !path.endsWith('/headgate/deployments')) return
      cloud.onRequest = () => {}
      await sql(
        "update headgate_deployment.leases set holder = 'another', expires_at = now() + interval '9 s'",
      )
    }
    const { code, stderr } = await deployment.run()
    expect([code, stderr]).toEqual([1, expect.stringContaining('the lease of this deployment was lost')])
    expect(serving().sort()).toEqual([`${release - 1} at 100`, `${release} at 0`])
    await sql("update headgate_deployment.leases set expires_at = now() - interval '1 second'")
  })
})

describe('a deployment without its database', () => {
  let relay: DatabaseRelay
  beforeEach(async () => {
    await deployedAccount()
    relay = new DatabaseRelay(postgres.url)
    deployment.variables = { DATABASE_FETCH_ENDPOINT: await relay.start() }
  })
  afterEach(async () => {
    await relay.stop()
    await deployment.stop()
  })

  /** Takes the database away when the tools are deployed. @param refusals how many requests it misses */
  function cutDatabase(refusals: number): void {
    const { cloud } = deployment
    cloud.onRequest = ({ method, path }) => {
      if (method !== 'POST' || !path.endsWith('/headgate-tools/deployments')) return
      cloud.onRequest = () => {}
      relay.refusals = refusals
    }
  }

  it('changes nothing more, since its lease may end, and the next one continues', async () => {
    cutDatabase(Number.POSITIVE_INFINITY)
    const before = [gatewayScript().versions.length, serving()]
    const { code, stderr } = await deployment.run()
    expect([code, stderr]).toEqual([1, expect.stringContaining('the database of its lease does not answer')])
    expect([gatewayScript().versions.length, serving()]).toEqual(before)
    relay.refusals = 0
    await sql("update headgate_deployment.leases set expires_at = now() - interval '1 second'")
    expect(await deployment.run()).toMatchObject({ code: 0, stderr: '' })
  })

  it('for a moment waits for it', async () => {
    cutDatabase(3)
    expect(await deployment.run()).toMatchObject({ code: 0, stderr: '' })
    expect(relay.refused).toBe(3)
    expect(deployment.clock.waits).toContain(2_000)
    expect(serving()).toEqual([`${release} at 100`])
  })
})

describe('the restore point of a deployment', () => {
  beforeAll(deployedAccount)
  afterAll(() => deployment.stop())

  it('is of the time of its migrations, also when an earlier try has left one', async () => {
    // All migrations but the first are pending, and fail, because their tables are there.
    await sql(
      "insert into providers (name, kind, base_url, sealed_credential) values ('acme', 'openai-compatible', 'https://api.example', 'v1.sealed')",
      'create table kept_migrations as select * from drizzle.__drizzle_migrations',
      'delete from drizzle.__drizzle_migrations where created_at > (select min(created_at) from kept_migrations)',
    )
    expect((await deployment.run()).code).toBe(1)
    await deployment.clock.sleep(86_400_000)
    expect((await deployment.run()).code).toBe(1)
    const branches = deployment.cloud.neon.projects[0]?.branches ?? []
    expect(branches).toEqual([
      expect.stringMatching(/^before-\d{4}_\w+-20261101T\d{6}Z$/),
      expect.stringMatching(/^before-\d{4}_\w+-20261102T\d{6}Z$/),
    ])
    await sql(
      'delete from drizzle.__drizzle_migrations',
      'insert into drizzle.__drizzle_migrations select * from kept_migrations',
      'drop table kept_migrations',
      'delete from providers',
    )
  })
})

describe('a refused request', () => {
  beforeEach(beginEmpty)
  afterEach(() => deployment.stop())

  it.each([
    [/^GET \/client\/v4\/accounts\/\w+$/, 'Account: Account Settings: Read'],
    [/^GET .*\/workers\/services\//, 'Account: Workers Scripts: Edit'],
    [/^POST .*\/r2\/buckets$/, 'Account: Workers R2 Storage: Edit'],
    [/^PUT .*\/scripts\/headgate-tools$/, 'Account: Workers Scripts: Edit'],
    [/^PUT .*\/domains\/records$/, 'Zone: Workers Routes: Edit'],
    [/^GET \/neon\/projects$/, 'access to the project'],
  ])('403 of %s names the permission', async (matches, permission) => {
    deployment.cloud.faults.push({ matches, kind: 403 })
    const { code, stderr } = await deployment.run()
    expect([code, stderr]).toEqual([1, expect.stringContaining(`lacks the permission "${permission}`)])
  })

  it.each([
    [/^GET .*\/workers\/services\/headgate$/, 9, 9_000],
    [/^POST .*\/r2\/buckets$/, 20, 20_000],
    [/^PUT .*\/scripts\/headgate$/, 90, 90_000],
    [/^POST .*\/r2\/buckets$/, undefined, 30_000],
  ])('429 of %s is repeated after %s s', async (matches, retryAfter, waited) => {
    deployment.cloud.faults.push({ matches, kind: 429, times: 1, ...(retryAfter && { retryAfter }) })
    expect(await deployment.run()).toMatchObject({ code: 0, stderr: '' })
    expect(deployment.clock.waits).toContain(waited)
  })

  it('429 without an end ends the deployment, which continues later', async () => {
    deployment.cloud.faults.push({ matches: /^POST .*\/r2\/buckets$/, kind: 429 })
    await expectContinued(await deployment.run())
    expect(deployment.clock.waits).toEqual([30_000, 30_000, 30_000])
  })
})

describe('a version that fails', () => {
  beforeEach(deployedAccount)
  afterEach(() => deployment.stop())
  const isNew = ({ code }: { code: string }) => code.includes(`gateway ${release}`)

  it('under traffic only is rolled back at its share', async () => {
    const before = deployment.cloud.cloudflare.summary()
    deployment.cloud.gateway.isBroken = (version, percentage) => isNew(version) && percentage > 0
    const { code, stdout } = await deployment.run()
    expect([code, stdout]).toEqual([1, expect.stringMatching(/10 % of traffic[\s\S]*rolled back to/)])
    expect(stdout).not.toContain('gateway: 100 %')
    expect(deployment.cloud.cloudflare.summary()).toEqual(before)
  })

  it('stays at its share when the lease was lost during its test', async () => {
    deployment.cloud.gateway.isBroken = (version, percentage) => isNew(version) && percentage > 0
    const { cloud } = deployment
    const [before] = serving()
    let divisions = 0
    cloud.onRequest = async ({ method, path }) => {
      if (method !== 'POST' || !path.endsWith('/headgate/deployments')) return
      divisions += 1
      if (divisions === 2)
        await sql(
          "update headgate_deployment.leases set holder = 'another', expires_at = now() + interval '9 s'",
        )
    }
    const { code, stderr } = await deployment.run()
    const lost = expect.stringMatching(/\S.*; not rolled back: the lease of this deployment was lost/)
    expect([code, stderr, divisions]).toEqual([1, lost, 2])
    expect(serving().sort()).toEqual([before?.replace('at 100', 'at 90'), `${release} at 10`].sort())
  })

  it('is tested again by the next run, without another upload', async () => {
    deployment.cloud.gateway.isBroken = isNew
    expect((await deployment.run()).code).toBe(1)
    deployment.cloud.gateway.isBroken = () => false
    const versions = gatewayScript().versions.length
    expect(await deployment.run()).toMatchObject({ code: 0, stderr: '' })
    expect([gatewayScript().versions.length, serving()]).toEqual([versions, [`${release} at 100`]])
  })

  it('with other classes keeps the tools of its release, since neither can serve all traffic without the other', async () => {
    const script = gatewayScript()
    script.migrationTag = 'v4'
    script.classes.delete('ResponsePool')
    const planned = await deployment.run(['--plan'])
    expect(planned.stdout).toContain('! tools headgate-tools: it stays with the gateway')
    deployment.cloud.gateway.isBroken = isNew
    const { code, stdout } = await deployment.run()
    expect([code, serving(), serving('headgate-tools')]).toEqual([
      1,
      [`${release} at 100`],
      [`${release} at 100`],
    ])
    expect(stdout).not.toContain('headgate-tools rolled back')
  })

  it('beside an unchanged gateway that was never tested takes the tools back alone', async () => {
    expect(await deployment.run()).toMatchObject({ code: 0, stderr: '' })
    await sql("update headgate_deployment.leases set tested_version = 'another'")
    const served = `${release} at 100`
    deployment.writeTools(String(release + 1))
    deployment.cloud.gateway.isBroken = () => true
    expect((await deployment.run()).code).toBe(1)
    expect([serving(), serving('headgate-tools')]).toEqual([[served], [served]])
  })

  it('with other classes stays, and the next one is tested first', async () => {
    const script = gatewayScript()
    script.migrationTag = 'v4'
    script.classes.delete('ResponsePool')
    const planned = await deployment.run(['--plan'])
    expect(planned.stdout).toMatch(/classes: \+ResponsePool$/m)
    expect(planned.stdout).toContain(
      '! gateway headgate: Cloudflare does not roll back past a change of classes',
    )
    const failing = `gateway ${release}`
    deployment.cloud.gateway.isBroken = ({ code }) => code.includes(failing)
    const failed = await deployment.run()
    expect([failed.code, failed.stderr]).toEqual([
      1,
      expect.stringContaining(
        'Cloudflare does not roll back past a change of classes. Mend the code and run again',
      ),
    ])
    expect([serving(), script.migrationTag]).toEqual([[`${release} at 100`], 'v5'])
    changeScripts()
    deployment.cloud.gateway.calls.length = 0
    expect(await deployment.run()).toMatchObject({ code: 0, stderr: '' })
    expect(deployment.cloud.gateway.calls[0]).toMatchObject({ percentage: 0, isOverridden: true })
    expect(serving()).toEqual([`${release} at 100`])
  })
})
