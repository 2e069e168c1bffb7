import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { StoredVersion } from '../harness/cloud/cloudflare-state.ts'
import { DeployedAccount } from './support/deployed-account.ts'

let account: DeployedAccount
beforeAll(async () => {
  account = await DeployedAccount.start()
})
afterAll(() => account.stop())
beforeEach(() => account.beginDeployed())
afterEach(async () => {
  expect(account.deployment.cloud.unknown).toEqual([])
  await account.end()
})

/** Whether a version of the gateway is of a release. */
const isOf =
  (release: number) =>
  ({ code }: StoredVersion) =>
    code.includes(`gateway ${release}\n`)

/** Releases of both scripts that serve. */
const served = () => [account.serving(), account.serving('headgate-tools')]
const both = (release: number) => [[`${release} at 100`], [`${release} at 100`]]

/** Ends a deployment at a request that divides the traffic of a script, which has its effect. @param nth of them, from 1 */
async function cutAfterDividing(script: string, nth = 1): Promise<void> {
  const { cloud } = account.deployment
  let seen = 0
  cloud.onRequest = async ({ method, path }) => {
    if (method !== 'POST' || !path.endsWith(`/${script}/deployments`) || ++seen !== nth) return
    await account.loseLease()
  }
  expect((await account.deployment.run()).code).toBe(1)
  cloud.onRequest = () => {}
  await account.endLease()
}

describe('a failed test of a run that continues another one', () => {
  it('rolls back tools that the run before has deployed', async () => {
    await cutAfterDividing('headgate-tools')
    expect(served()).toEqual([['1 at 100'], ['2 at 100']])
    const { gateway } = account.deployment.cloud
    gateway.areToolsBroken = ({ code }) => code.includes('tools 2')
    const { code, stderr } = await account.deployment.run()
    expect([code, stderr]).toEqual([1, 'deploy: /health/ready: no answer from the script of tools\n'])
    expect(served()).toEqual(both(1))
    gateway.areToolsBroken = () => false
    expect(await account.deployment.run()).toMatchObject({ code: 0, stderr: '' })
    expect(served()).toEqual(both(2))
  })

  it('rolls back a gateway that the run before has given all traffic, with its tools', async () => {
    await cutAfterDividing('headgate', 3)
    expect(served()).toEqual(both(2))
    account.deployment.cloud.gateway.isBroken = isOf(2)
    const { code, stdout } = await account.deployment.run()
    expect([code, stdout]).toEqual([1, expect.stringMatching(/\ngateway: rolled back to /)])
    expect(served()).toEqual(both(1))
    account.deployment.cloud.gateway.isBroken = () => false
    expect(await account.deployment.run()).toMatchObject({ code: 0, stderr: '' })
    expect(served()).toEqual(both(2))
  })

  it('of a later release goes back to the one that was tested', async () => {
    await cutAfterDividing('headgate', 3)
    account.changeScripts()
    account.deployment.cloud.gateway.isBroken = isOf(3)
    expect((await account.deployment.run()).code).toBe(1)
    expect(served()).toEqual(both(1))
  })

  it('goes back to what an operator has rolled back to, not to what was tested last', async () => {
    expect(await account.deployment.run()).toMatchObject({ code: 0, stderr: '' })
    for (const name of ['headgate', 'headgate-tools']) {
      const script = account.deployment.cloud.cloudflare.scripts.get(name)
      const [first] = script?.versions ?? []
      script?.deployments.unshift({ versions: [{ version_id: first?.id ?? '', percentage: 100 }] })
    }
    expect(served()).toEqual(both(1))
    account.changeScripts()
    account.deployment.cloud.gateway.isBroken = isOf(3)
    expect((await account.deployment.run()).code).toBe(1)
    expect(served()).toEqual(both(1))
  })

  it('does not go back past a change of classes', async () => {
    const script = account.gatewayScript()
    script.migrationTag = 'v4'
    for (const version of script.versions) version.migrationTag = 'v4'
    script.classes.delete('ResponsePool')
    account.deployment.cloud.gateway.isBroken = isOf(2)
    expect((await account.deployment.run()).code).toBe(1)
    const { code, stderr } = await account.deployment.run()
    expect([code, stderr]).toEqual([1, expect.stringContaining('This version has all traffic')])
    expect(stderr).not.toContain('not rolled back')
    expect(served()).toEqual(both(2))
  })
})

