import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { DeployedAccount } from './support/deployed-account.ts'

let account: DeployedAccount
beforeAll(async () => {
  account = await DeployedAccount.start()
})
afterAll(() => account.stop())
afterEach(() => expect(account.deployment.cloud.unknown).toEqual([]))

describe('the restore point of a deployment', () => {
  beforeAll(() => account.beginDeployed())
  afterAll(() => account.end())

  it('is of the time of its migrations, also when an earlier try has left one', async () => {
    // All migrations but the first are pending, and fail, because their tables are there.
    await account.sql(
      "insert into providers (name, kind, base_url, sealed_credential) values ('acme', 'openai-compatible', 'https://api.example', 'v1.sealed')",
      'create table kept_migrations as select * from drizzle.__drizzle_migrations',
      'delete from drizzle.__drizzle_migrations where created_at > (select min(created_at) from kept_migrations)',
    )
    expect((await account.deployment.run()).code).toBe(1)
    await account.deployment.clock.sleep(86_400_000)
    expect((await account.deployment.run()).code).toBe(1)
    const branches = account.deployment.cloud.neon.projects[0]?.branches ?? []
    expect(branches).toEqual([
      expect.stringMatching(/^before-\d{4}_\w+-20261101T\d{6}Z$/),
      expect.stringMatching(/^before-\d{4}_\w+-20261102T\d{6}Z$/),
    ])
    await account.sql(
      'delete from drizzle.__drizzle_migrations',
      'insert into drizzle.__drizzle_migrations select * from kept_migrations',
      'drop table kept_migrations',
      'delete from providers',
    )
  })
})

