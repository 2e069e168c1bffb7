import { readFileSync, rmSync } from 'node:fs'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { writePrivateFile } from '../../scripts/node/private-file.ts'
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
  account.deployment.cloud.onRequest = () => {}
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

describe('the rotation to a value of the environment', () => {
  const OLD = { QSTASH_TOKEN: 'canary-qstash-token-of-before' }
  const NEW = { QSTASH_TOKEN: 'canary-qstash-token-rejected' }
  const REFUSAL = 'give --rotate QSTASH_TOKEN, with the old or a new value'

  const begin = async (variables: Record<string, string>) => {
    account.deployment.variables = variables
    for (const name of Object.keys(variables)) {
      expect(await rotate(name)).toMatchObject({ code: 0, stderr: '' })
    }
  }
  const rollBack = async (variables: Record<string, string>) => {
    account.deployment.variables = variables
    account.deployment.cloud.gateway.isBroken = (_, percentage) => percentage === 10
    const output = await account.deployment.run([
      '--yes',
      ...Object.keys(variables).flatMap((name) => ['--rotate', name]),
    ])
    expect(output.code).toBe(1)
    account.deployment.cloud.gateway.isBroken = () => false
  }
  const expectRefused = async (parameters: string[], text = REFUSAL) => {
    account.deployment.cloud.requests.length = 0
    const output = await account.deployment.run(parameters)
    expect([output.code, output.stdout]).toEqual([1, expect.stringContaining(text)])
    expect(account.deployment.cloud.changes).toEqual([])
    expect(`${output.stdout}${output.stderr}`).not.toContain('canary-qstash')
  }

  it('that is rolled back is not inherited by a version with the same code or another one', async () => {
    await begin(OLD)
    await rollBack(NEW)
    await expectRefused(['--yes'])
    account.deployment.variables = OLD
    account.changeScripts()
    await expectRefused(['--plan'])
    await expectRefused(['--yes'])
    await expectRefused(['--yes', '--rotate', 'ADMIN_TOKEN'])
    expect(served('QSTASH_TOKEN')).toBe(OLD.QSTASH_TOKEN)

    expect(await rotate('QSTASH_TOKEN')).toMatchObject({ code: 0, stderr: '' })
    account.changeScripts()
    expect(await account.deployment.run()).toMatchObject({ code: 0, stderr: '' })
    expect(served('QSTASH_TOKEN')).toBe(OLD.QSTASH_TOKEN)
    expect(account.serving()).toEqual([`${account.release} at 100`])
  })

  it('with a ring that lacks its old pair is not inherited, also on a machine of CI without the file', async () => {
    const { ADMIN_TOKEN = '', KEY_PEPPERS = '', VAULT_KEYS = '' } = stored()
    const before = { CI: 'true', ADMIN_TOKEN, KEY_PEPPERS }
    await rollBack({ VAULT_KEYS: `v9:${Buffer.alloc(32, 9).toString('base64')}` })
    rmSync(account.deployment.secretsFile)
    account.changeScripts()
    account.deployment.variables = { ...before, VAULT_KEYS }
    await expectRefused(['--yes'], 'give --rotate VAULT_KEYS')
    expect(await rotate('VAULT_KEYS')).toMatchObject({ code: 0, stderr: '' })
    expect(served('VAULT_KEYS')).toBe(VAULT_KEYS)
    writePrivateFile(account.deployment.secretsFile, JSON.stringify({ ADMIN_TOKEN, KEY_PEPPERS, VAULT_KEYS }))
  })

  it('is refused until every one that was rolled back is given again', async () => {
    const names = { QSTASH_CURRENT_SIGNING_KEY: 'sig_old-current', QSTASH_NEXT_SIGNING_KEY: 'sig_old-next' }
    account.deployment.variables = names
    expect(await account.deployment.run()).toMatchObject({ code: 0, stderr: '' })
    await rollBack({ QSTASH_CURRENT_SIGNING_KEY: 'sig_new-current', QSTASH_NEXT_SIGNING_KEY: 'sig_new-next' })
    account.deployment.variables = names
    await expectRefused(
      ['--yes', '--rotate', 'QSTASH_NEXT_SIGNING_KEY'],
      'give --rotate QSTASH_CURRENT_SIGNING_KEY',
    )
    const both = Object.keys(names).flatMap((name) => ['--rotate', name])
    expect(await account.deployment.run(['--yes', ...both])).toMatchObject({ code: 0, stderr: '' })
    expect(Object.keys(names).map(served)).toEqual(Object.values(names))
  })

  it.each([
    ['before', 0, false],
    ['after', 1, false],
    ['before', 6, false],
    ['after', ROTATION_CHANGES - 1, true],
  ] as const)('cut %s change %i is given again, or has all traffic: %s', async (kind, index, isLast) => {
    const before = served('QSTASH_TOKEN')
    const next = `canary-qstash-token-${kind}-${index}`
    account.deployment.variables = { QSTASH_TOKEN: next }
    account.cutAt(index, kind)
    expect((await rotate('QSTASH_TOKEN')).code).toBe(1)
    account.heal()
    const { versions } = account.gatewayScript()
    const isInherited = versions.at(-1)?.bindings.some(({ text }) => text === next)
    if (isLast || !isInherited) {
      expect(await account.deployment.run()).toMatchObject({ code: 0, stderr: '' })
      expect(served('QSTASH_TOKEN')).toBe(isLast ? next : before)
    } else {
      await expectRefused(['--yes'])
      expect(await rotate('QSTASH_TOKEN')).toMatchObject({ code: 0, stderr: '' })
      expect(served('QSTASH_TOKEN')).toBe(next)
    }
  })

  it('that another deployment rolled back after the plan was made is not inherited', async () => {
    await begin(OLD)
    await rollBack(NEW)
    const record = (names: string) =>
      account.sql(`update headgate_deployment.leases set begun_rotations = ${names}`)
    await record('null')
    account.changeScripts()
    const { cloud } = account.deployment
    let reads = 0
    cloud.onRequest = async ({ path }) => {
      if (/\/accounts\/[^/]+$/.test(path) && ++reads === 2) await record("'QSTASH_TOKEN'")
    }
    const { code, stderr } = await account.deployment.run()
    expect([code, stderr]).toEqual([
      1,
      expect.stringContaining('the account has changed since the plan was made'),
    ])
    expect(served('QSTASH_TOKEN')).toBe(OLD.QSTASH_TOKEN)
  })
})