describe('a rollback', () => {
  const path = {
    headgate: /^POST .*\/headgate\/deployments$/,
    tools: /^POST .*\/headgate-tools\/deployments$/,
  }

  /** Lets the new version fail its test at a share, and the rollback that follows. @param times how often; default: always */
  function failAt(share: number, matches: RegExp, times?: number, release = 2): void {
    const { cloud } = account.deployment
    cloud.gateway.isBroken = (version, percentage) => {
      const isFailing = isOf(release)(version) && percentage === share
      if (isFailing && cloud.faults.length === 0)
        cloud.faults.push({ matches, kind: 502, ...(times !== undefined && { times }) })
      return isFailing
    }
  }

  it('that is answered 502 is repeated', async () => {
    failAt(10, path.headgate, 1)
    const { code, stderr } = await account.deployment.run()
    expect([code, stderr]).toEqual([1, expect.stringMatching(/^deploy: \/health\/ready was answered 500\n/)])
    expect(stderr).not.toContain('not rolled back')
    expect(served()).toEqual(both(1))
    expect(account.deployment.clock.waits).toContain(5_000)
  })

  it('that always fails is given up, says what was found and what serves, and the tools are rolled back', async () => {
    failAt(10, path.headgate)
    const { code, stdout } = await account.deployment.run(['--yes', '--json'])
    const id = account.gatewayScript().versions.at(-1)?.id
    expect([code, JSON.parse(stdout)]).toMatchObject([1, { outcome: 'failed_test', version: null }])
    expect(JSON.parse(stdout).problems).toEqual(
      expect.arrayContaining([
        '/health/ready was answered 500',
        expect.stringMatching(new RegExp(`^not rolled back: .+; version ${id} of headgate keeps 10 %`)),
      ]),
    )
    expect(account.serving().sort()).toEqual(['1 at 90', '2 at 10'])
    expect(account.serving('headgate-tools')).toEqual(['1 at 100'])
    expect(account.deployment.clock.waits.slice(-4)).toEqual([5_000, 10_000, 20_000, 40_000])
  })

  it('from all traffic that always fails leaves the tools with their gateway', async () => {
    failAt(100, path.headgate)
    const { code, stderr } = await account.deployment.run()
    expect([code, stderr]).toEqual([1, expect.stringContaining('of headgate keeps 100 %')])
    expect(served()).toEqual(both(2))
  })

  it.each([
    [0, ['2 at 100', '3 at 0']],
    [10, ['2 at 90', '3 at 10']],
  ])('at %d %% that always fails names what a cut run has left, and keeps the tools', async (share, kept) => {
    await cutAfterDividing('headgate', 3)
    account.changeScripts()
    failAt(share, path.headgate, undefined, 3)
    const { code, stdout } = await account.deployment.run(['--yes', '--json'])
    const [, left, failed] = account.gatewayScript().versions.map(({ id }) => id)
    const document = JSON.parse(stdout)
    expect([code, document]).toMatchObject([
      1,
      { outcome: 'failed_test', version: share === 0 ? left : null },
    ])
    expect(document.problems.at(-1)).toContain(
      `version ${failed} of headgate keeps ${share} % and version ${left} keeps ${100 - share} % of the traffic`,
    )
    expect(account.serving().sort()).toEqual(kept)
    expect(account.serving('headgate-tools')).toEqual(['3 at 100'])
  })

  it('of the tools that always fails says so', async () => {
    failAt(10, path.tools)
    const { code, stderr } = await account.deployment.run()
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/\/health\/ready was answered 500\n[\s\S]*of headgate-tools keeps 100 %/),
    ])
    expect(served()).toEqual([['1 at 100'], ['2 at 100']])
    account.deployment.cloud.faults.length = 0
    account.deployment.cloud.gateway.isBroken = isOf(2)
    expect((await account.deployment.run()).code).toBe(1)
    expect(served()).toEqual(both(1))
  })
})
