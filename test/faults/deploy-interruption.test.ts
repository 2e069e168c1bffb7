import { spawnSync } from 'node:child_process'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { DeployedAccount } from './support/deployed-account.ts'

/** Sends SIGINT to the wranglers of this process that are in its process group, as a terminal does. */
function interruptOwnGroup(): void {
  const { stdout } = spawnSync('ps', ['-A', '-ww', '-o', 'pid=,ppid=,pgid=,args='], { encoding: 'utf8' })
  const processes = stdout.split('\n').map((line) => line.trim().split(/\s+/))
  const group = processes.find(([id]) => id === String(process.pid))?.[2]
  expect(group).toMatch(/^\d+$/)
  for (const [id, parent, ofGroup, ...words] of processes) {
    if (parent !== String(process.pid) || !words.join(' ').includes('wrangler-dist')) continue
    if (ofGroup === group) process.kill(Number(id), 'SIGINT')
  }
}

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

  describe('whose test has failed', () => {
    /** Fails the test at 10 %. @param onRollback before the first request of the rollback is answered */
    function failTest(onRollback: () => void): void {
      const { cloud } = account.deployment
      let hasFailed = false
      cloud.gateway.isBroken = (_, percentage) => {
        hasFailed ||= percentage === 10
        return percentage === 10
      }
      cloud.onRequest = ({ method, path }) => {
        if (!hasFailed || method !== 'POST' || !path.endsWith('/headgate/deployments')) return
        cloud.onRequest = () => {}
        onRollback()
      }
    }

    async function expectRolledBack(): Promise<void> {
      const { code, stderr } = await account.deployment.run()
      expect([code, stderr]).toEqual([
        1,
        expect.stringMatching(/^deploy: \/health\/ready was answered 500\n/),
      ])
      expect(stderr).not.toContain('not rolled back')
      expect([account.serving(), account.serving('headgate-tools')]).toEqual([['1 at 100'], ['1 at 100']])
    }

    it.each([
      [502, 5_000],
      [429, 30_000],
    ] as const)('is rolled back, also if the rollback is answered %d first', async (kind, waitMs) => {
      const { cloud, clock, interruption } = account.deployment
      failTest(() => {
        interruption.abort()
        cloud.faults.push({ matches: /^POST .*\/headgate\/deployments$/, kind, times: 1 })
      })
      await expectRolledBack()
      expect(clock.waits).toContain(waitMs)
    })

    it('is rolled back, though Ctrl-C reaches every process of the terminal', async () => {
      const { cloud, clock, interruption } = account.deployment
      failTest(() => {
        interruption.abort()
        interruptOwnGroup()
      })
      await expectRolledBack()
      expect(cloud.changes.filter((change) => change.endsWith('/headgate/deployments'))).toHaveLength(3)
      expect(clock.waits).not.toContain(5_000)
    })
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
