import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { DeployedAccount } from './support/deployed-account.ts'

let account: DeployedAccount
beforeAll(async () => {
  account = await DeployedAccount.start()
})
afterAll(() => account.stop())

describe('a deployment that is interrupted', () => {
  beforeEach(() => account.beginDeployed())
  afterEach(async () => {
    expect(account.deployment.cloud.unknown).toEqual([])
    await account.end()
  })
  const INTERRUPTED = [1, 'deploy: interrupted; run again to continue\n']

  it('before its first step changes nothing', async () => {
    const { cloud, interruption } = account.deployment
    cloud.requests.length = 0
    cloud.onRequest = () => interruption.abort()
    const { code, stderr } = await account.deployment.run()
    expect([code, stderr]).toEqual(INTERRUPTED)
    expect(cloud.changes).toEqual([])
  })

  it('during a test keeps its share, and the next run continues', async () => {
    const { cloud, interruption } = account.deployment
    cloud.gateway.isBroken = (_, percentage) => {
      if (percentage === 10) interruption.abort()
      return false
    }
    const { code, stderr } = await account.deployment.run()
    expect([code, stderr]).toEqual(INTERRUPTED)
    expect(account.serving().sort()).toEqual(['1 at 90', '2 at 10'])
    account.deployment.interruption = new AbortController()
    expect(await account.deployment.run()).toMatchObject({ code: 0, stderr: '' })
    expect(account.serving()).toEqual(['2 at 100'])
  })

  it('during a test that fails is rolled back', async () => {
    const { cloud, interruption } = account.deployment
    cloud.gateway.isBroken = (_, percentage) => {
      if (percentage === 10) interruption.abort()
      return percentage === 10
    }
    const { code, stderr } = await account.deployment.run()
    expect([code, stderr]).toEqual([1, expect.stringMatching(/^deploy: \/health\/ready was answered 500\n/)])
    expect([account.serving(), account.serving('headgate-tools')]).toEqual([['1 at 100'], ['1 at 100']])
  })

  it('after its last test has ended its work', async () => {
    const { cloud, interruption } = account.deployment
    cloud.gateway.isBroken = (_, percentage) => {
      if (percentage === 100) interruption.abort()
      return false
    }
    expect(await account.deployment.run()).toMatchObject({ code: 0, stderr: '' })
    account.deployment.interruption = new AbortController()
    expect((await account.deployment.run(['--plan'])).stdout).toMatch(/\nno change\n$/)
  })
})
