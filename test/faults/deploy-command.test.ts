import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, inject, it, vi } from 'vitest'
import { startPostgres } from '../../scripts/local/postgres/start.ts'
import { inheritedEnvironment } from '../../scripts/node/inherited-environment.ts'
import type { RunningServer } from '../../scripts/node/loopback-server.ts'
import type { SeenRequest } from '../harness/cloud/cloud.ts'
import type { CloudDeployment } from '../harness/cloud/cloud-deployment.ts'
import { migratedDatabase } from '../harness/migrated-database.ts'
import { emptyAccount, sqlOf } from './support/cloud-account.ts'

let postgres: RunningServer
let deployment: CloudDeployment

beforeAll(async () => {
  postgres = await startPostgres({ template: await migratedDatabase() })
  deployment = await emptyAccount(postgres.url)
  deployment.cloud.onRequest = () => {}
})
afterAll(async () => {
  await deployment.stop()
  await postgres.close()
})
afterEach(() => expect(deployment.cloud.unknown).toEqual([]))

describe('the command', () => {
  /** Runs `npm run deploy` as a process, with both scripts built. @param onRequest called before each of its requests is answered */
  async function command(
    parameters: string[],
    onRequest?: (request: SeenRequest, child: ChildProcess) => void | Promise<void>,
    output = { stdout: '', stderr: '' },
  ) {
    const script = join(import.meta.dirname, '../../scripts/run.js')
    const child = spawn(
      process.execPath,
      [script, 'deploy', '--config', deployment.settingsFile, ...parameters],
      {
        env: { ...inheritedEnvironment(), ...deployment.environment },
        stdio: ['ignore', 'pipe', 'pipe'],
      },
    )
    child.stdout.on('data', (chunk) => {
      output.stdout += chunk
    })
    child.stderr.on('data', (chunk) => {
      output.stderr += chunk
    })
    if (onRequest !== undefined) deployment.cloud.onRequest = (request) => onRequest(request, child)
    const [code] = await once(child, 'close')
    if (onRequest !== undefined) deployment.cloud.onRequest = () => {}
    return { code: code as number, ...output }
  }
  /** Ends a process when it uploads the gateway. */
  const atUpload =
    (signal: NodeJS.Signals) =>
    ({ method, path }: SeenRequest, child: ChildProcess): void => {
      if (method === 'PUT' && path.endsWith('/scripts/headgate')) child.kill(signal)
    }
  const leftFiles = () =>
    readdirSync(join(deployment.folder, 'deploy/test-stage')).filter((name) => /^(upload|run)-/.test(name))

  it('plans with exit code 2 and one JSON document', async () => {
    const { code, stdout, stderr } = await command(['--plan', '--json'])
    expect(code, stderr).toBe(2)
    expect(JSON.parse(stdout)).toMatchObject({ outcome: 'planned', steps: expect.any(Array) })
  })

  it('ends in order on SIGTERM: no file of secrets or of the build, no lease', async () => {
    const ended = await command(['--yes'], atUpload('SIGTERM'))
    expect([ended.code, ended.stderr]).toEqual([1, 'deploy: interrupted; run again to continue\n'])
    expect(leftFiles()).toEqual([])
    expect(deployment.leaks(ended)).toEqual([])
  })

  it('that is killed leaves a lease that ends, and the next run removes its files', async () => {
    const { cloud } = deployment
    cloud.cloudflare.scripts.delete('headgate')
    await command(['--yes'], atUpload('SIGKILL'))
    expect(leftFiles()).not.toEqual([])
    expect((await command(['--yes'])).stderr).toMatch(/another deployment of headgate runs/)
    await sqlOf(
      postgres.url,
      "update headgate_deployment.leases set expires_at = now() - interval '1 second'",
    )
    const last = await command(['--yes'])
    expect([last.code, last.stderr]).toEqual([0, ''])
    expect(leftFiles()).toEqual([])
    expect(deployment.leaks(last)).toEqual([])
    expect(cloud.cloudflare.scripts.get('headgate')?.versions.at(-1)?.code.length).toBeGreaterThan(1_000_000)
  })

  it('is not disturbed by another one of the same checkout, which builds too', async () => {
    deployment.writeSettings({
      gateway: { hosts: ['gateway.example.com'], variables: { LLM_HOST: 'llm.example.com' } },
    })
    // Fails the test at 0 %.
    deployment.variables = { ADMIN_TOKEN: 'hga_another-one-0123456789' }
    const { cloudflare } = deployment.cloud
    const before = cloudflare.summary()
    const shown = { stdout: '', stderr: '' }
    let other: ReturnType<typeof command> | undefined
    const ended = await command(['--yes'], async ({ method, path }) => {
      if (method !== 'POST' || !path.endsWith('/headgate/versions')) return
      other = command(['--plan'], undefined, shown)
      await vi.waitUntil(() => shown.stdout.includes('building both scripts'), { timeout: 60_000 })
    })
    expect(await other).toMatchObject({ code: 2, stderr: '' })
    expect([ended.code, ended.stdout]).toEqual([1, expect.stringContaining('gateway: rolled back to')])
    expect(cloudflare.summary()).toEqual(before)
    const [last, first] = [...(cloudflare.scripts.get('headgate')?.versions ?? [])].reverse()
    expect(last?.code).toBe(first?.code)
    expect(leftFiles()).toEqual([])
    deployment.variables = {}
    deployment.writeSettings()
  })

  it('uploads the scripts of the build, whole', async () => {
    const bundle = inject('bundleDirectory')
    deployment.bundle = bundle
    const { code, stdout } = await deployment.run(['--plan'])
    expect([code, stdout]).toEqual([0, expect.stringMatching(/no change\n$/)])
  })
})
