import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from 'vitest'
import { startPostgres } from '../../scripts/local/postgres/start.ts'
import { inheritedEnvironment } from '../../scripts/node/inherited-environment.ts'
import type { RunningServer } from '../../scripts/node/loopback-server.ts'
import type { CloudDeployment } from '../harness/cloud/cloud-deployment.ts'
import { migratedDatabase } from '../harness/migrated-database.ts'
import { emptyAccount, sqlOf } from './support/cloud-account.ts'

let postgres: RunningServer
let deployment: CloudDeployment

beforeAll(async () => {
  postgres = await startPostgres({ template: await migratedDatabase() })
  deployment = await emptyAccount(postgres.url)
})
afterAll(async () => {
  await deployment.stop()
  await postgres.close()
})
afterEach(() => expect(deployment.cloud.unknown).toEqual([]))

describe('the command', () => {
  /** Runs `npm run deploy` as a process, with both scripts built, and ends it when the gateway is uploaded. */
  async function command(parameters: string[], signal?: NodeJS.Signals) {
    const script = join(import.meta.dirname, '../../scripts/run.js')
    const child = spawn(
      process.execPath,
      [script, 'deploy', '--config', deployment.settingsFile, ...parameters],
      {
        env: { ...inheritedEnvironment(), ...deployment.environment },
        stdio: ['ignore', 'pipe', 'pipe'],
      },
    )
    const output = { stdout: '', stderr: '' }
    child.stdout.on('data', (chunk) => {
      output.stdout += chunk
    })
    child.stderr.on('data', (chunk) => {
      output.stderr += chunk
    })
    deployment.cloud.onRequest = ({ method, path }) => {
      if (signal !== undefined && method === 'PUT' && path.endsWith('/scripts/headgate')) child.kill(signal)
    }
    const [code] = await once(child, 'close')
    deployment.cloud.onRequest = () => {}
    return { code: code as number, ...output }
  }
  const uploads = () =>
    readdirSync(join(deployment.folder, 'deploy/test-stage')).filter((name) => /^upload/.test(name))

  it('plans with exit code 2 and one JSON document', async () => {
    const { code, stdout, stderr } = await command(['--plan', '--json'])
    expect(code, stderr).toBe(2)
    expect(JSON.parse(stdout)).toMatchObject({ outcome: 'planned', steps: expect.any(Array) })
  })

  it('ends in order on SIGTERM: no file of secrets, no lease', async () => {
    const ended = await command(['--yes'], 'SIGTERM')
    expect([ended.code, ended.stderr]).toEqual([1, 'deploy: interrupted; run again to continue\n'])
    expect(uploads()).toEqual([])
    expect(deployment.leaks(ended)).toEqual([])
  })

  it('that is killed leaves a lease that ends, and the next run removes its file of secrets', async () => {
    const { cloud } = deployment
    cloud.cloudflare.scripts.delete('headgate')
    await command(['--yes'], 'SIGKILL')
    expect((await command(['--yes'])).stderr).toMatch(/another deployment of headgate runs/)
    await sqlOf(
      postgres.url,
      "update headgate_deployment.leases set expires_at = now() - interval '1 second'",
    )
    const last = await command(['--yes'])
    expect([last.code, last.stderr]).toEqual([0, ''])
    expect(uploads()).toEqual([])
    expect(deployment.leaks(last)).toEqual([])
    expect(cloud.cloudflare.scripts.get('headgate')?.versions.at(-1)?.code.length).toBeGreaterThan(1_000_000)
  })

  it('uploads the scripts of the build, whole', async () => {
    const bundle = inject('bundleDirectory')
    deployment.bundle = bundle
    const { code, stdout } = await deployment.run(['--plan'])
    expect([code, stdout]).toEqual([0, expect.stringMatching(/no change\n$/)])
  })
})
