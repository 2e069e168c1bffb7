import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { buildBundle } from '../harness/bundle.ts'
import { freePort, servedNode } from '../harness/serve-node.ts'

const ROOT = join(import.meta.dirname, '../..')

let bundle: Awaited<ReturnType<typeof buildBundle>>
beforeAll(async () => {
  bundle = await buildBundle()
}, 60_000)
afterAll(() => bundle.remove())

const ASKED: ReadonlyArray<[string, (npm: number) => void]> = [
  // It goes to npm's shell alone: without `exec` in package.json the shell ends, and what it started goes on.
  ['npm is asked to stop', (npm) => process.kill(npm, 'SIGTERM')],
  // The node gets it twice: from the terminal, and from npm.
  ['Ctrl-C is pressed', (npm) => process.kill(-npm, 'SIGINT')],
]

it.each(ASKED)('npm run serve stops in order when %s', { timeout: 60_000 }, async (_, ask) => {
  const folder = mkdtempSync(join(tmpdir(), 'hg-npm-'))
  const child = spawn('npm', ['run', 'serve', '--', '--tools'], {
    cwd: ROOT,
    env: {
      PATH: process.env.PATH,
      HOME: process.env.HOME,
      DATA_DIR: folder,
      TOOLS_PORT: String(await freePort()),
      BUNDLE_DIR: bundle.directory,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  try {
    const tools = servedNode(child)
    await tools.ready()
    ask(child.pid as number)
    await tools.ended()
    expect(tools.lines().map(({ event }) => event)).toEqual(['ready', 'stopping', 'stopped'])
  } finally {
    // The processes that a failure leaves.
    try {
      process.kill(-(child.pid as number), 'SIGKILL')
    } catch {}
    rmSync(folder, { recursive: true, force: true })
  }
})