describe('a refused request', () => {
  beforeEach(() => account.beginEmpty())
  afterEach(() => account.end())

  it.each([
    [/^GET \/client\/v4\/accounts\/\w+$/, 'Account: Account Settings: Read'],
    [/^GET .*\/workers\/services\//, 'Account: Workers Scripts: Edit'],
    [/^POST .*\/r2\/buckets$/, 'Account: Workers R2 Storage: Edit'],
    [/^PUT .*\/scripts\/headgate-tools$/, 'Account: Workers Scripts: Edit'],
    [/^PUT .*\/domains\/records$/, 'Zone: Workers Routes: Edit'],
    [/^GET \/neon\/projects$/, 'access to the project'],
  ])('403 of %s names the permission', async (matches, permission) => {
    account.deployment.cloud.faults.push({ matches, kind: 403 })
    const { code, stderr } = await account.deployment.run()
    expect([code, stderr]).toEqual([1, expect.stringContaining(`lacks the permission "${permission}`)])
  })

  it.each([
    [/^GET .*\/workers\/services\/headgate$/, 9, 9_000],
    [/^POST .*\/r2\/buckets$/, 20, 20_000],
    [/^PUT .*\/scripts\/headgate$/, 90, 90_000],
    [/^POST .*\/r2\/buckets$/, undefined, 30_000],
  ])('429 of %s is repeated after %s s', async (matches, retryAfter, waited) => {
    account.deployment.cloud.faults.push({ matches, kind: 429, times: 1, ...(retryAfter && { retryAfter }) })
    expect(await account.deployment.run()).toMatchObject({ code: 0, stderr: '' })
    expect(account.deployment.clock.waits).toContain(waited)
  })

  it('429 without an end ends the deployment, which continues later', async () => {
    account.deployment.cloud.faults.push({ matches: /^POST .*\/r2\/buckets$/, kind: 429 })
    await account.expectContinued(await account.deployment.run())
    expect(account.deployment.clock.waits).toEqual([30_000, 30_000, 30_000])
  })
})

describe('a version that fails', () => {
  beforeEach(() => account.beginDeployed())
  afterEach(() => account.end())
  const isNew = ({ code }: { code: string }) => code.includes(`gateway ${account.release}`)

  it('under traffic only is rolled back at its share', async () => {
    const before = account.deployment.cloud.cloudflare.summary()
    account.deployment.cloud.gateway.isBroken = (version, percentage) => isNew(version) && percentage > 0
    const { code, stdout } = await account.deployment.run()
    expect([code, stdout]).toEqual([1, expect.stringMatching(/10 % of traffic[\s\S]*rolled back to/)])
    expect(stdout).not.toContain('gateway: 100 %')
    expect(account.deployment.cloud.cloudflare.summary()).toEqual(before)
  })

  it('stays at its share when the lease was lost during its test', async () => {
    account.deployment.cloud.gateway.isBroken = (version, percentage) => isNew(version) && percentage > 0
    account.deployment.clock.onSleep = async (milliseconds) => {
      if (milliseconds === 6_000) await account.loseLease()
    }
    const { code, stderr } = await account.deployment.run()
    const lost = expect.stringMatching(/\S.*; not rolled back: the lease of this deployment was lost/)
    expect([code, stderr]).toEqual([1, lost])
    expect(account.serving().sort()).toEqual([`${account.release - 1} at 90`, `${account.release} at 10`])
    expect(account.serving('headgate-tools')).toEqual([`${account.release} at 100`])
  })

  it('is tested again by the next run, without another upload', async () => {
    account.deployment.cloud.gateway.isBroken = isNew
    expect((await account.deployment.run()).code).toBe(1)
    account.deployment.cloud.gateway.isBroken = () => false
    const versions = account.gatewayScript().versions.length
    expect(await account.deployment.run()).toMatchObject({ code: 0, stderr: '' })
    expect([account.gatewayScript().versions.length, account.serving()]).toEqual([
      versions,
      [`${account.release} at 100`],
    ])
  })

  it('with other classes keeps the tools of its release, since neither can serve all traffic without the other', async () => {
    const script = account.gatewayScript()
    script.migrationTag = 'v4'
    script.classes.delete('ResponsePool')
    const planned = await account.deployment.run(['--plan'])
    expect(planned.stdout).toContain('! tools headgate-tools: it stays with the gateway')
    account.deployment.cloud.gateway.isBroken = isNew
    const { code, stdout } = await account.deployment.run()
    expect([code, account.serving(), account.serving('headgate-tools')]).toEqual([
      1,
      [`${account.release} at 100`],
      [`${account.release} at 100`],
    ])
    expect(stdout).not.toContain('headgate-tools rolled back')
  })

  it('with other classes stays, and the next one is tested first', async () => {
    const script = account.gatewayScript()
    script.migrationTag = 'v4'
    script.classes.delete('ResponsePool')
    const planned = await account.deployment.run(['--plan'])
    expect(planned.stdout).toMatch(/classes: \+ResponsePool$/m)
    expect(planned.stdout).toContain(
      '! gateway headgate: Cloudflare does not roll back past a change of classes',
    )
    const failing = `gateway ${account.release}`
    account.deployment.cloud.gateway.isBroken = ({ code }) => code.includes(failing)
    const failed = await account.deployment.run()
    expect([failed.code, failed.stderr]).toEqual([
      1,
      expect.stringContaining(
        'Cloudflare does not roll back past a change of classes. Mend the code and run again',
      ),
    ])
    expect([account.serving(), script.migrationTag]).toEqual([[`${account.release} at 100`], 'v5'])
    account.changeScripts()
    account.deployment.cloud.gateway.calls.length = 0
    expect(await account.deployment.run()).toMatchObject({ code: 0, stderr: '' })
    expect(account.deployment.cloud.gateway.calls[0]).toMatchObject({ percentage: 0, isOverridden: true })
    expect(account.serving()).toEqual([`${account.release} at 100`])
  })
})

describe('a change of the script of tools alone', () => {
  beforeEach(async () => {
    await account.beginDeployed()
    expect(await account.deployment.run()).toMatchObject({ code: 0, stderr: '' })
    account.deployment.writeTools('77')
    account.deployment.cloud.gateway.calls.length = 0
  })
  afterEach(() => account.end())
  const tested = () => account.deployment.cloud.gateway.calls.map(({ path }) => path)

  it('is tested through the gateway, once', async () => {
    expect(await account.deployment.run()).toMatchObject({ code: 0, stderr: '' })
    expect(account.serving('headgate-tools')).toEqual(['77 at 100'])
    expect(tested()).toContain('/health/ready')
    expect((await account.deployment.run(['--plan'])).stdout).toMatch(/\nno change\n$/)
  })

  it('that does not answer is rolled back, and the gateway stays', async () => {
    const served = [account.serving(), account.serving('headgate-tools')]
    account.deployment.cloud.gateway.areToolsBroken = ({ code }) => code.includes('tools 77')
    const { code, stderr } = await account.deployment.run()
    expect([code, stderr]).toEqual([1, 'deploy: /health/ready: no answer from the script of tools\n'])
    expect([account.serving(), account.serving('headgate-tools')]).toEqual(served)
    account.deployment.writeTools(String(account.release))
    expect((await account.deployment.run(['--plan'])).stdout).toMatch(/\nno change\n$/)
  })

  it('whose test was cut is tested by the next run', async () => {
    account.deployment.clock.onSleep = () => account.loseLease()
    account.deployment.cloud.gateway.areToolsBroken = () => true
    expect((await account.deployment.run()).code).toBe(1)
    await account.endLease()
    account.deployment.clock.onSleep = () => {}
    account.deployment.cloud.gateway.areToolsBroken = () => false
    account.deployment.cloud.gateway.calls.length = 0
    expect(await account.deployment.run()).toMatchObject({ code: 0, stderr: '' })
    expect(tested()).toContain('/health/ready')
  })
})
