import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { buildWorker } from '../../scripts/build.ts'
import { type RunningWorkerd, startWorkerd } from '../../scripts/node/workerd.ts'
import { readRuntimeSettings } from '../../scripts/node/wrangler-settings.ts'

const ROUNDS = 10
const REQUESTS = 16

const folder = mkdtempSync(join(tmpdir(), 'headgate-commit-queue-'))
const logFile = join(folder, 'workerd.log')
let workerd: RunningWorkerd
beforeAll(async () => {
  const bundleDirectory = join(folder, 'bundle')
  await buildWorker(bundleDirectory, { entry: 'test/harness/commit-queue/worker.ts' })
  workerd = await startWorkerd({
    ...readRuntimeSettings(join(import.meta.dirname, '../../wrangler.toml')),
    ...{
      bundleDirectory,
      entry: 'worker.js',
      bindings: {},
      durableObjects: { LEDGER: 'Ledger' },
      cache: false,
      logFile,
    },
  })
})
afterAll(async () => {
  await workerd?.stop()
  rmSync(folder, { recursive: true, force: true })
})

async function echo(text: string): Promise<string> {
  const response = await fetch(workerd.url, { method: 'POST', body: text })
  return response.ok ? response.text() : `status ${response.status}`
}

async function expectEchoes(): Promise<void> {
  for (let round = 0; round < ROUNDS; round += 1) {
    const texts = Array.from({ length: REQUESTS }, (_, index) => `request ${round}.${index}`)
    expect(await Promise.all(texts.map(echo))).toEqual(texts)
  }
  expect(readFileSync(logFile, 'utf8')).not.toMatch(/different request|hung/)
}

describe('requests that wait for a commit of another', () => {
  it('go on in their own request', expectEchoes)

  it('do so too when the queue has been optimized', async () => {
    expect(await (await fetch(`${workerd.url}/warm-up`)).json()).toBeGreaterThan(0)
    await expectEchoes()
  })
})
