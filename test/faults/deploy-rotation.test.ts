import { readFileSync } from 'node:fs'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { cutsOf, DeployedAccount } from './support/deployed-account.ts'

let account: DeployedAccount
beforeAll(async () => {
  account = await DeployedAccount.start()
  await account.beginEmpty()
  expect(await account.deployment.run()).toMatchObject({ code: 0, stderr: '' })
})
afterAll(async () => {
  await account.end()
  await account.stop()
})
afterEach(() => {
  account.deployment.variables = {}
  account.deployment.cloud.gateway.isBroken = () => false
  expect(account.deployment.cloud.unknown).toEqual([])
})

const stored = () =>
  JSON.parse(readFileSync(account.deployment.secretsFile, 'utf8')) as Record<string, string>

/** The secret of the version that has all traffic. */
function served(name: string): string {
  const shares = account.deployment.cloud.cloudflare.shares(account.gatewayScript())
  expect(shares.map(({ percentage }) => percentage)).toEqual([100])
  return String(shares[0]?.version.bindings.find((binding) => binding.name === name)?.text)
}

const rotate = (name: string) => account.deployment.run(['--yes', '--rotate', name])

/** Requests that change something: of the upload, and of 0, 10 and 100 %. */
const ROTATION_CHANGES = 8

describe('the rotation of a secret', () => {
  it('replaces ADMIN_TOKEN on the script and in the file, tested with the new one', async () => {
    const before = stored().ADMIN_TOKEN
    account.deployment.cloud.requests.length = 0
    const output = await rotate('ADMIN_TOKEN')
    expect(output).toMatchObject({ code: 0, stderr: '' })
    expect(stored().ADMIN_TOKEN).not.toBe(before)
    expect([served('ADMIN_TOKEN'), served('VAULT_KEYS')]).toEqual([stored().ADMIN_TOKEN, stored().VAULT_KEYS])
    expect(account.deployment.cloud.changes).toHaveLength(ROTATION_CHANGES)
    expect((await account.deployment.run(['--plan'])).stdout).toMatch(/\nno change\n$/)
    expect(account.deployment.leaks(output)).toEqual([])
  })

  it.each(cutsOf(ROTATION_CHANGES))('cut at change %i, %s its effect, continues', async (index, kind) => {
    const before = served('ADMIN_TOKEN')
    account.cutAt(index, kind)
    await account.expectContinued(await rotate('ADMIN_TOKEN'))
    expect(served('ADMIN_TOKEN')).toBe(stored().ADMIN_TOKEN)
    expect(served('ADMIN_TOKEN')).not.toBe(before)
    expect(Object.keys(stored())).toEqual(['ADMIN_TOKEN', 'KEY_PEPPERS', 'VAULT_KEYS'])
  })

  it('that fails its test leaves the old one on the script and in the file', async () => {
    const before = served('ADMIN_TOKEN')
    account.deployment.cloud.gateway.isBroken = (_, percentage) => percentage === 10
    expect((await rotate('ADMIN_TOKEN')).code).toBe(1)
    expect([served('ADMIN_TOKEN'), stored().ADMIN_TOKEN]).toEqual([before, before])
    account.deployment.cloud.gateway.isBroken = () => false
    expect(await account.deployment.run()).toMatchObject({ code: 0, stderr: '' })
    expect(served('ADMIN_TOKEN')).toBe(stored().ADMIN_TOKEN)
    expect(served('ADMIN_TOKEN')).not.toBe(before)
  })

  it('gives a ring a second pair, and puts it first in another run', async () => {
    const before = served('VAULT_KEYS')
    const first = await rotate('VAULT_KEYS')
    expect(first.stdout).toContain('run --rotate VAULT_KEYS again after 30 minutes')
    const [old, added] = served('VAULT_KEYS').split(',')
    expect([old, added]).toEqual([before, expect.stringMatching(/^v2:/)])
    expect(await rotate('VAULT_KEYS')).toMatchObject({ code: 0, stderr: '' })
    expect(served('VAULT_KEYS')).toBe(`${added},${old}`)
    expect(stored().VAULT_KEYS).toBe(served('VAULT_KEYS'))
  })

  it('takes a given one from the environment', async () => {
    account.deployment.variables = { QSTASH_TOKEN: 'canary-qstash-token-9876543210' }
    expect(await account.deployment.run()).toMatchObject({ code: 0, stderr: '' })
    expect(served('QSTASH_TOKEN')).not.toContain('9876543210')
    const output = await rotate('QSTASH_TOKEN')
    expect(output).toMatchObject({ code: 0, stderr: '' })
    expect(served('QSTASH_TOKEN')).toBe('canary-qstash-token-9876543210')
    expect(`${output.stdout}${[...account.deployment.seenProcesses].join()}`).not.toContain('9876543210')
  })

  it('by other means is named when the test finds it', async () => {
    account.deployment.variables = { ADMIN_TOKEN: 'hga_another-one-0123456789' }
    account.changeScripts()
    const { code, stderr } = await account.deployment.run()
    expect([code, stderr]).toEqual([
      1,
      'deploy: /api/organizations was answered 401: ADMIN_TOKEN of the environment is not that of the script\n',
    ])
  })
})
