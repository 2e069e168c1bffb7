import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, inject, it } from 'vitest'
import { freePort, servedNode } from '../harness/serve-node.ts'

const ROOT = join(import.meta.dirname, '../..')

// npm sends a signal to its shell alone: without `exec` in package.json the shell ends, and what it started goes on.
it('npm run serve stops in order when npm is asked to stop', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'hg-npm-'))
  const child = spawn('npm', ['run', 'serve', '--', '--tools'], {
    cwd: ROOT,
    env: {
      PATH: process.env.PATH,
      HOME: process.env.HOME,
      DATA_DIR: folder,
      TOOLS_PORT: String(await freePort()),
      BUNDLE_DIR: inject('bundleDirectory'),
    },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  try {
    const tools = servedNode(child)
    await tools.ready()
    child.kill('SIGTERM')
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
