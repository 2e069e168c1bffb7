import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { cutsOf, DeployedAccount } from './support/deployed-account.ts'

let account: DeployedAccount
beforeAll(async () => {
  account = await DeployedAccount.start()
})
afterAll(() => account.stop())
afterEach(() => expect(account.deployment.cloud.unknown).toEqual([]))

/** Requests that change something, of a deployment that is not cut. */
const FIRST_CHANGES = 12
const UPDATE_CHANGES = 12

describe('a first deployment that is cut', () => {
  beforeEach(async () => {
    await account.beginWithoutDatabase()
  })
  afterEach(() => account.end())
  let whole: unknown

  it(`makes ${FIRST_CHANGES} changes when it is not cut`, async () => {
    expect(await account.deployment.run()).toMatchObject({ code: 0, stderr: '' })
    expect(account.deployment.cloud.changes.length).toBe(FIRST_CHANGES)
    whole = account.deployment.cloud.cloudflare.summary()
  })

  it.each(cutsOf(FIRST_CHANGES))('at change %i, %s its effect, continues', async (index, kind) => {
    account.cutAt(index, kind)
    await account.expectContinued(await account.deployment.run())
    expect(account.deployment.cloud.cloudflare.summary()).toEqual(whole)
    const { neon, upstash } = account.deployment.cloud
    expect([neon.projects.length, upstash.databases.length]).toEqual([1, 1])
  })
})

describe('an update that is cut', () => {
  beforeAll(() => account.beginDeployed())
  afterAll(() => account.end())

  it(`makes ${UPDATE_CHANGES} changes when it is not cut`, async () => {
    account.deployment.cloud.requests.length = 0
    expect(await account.deployment.run()).toMatchObject({ code: 0, stderr: '' })
    expect(account.deployment.clock.waits).toContain(60_000)
    expect(account.deployment.cloud.changes.length).toBe(UPDATE_CHANGES)
  })

  it.each(cutsOf(UPDATE_CHANGES))('at change %i, %s its effect, continues', async (index, kind) => {
    account.changeScripts()
    account.cutAt(index, kind)
    await account.expectContinued(await account.deployment.run())
    expect([account.serving(), account.serving('headgate-tools')]).toEqual([
      [`${account.release} at 100`],
      [`${account.release} at 100`],
    ])
  })
})
