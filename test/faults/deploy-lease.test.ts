import { spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { DatabaseRelay } from '../harness/cloud/database-relay.ts'
import { DeployedAccount } from './support/deployed-account.ts'

let account: DeployedAccount
beforeAll(async () => {
  account = await DeployedAccount.start()
})
afterAll(() => account.stop())
afterEach(() => expect(account.deployment.cloud.unknown).toEqual([]))

/** Files of runs that were left. */
const runFolders = () =>
  readdirSync(join(account.deployment.folder, 'deploy/test-stage')).filter((name) => name.startsWith('run-'))

describe('two deployments', () => {
  beforeAll(() => account.beginDeployed())
  afterAll(() => account.end())

  it('at once: one is refused, and the other is whole', async () => {
    const outputs = await Promise.all([account.deployment.run(), account.deployment.run()])
    expect(outputs.map(({ code }) => code).sort()).toEqual([0, 1])
    const refused = outputs.find(({ code }) => code === 1)
    expect(refused?.stderr).toMatch(/another deployment of headgate runs \(.+, process \d+\)/)
    expect(account.serving()).toEqual([`${account.release} at 100`])
  })

  it('of one checkout, the second of which plans another build: the first one deploys what was agreed to, and can roll back', async () => {
    account.changeScripts()
    const [agreed, before] = [account.release, account.serving()]
    const { cloud } = account.deployment
    const tested: string[] = []
    cloud.gateway.isBroken = ({ code }, percentage) => {
      if (percentage === 10) tested.push(code)
      // As a build does that begins.
      rmSync(account.deployment.bundle, { recursive: true, force: true })
      return percentage === 10
    }
    cloud.onRequest = async ({ method, path }) => {
      if (method !== 'POST' || !path.endsWith('/headgate-tools/deployments')) return
      cloud.onRequest = () => {}
      account.changeScripts()
      expect(await account.deployment.run(['--plan'])).toMatchObject({ code: 2, stderr: '' })
    }
    const { code, stdout } = await account.deployment.run()
    expect([code, stdout]).toEqual([1, expect.stringContaining('gateway: rolled back to')])
    expect(tested[0]).toContain(`gateway ${agreed}\n`)
    expect(account.serving()).toEqual(before)
    expect(runFolders()).toEqual([])
    cloud.gateway.isBroken = () => false
    account.changeScripts()
  })

  it('of which one was killed: the next one removes its files', async () => {
    const { pid = 0 } = spawnSync(process.execPath, ['--version'])
    const name = `run-${hostname()}-00000000-0000-4000-8000-00000000dead`
    const folder = join(account.deployment.folder, 'deploy/test-stage', name)
    mkdirSync(join(folder, 'scripts'), { recursive: true })
    writeFileSync(`${folder}.lock`, `${pid} 1`)
    expect((await account.deployment.run(['--plan'])).stderr).toBe('')
    expect(runFolders()).toEqual([])
  })

  it('continue after one that died, when its lease has ended', async () => {
    account.changeScripts()
    await account.sql(
      "update headgate_deployment.leases set holder = 'dead', label = 'ci@host, process 7', expires_at = now() + interval '100 seconds'",
    )
    const refused = await account.deployment.run()
    expect(refused.stderr).toMatch(
      /runs \(ci@host, process 7\); if it has died, its lease ends in (99|100) s/,
    )
    await account.endLease()
    expect(await account.deployment.run()).toMatchObject({ code: 0, stderr: '' })
    expect(account.serving()).toEqual([`${account.release} at 100`])
  })

  it('of which one lost its lease: it changes nothing more', async () => {
    account.changeScripts()
    const { cloud } = account.deployment
    cloud.onRequest = async ({ method, path }) => {
      if (method !== 'POST' || !path.endsWith('/headgate/deployments')) return
      cloud.onRequest = () => {}
      await account.loseLease()
    }
    const { code, stderr } = await account.deployment.run()
    expect([code, stderr]).toEqual([1, expect.stringContaining('the lease of this deployment was lost')])
    expect(account.serving().sort()).toEqual([`${account.release - 1} at 100`, `${account.release} at 0`])
    await account.endLease()
  })
})

describe('a deployment', () => {
  beforeAll(() => account.beginDeployed())
  afterAll(() => account.end())

  it('whose settings of a script change before its lease is refused', async () => {
    const { cloud } = account.deployment
    let reads = 0
    cloud.onRequest = ({ path }) => {
      const [database] = cloud.upstash.databases
      if (database !== undefined && /\/accounts\/[^/]+$/.test(path) && ++reads === 2)
        database.endpoint = 'another.upstash.io'
    }
    const before = account.serving()
    const { code, stderr } = await account.deployment.run()
    cloud.onRequest = () => {}
    expect([code, stderr]).toEqual([
      1,
      expect.stringContaining('settings of a script have changed since the plan'),
    ])
    expect(account.serving()).toEqual(before)
  })
})

describe('a deployment that slept until another one had deployed', () => {
  beforeEach(() => account.beginDeployed())
  afterEach(() => account.end())

  /** Deploys the next release in the wait of the one that runs, whose lease has ended. @returns texts that serve afterwards */
  function deployAnotherIn(wait: number): Promise<void> {
    const { clock } = account.deployment
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    clock.onSleep = async (milliseconds) => {
      if (milliseconds !== wait) return
      clock.onSleep = () => {}
      account.deployment.cloud.gateway.isBroken = () => false
      await account.endLease()
      account.changeScripts()
      await account.deployment
        .run()
        .then((other) => (other.code === 0 ? resolve() : reject(new Error(other.stderr))), reject)
    }
    return promise
  }

  it.each([
    ['at 10 %', 60_000, false],
    ['during a test that fails', 6_000, true],
  ])('%s changes nothing, and says so', async (_, wait, isBroken) => {
    const { gateway, cloudflare } = account.deployment.cloud
    gateway.isBroken = () => isBroken
    let whole: unknown
    const other = deployAnotherIn(wait).then(() => {
      whole = cloudflare.summary()
    })
    const { code, stderr } = await account.deployment.run()
    await other
    expect([code, stderr]).toEqual([1, expect.stringContaining('the lease of this deployment was lost')])
    const served = `${account.release} at 100`
    expect([account.serving(), account.serving('headgate-tools')]).toEqual([[served], [served]])
    expect(cloudflare.summary()).toEqual(whole)
  })
})

describe('a deployment without its database', () => {
  let relay: DatabaseRelay
  beforeEach(async () => {
    await account.beginDeployed()
    relay = new DatabaseRelay(account.postgresUrl)
    account.deployment.variables = { DATABASE_FETCH_ENDPOINT: await relay.start() }
  })
  afterEach(async () => {
    await relay.stop()
    await account.end()
  })

  /** Takes the database away when the tools are deployed. @param refusals how many requests it misses */
  function cutDatabase(refusals: number): void {
    const { cloud } = account.deployment
    cloud.onRequest = ({ method, path }) => {
      if (method !== 'POST' || !path.endsWith('/headgate-tools/deployments')) return
      cloud.onRequest = () => {}
      relay.refusals = refusals
    }
  }

  it('changes nothing more, since its lease may end, and the next one continues', async () => {
    cutDatabase(Number.POSITIVE_INFINITY)
    const before = [account.gatewayScript().versions.length, account.serving()]
    const { code, stderr } = await account.deployment.run()
    expect([code, stderr]).toEqual([1, expect.stringContaining('the database of its lease does not answer')])
    expect([account.gatewayScript().versions.length, account.serving()]).toEqual(before)
    relay.refusals = 0
    await account.endLease()
    expect(await account.deployment.run()).toMatchObject({ code: 0, stderr: '' })
  })

  it('for a moment waits for it', async () => {
    cutDatabase(3)
    expect(await account.deployment.run()).toMatchObject({ code: 0, stderr: '' })
    expect(relay.refused).toBe(3)
    expect(account.deployment.clock.waits).toContain(2_000)
    expect(account.serving()).toEqual([`${account.release} at 100`])
  })
})
