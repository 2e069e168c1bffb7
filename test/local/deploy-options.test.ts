import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { startPostgres } from '../../scripts/local/postgres/start.ts'
import type { RunningServer } from '../../scripts/node/loopback-server.ts'
import { CloudDeployment } from '../harness/cloud/cloud-deployment.ts'

const ROOT = join(import.meta.dirname, '../..')

let postgres: RunningServer
let deployment: CloudDeployment

beforeAll(async () => {
  postgres = await startPostgres()
  deployment = new CloudDeployment(postgres.url)
  await deployment.start()
})
afterAll(async () => {
  await deployment.stop()
  await postgres.close()
})
afterEach(() => {
  deployment.writeSettings()
  expect([deployment.cloud.unknown, deployment.cloud.changes]).toEqual([[], []])
})

describe('options of npm run deploy', () => {
  it('--help names each of them on stdout', async () => {
    const { code, stdout, stderr } = await deployment.run(['--help'])
    expect([code, stderr]).toEqual([0, ''])
    for (const option of ['--plan', '--yes', '--json', '--config', '--rotate', '--help']) {
      expect(stdout).toMatch(new RegExp(`^  ${option} .*\\S`, 'm'))
    }
    expect(deployment.cloud.requests).toEqual([])
  })

  it.each([
    [['--rotate', 'ADMIN_TOKEN', 'hga_given-by-mistake'], /^Deploys/],
    [['--rotate', 'hga_given-by-mistake'], /^deploy: --rotate takes the name of a secret: DATABASE_URL, /],
    [['--everything'], /^Deploys/],
  ])('%j is refused, and no value is repeated', async (parameters, text) => {
    const { code, stdout, stderr } = await deployment.run(parameters)
    expect([code, stdout, stderr]).toEqual([1, '', expect.stringMatching(text)])
    expect(stderr).not.toContain('mistake')
  })

  it('--json shows the plan on stderr before it asks, and one document on stdout', async () => {
    const { code, stdout, stderr } = await deployment.run(['--json'], 'n')
    expect([code, JSON.parse(stdout)]).toMatchObject([1, { outcome: 'declined' }])
    expect(stderr).toMatch(/^Plan for account Acme [\s\S]*\n {2}\+ gateway /)
  })

  it('--rotate needs a machine that keeps what is generated', async () => {
    deployment.variables = { CI: 'true', ADMIN_TOKEN: 'hga_of-the-environment', KEY_PEPPERS: '' }
    const { stderr } = await deployment.run(['--yes', '--rotate', 'KEY_PEPPERS', '--rotate', 'ADMIN_TOKEN'])
    deployment.variables = {}
    expect(stderr).toMatch(/^deploy: KEY_PEPPERS, VAULT_KEYS would be generated on a machine of CI/)
  })
})

describe('settings of npm run deploy', () => {
  it.each([
    ['secrets.json', true],
    [join(ROOT, 'docs/secrets.json'), true],
    ['.headgate/secrets.json', false],
    [join(ROOT, '../headgate-secrets-of-a-test.json'), false],
  ])('secretsFile %s: refused %s', async (secretsFile, isRefused) => {
    deployment.writeSettings({ secretsFile })
    const { code, stderr } = await deployment.run(['--plan'])
    expect([code, stderr]).toEqual(
      isRefused ? [1, expect.stringContaining('and git does not ignore it')] : [2, ''],
    )
  })

  it('secretsFile may be absolute: it is read where it is', async () => {
    const secretsFile = join(deployment.folder, 'elsewhere.json')
    writeFileSync(secretsFile, '{ damaged')
    deployment.writeSettings({ secretsFile })
    const { code, stderr } = await deployment.run(['--plan'])
    expect([code, stderr]).toEqual([1, expect.stringContaining(`${secretsFile} is damaged`)])
  })

  it('plan no deployment without the address of Redis', async () => {
    deployment.writeSettings({ redis: 'environment' })
    deployment.variables = { UPSTASH_REDIS_REST_TOKEN: 'canary-token-of-redis' }
    const without = await deployment.run(['--plan'])
    expect([without.code, without.stdout]).toEqual([
      1,
      expect.stringContaining('  ! Invalid configuration: UPSTASH_REDIS_REST_URL is not set\n'),
    ])
    deployment.variables.UPSTASH_REDIS_REST_URL = 'https://x.upstash.io'
    expect((await deployment.run(['--plan'])).code).toBe(2)
    deployment.variables = {}
  })
})
