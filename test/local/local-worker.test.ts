import { type FSWatcher, mkdirSync, mkdtempSync, rmSync, watch, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { buildWorker } from '../../scripts/build.ts'
import { type LocalWorker, runLocalWorker } from '../../scripts/local/local-worker.ts'
import type { RunningWorkerd } from '../../scripts/node/workerd.ts'

const PATIENCE = { timeout: 15_000, interval: 20 }
/** More than the time in which several changes count as one. */
const SETTLED_MS = 1000

let root: string
let worker: LocalWorker | undefined
let builds: number
let reloads: number
/** Names in `workers` whose changes were reported so far, in order. */
let changes: string[]
let watcher: FSWatcher

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  root = mkdtempSync(join(tmpdir(), 'headgate-worker-'))
  builds = 0
  reloads = 0
  changes = []
  for (const folder of ['src', 'schema', 'workers/tools']) mkdirSync(join(root, folder), { recursive: true })
  write('workers/tools/tools.ts', `export default { fetch: () => new Response('sample') }`)
  write(
    'workers/tools/wrangler.toml',
    'name = "sample"\nmain = "tools.ts"\ncompatibility_date = "2026-10-01"',
  )
  watcher = watch(join(root, 'workers'), { recursive: true }, (_, name) => changes.push(String(name)))
})
afterEach(async () => {
  vi.useRealTimers()
  watcher.close()
  await worker?.stop()
  rmSync(root, { recursive: true, force: true })
})

const write = (path: string, text: string) => writeFileSync(join(root, path), text)

async function startWorker(build: () => Promise<unknown>): Promise<void> {
  const reload = async () => {
    reloads += 1
  }
  const workerd = { reload, stop: async () => {} }
  worker = await runLocalWorker({
    root,
    build: async () => {
      builds += 1
      await build()
    },
    start: async () => workerd as RunningWorkerd,
    report: () => {},
  })
}

/** Waits until the changes made so far are reported, and lets them settle: a file system reports in order. */
async function changesSettle(): Promise<void> {
  write('workers/.last', '')
  await vi.waitFor(() => expect(changes).toContain('.last'), PATIENCE)
  await vi.advanceTimersByTimeAsync(SETTLED_MS)
}

describe('the Worker of a local system', () => {
  it('is built and started once for one change, though its build writes beside the sources', async () => {
    const configuration = join(root, 'workers/tools/wrangler.toml')
    await startWorker(() => buildWorker(join(root, 'bundle'), { configuration }))

    write('src/sample.ts', '')
    await vi.waitFor(() => expect(reloads).toBe(1), PATIENCE)
    await changesSettle()

    expect(changes.filter((name) => name.includes('.wrangler'))).not.toEqual([])
    expect({ builds, reloads }).toEqual({ builds: 2, reloads: 1 })
  })

  it('is built once more for all changes during a build', async () => {
    const second = Promise.withResolvers<void>()
    await startWorker(async () => (builds === 2 ? second.promise : undefined))
    write('workers/tools/tools.ts', '')
    await vi.waitFor(() => expect(builds).toBe(2), PATIENCE)

    for (const name of ['one', 'two', 'three']) {
      write(`workers/${name}.ts`, '')
      await vi.waitFor(() => expect(changes).toContain(`${name}.ts`), PATIENCE)
      await vi.advanceTimersByTimeAsync(SETTLED_MS)
    }
    second.resolve()
    await vi.waitFor(() => expect(reloads).toBe(2), PATIENCE)
    await changesSettle()

    expect({ builds, reloads }).toEqual({ builds: 3, reloads: 2 })
  })
})
