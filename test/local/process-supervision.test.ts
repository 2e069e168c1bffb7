import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Children } from '../../scripts/local/children.ts'
import { groupIsAlive } from '../../scripts/node/process-group.ts'
import { StartError } from '../../scripts/node/start-error.ts'

const CHILDREN = join(import.meta.dirname, '../../scripts/local/children.ts')

/** Ignores SIGTERM, as its child does, and prints both process ids. */
const STUBBORN = `
  process.on('SIGTERM', () => {})
  setInterval(() => {}, 1000)
  if (process.argv[1] !== 'inner') {
    const inner = require('node:child_process').spawn(process.execPath, ['-e', process.env.PROGRAM, 'inner'])
    require('node:fs').writeFileSync(process.env.FILE, process.pid + ' ' + inner.pid)
  }
`

let folder: string
let deaths: string[]
let children: Children

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'headgate-children-'))
  deaths = []
  children = new Children(join(folder, 'logs'), (message) => deaths.push(message))
})
afterEach(async () => {
  await children.stop()
  rmSync(folder, { recursive: true, force: true })
})

const run = (program: string, environment: NodeJS.ProcessEnv = {}) =>
  children.spawn({ name: 'sample', command: process.execPath, arguments: ['-e', program], environment })

const runStubborn = () => run(STUBBORN, { PROGRAM: STUBBORN, FILE: join(folder, 'pids') })

/** For what a busy machine may take long to do. */
const PATIENCE = { timeout: 10_000, interval: 50 }

const stubbornPids = () =>
  vi.waitFor(() => {
    const pids = readFileSync(join(folder, 'pids'), 'utf8').split(' ').map(Number)
    expect(pids).toHaveLength(2)
    return pids
  }, PATIENCE)

/** Whether a process runs; one that ended and that nobody waited for does not. */
function runs(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    return stat.slice(stat.lastIndexOf(')') + 2, stat.lastIndexOf(')') + 3) !== 'Z'
  } catch {
    return false
  }
}

describe.skipIf(process.platform !== 'linux')('local processes', () => {
  it('end with all their descendants, also those that ignore the request', async () => {
    const child = await runStubborn()
    const pids = await stubbornPids()
    expect(pids.map(runs)).toEqual([true, true])
    await child.stop(100)
    expect(pids.map(runs)).toEqual([false, false])
    expect(groupIsAlive(child.pid)).toBe(false)
    expect(deaths).toEqual([])
  })

  it('are reported when they end by themselves, with what they said last', async () => {
    const child = await run("console.error('starting'); throw new Error('no more room')")
    await child.exited
    await vi.waitFor(
      () => expect(deaths).toEqual(['sample ended unexpectedly: Error: no more room']),
      PATIENCE,
    )
  })

  it('are reported with the signal when they said nothing', async () => {
    const child = await run('setInterval(() => {}, 1000)')
    child.signal('SIGKILL')
    await vi.waitFor(() => expect(deaths).toEqual(['sample ended unexpectedly (SIGKILL)']), PATIENCE)
  })

  it('leave nothing of their group behind when only their leader ends', async () => {
    const child = await runStubborn()
    const [, inner = 0] = await stubbornPids()
    child.signal('SIGKILL')
    await vi.waitFor(() => expect(runs(inner)).toBe(false), PATIENCE)
  })

  it('are refused with one line when the program is not there', async () => {
    const missing = { name: 'sample', command: '/nonexistent/program', arguments: [], environment: {} }
    await expect(children.spawn(missing)).rejects.toThrow(/^sample cannot run: .*ENOENT/)
  })

  it('are not started any more after the stop', async () => {
    await children.stop()
    await expect(run('')).rejects.toThrow(StartError)
  })

  it('end when their owner is killed', async () => {
    const owner = join(folder, 'owner.ts')
    writeFileSync(
      owner,
      `import { Children } from ${JSON.stringify(CHILDREN)}
       const children = new Children(${JSON.stringify(join(folder, 'owned'))}, () => {})
       await children.spawn({ name: 'sample', command: process.execPath, arguments: ['-e', process.env.PROGRAM ?? ''],
         environment: { PROGRAM: process.env.PROGRAM, FILE: process.env.FILE } })
       setInterval(() => {}, 1000)`,
    )
    const environment = { ...process.env, PROGRAM: STUBBORN, FILE: join(folder, 'pids') }
    const process_ = spawn(process.execPath, [owner], { stdio: 'ignore', env: environment })
    const pids = await stubbornPids()
    process_.kill('SIGKILL')
    // The watchdog asks first; the stubborn ones are killed after its grace time.
    await vi.waitFor(() => expect(pids.map(runs)).toEqual([false, false]), PATIENCE)
  })
})

describe('stand-ins', () => {
  const start = (name: string, parameters: string[]) =>
    children.startStandIn({ name, port: 0, arguments: parameters })

  it('are ready on the port they tell', async () => {
    const { port } = await start('model-upstream', [])
    expect((await fetch(`http://127.0.0.1:${port}/control/stats`)).status).toBe(200)
  })

  it('tell in one line why they do not start', async () => {
    const { port } = await start('model-upstream', [])
    const second = children.startStandIn({ name: 'redis', port, arguments: [] })
    await expect(second).rejects.toThrow(/^redis did not start: [^\n]*already in use$/)
    await expect(start('redis', ['--wat'])).rejects.toThrow(/^redis did not start: [^\n]*--wat[^\n]*$/)
  })
})
