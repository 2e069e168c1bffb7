import { readFileSync, rmSync, statSync } from 'node:fs'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { startPostgres } from '../../scripts/local/postgres/start.ts'
import type { RunningServer } from '../../scripts/node/loopback-server.ts'
import { sqlOf } from '../faults/support/cloud-account.ts'
import { CloudDeployment, type DeployOutput } from '../harness/cloud/cloud-deployment.ts'

// More of them, with faults at every step, are in test/faults/deploy-cuts.test.ts.

let postgres: RunningServer
let deployment: CloudDeployment
const outputs: DeployOutput[] = []

beforeAll(async () => {
  postgres = await startPostgres()
  deployment = new CloudDeployment(postgres.url)
  await deployment.start()
})
afterAll(async () => {
  await deployment.stop()
  await postgres.close()
})
afterEach(() => expect(deployment.cloud.unknown).toEqual([]))

async function run(...parameters: string[]): Promise<DeployOutput> {
  const output = await deployment.run(parameters)
  outputs.push(output)
  return output
}

const secretsFile = () => JSON.parse(readFileSync(deployment.secretsFile, 'utf8')) as Record<string, string>

/** One account through its life: each test begins where the one before ended. */
describe('npm run deploy', { timeout: 60_000 }, () => {
  it('plans a first deployment, and changes nothing', async () => {
    const { code, stdout, stderr } = await run('--plan')
    expect([code, stderr]).toEqual([2, ''])
    expect(stdout).toMatch(
      /^Plan for account Acme \(012345…\), stage test-stage {3}create 12 · change 2 · same 0\n/,
    )
    for (const line of [
      /^ {2}\+ database\s+Neon headgate$/m,
      /^ {2}~ migrations\s+\d+ of the schema/m,
      /^ {2}\+ bucket\s+headgate-content$/m,
      /^ {2}\+ secrets\s+VAULT_KEYS {3}generated/m,
      /^ {2}\+ tools\s+headgate-tools .*classes: \+WorkspaceObject$/m,
      /^ {2}\+ gateway\s+headgate\n\s+code \w+\n\s+variables: \+BASE_URL .*\n\s+classes: \+Ledger /m,
      /^ {2}! gateway headgate: there is no version before it$/m,
    ]) {
      expect(stdout).toMatch(line)
    }
    expect(deployment.cloud.changes).toEqual([])
  })

  it('asks first, and needs a terminal for that', async () => {
    expect(await deployment.run([])).toMatchObject({
      code: 1,
      stderr: 'deploy: there is no terminal to ask at: --yes applies the plan\n',
    })
    expect((await deployment.run([], 'n')).code).toBe(1)
    expect(deployment.cloud.changes).toEqual([])
  })

  it('generates no secret on a machine of CI', async () => {
    deployment.variables = { CI: 'true' }
    const { code, stderr } = await run('--yes')
    deployment.variables = {}
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/ADMIN_TOKEN, KEY_PEPPERS, VAULT_KEYS would be generated/),
    ])
    expect(deployment.cloud.changes).toEqual([])
  })

  it('makes the first deployment, tested, with secrets in a private file', async () => {
    const { code, stderr } = await run('--yes')
    expect([code, stderr]).toEqual([0, ''])
    expect(Object.keys(secretsFile())).toEqual(['ADMIN_TOKEN', 'KEY_PEPPERS', 'VAULT_KEYS'])
    expect(statSync(deployment.secretsFile).mode & 0o777).toBe(0o600)
    expect(deployment.cloud.cloudflare.summary()).toMatchObject({
      buckets: ['headgate-content'],
      domains: { 'gateway.example.com': 'headgate' },
      scripts: [
        { name: 'headgate-tools', serving: [{ percentage: 100 }], workersDev: false },
        { name: 'headgate', serving: [{ percentage: 100 }], crons: ['17 * * * *', '*/5 * * * *'] },
      ],
    })
    const gateway = deployment.cloud.cloudflare.scripts.get('headgate')?.versions[0]
    const values = Object.fromEntries(gateway?.bindings.map(({ name, text }) => [name, text]) ?? [])
    expect(values).toMatchObject({
      ...secretsFile(),
      UPSTASH_REDIS_REST_URL: 'https://headgate.upstash.io',
      BASE_URL: 'https://gateway.example.com',
    })
    expect(gateway?.modules).toEqual(['gateway.js'])
    const tools = deployment.cloud.cloudflare.scripts.get('headgate-tools')?.versions[0]
    expect(tools?.bindings.map(({ type }) => type).sort()).toEqual([
      'durable_object_namespace',
      'version_metadata',
    ])
    expect(deployment.cloud.gateway.calls.map(({ path }) => path)).toEqual([
      '/health',
      '/health/ready',
      '/v1/models',
      '/api/organizations',
    ])
  })

  it('has no change in a second run, as text and as one JSON document', async () => {
    deployment.cloud.requests.length = 0
    const { code, stdout } = await run('--yes')
    expect([code, stdout]).toEqual([0, expect.stringMatching(/create 0 · change 0 .*\nno change\n$/s)])
    const json = await run('--plan', '--json')
    expect([json.code, json.stderr]).toEqual([0, ''])
    const document = JSON.parse(json.stdout) as { steps: Array<{ action: string }> }
    expect(document).toMatchObject({ outcome: 'no_change', stage: 'test-stage', problems: [] })
    expect(new Set(document.steps.map(({ action }) => action))).toEqual(new Set(['same']))
    expect(deployment.cloud.changes).toEqual([])
  })

  it('rolls both scripts back when a version fails its test, before it has traffic', async () => {
    const { cloudflare, gateway } = deployment.cloud
    const before = cloudflare.summary()
    gateway.calls.length = 0
    gateway.isBroken = ({ code }) => code.includes('gateway 2')
    deployment.writeScripts('2')
    const { code, stdout, stderr } = await run('--yes')
    expect(code).toBe(1)
    expect(stderr).toContain('deploy: /api/organizations was answered 500\n')
    expect(stdout).toContain('gateway: rolled back to ')
    expect(cloudflare.summary()).toEqual(before)
    expect(gateway.calls.length).toBeGreaterThan(3)
    expect(gateway.calls.filter(({ isOverridden, percentage }) => !isOverridden || percentage > 0)).toEqual(
      [],
    )
  })

  it('writes no secret into output, files, arguments or the environment of wrangler', () => {
    expect(deployment.seenProcesses.size).toBeGreaterThan(0)
    expect(deployment.leaks(...outputs)).toEqual([])
    const leak = { code: 0, stdout: `token: ${secretsFile().ADMIN_TOKEN}`, stderr: '' }
    expect(deployment.leaks(leak)).toEqual([expect.stringMatching(/in stdout$/)])
  })

  it('makes no new keys for the credentials of an earlier deployment, also before any key of a caller', async () => {
    await sqlOf(
      postgres.url,
      "insert into providers (name, kind, base_url, sealed_credential) values ('acme', 'openai-compatible', 'https://api.example', 'v1.sealed')",
    )
    deployment.cloud.cloudflare.scripts.delete('headgate')
    rmSync(deployment.secretsFile)
    const { code, stdout } = await run('--plan')
    expect([code, stdout]).toEqual([
      1,
      expect.stringMatching(/VAULT_KEYS is not given, and the database has data/),
    ])
  })
})
