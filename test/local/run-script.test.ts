import { type ChildProcess, spawn } from 'node:child_process'
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'

const ROOT = join(import.meta.dirname, '../..')
const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
  scripts: Record<string, string>
}

/** What makes a Node.js of any version say that it is an older one. */
const OLD = `data:text/javascript,Object.defineProperty(process.versions, 'node', { value: '22.23.2' })`

let folder: string
let children: ChildProcess[]

/** A project with run.js, and a Node.js in `node_modules` that stands for the pinned one. */
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'headgate-run-'))
  children = []
  for (const path of ['scripts', `node_modules/${pinnedName()}/bin`])
    mkdirSync(join(folder, path), { recursive: true })
  for (const file of ['package.json', 'scripts/run.js']) copyFileSync(join(ROOT, file), join(folder, file))
  symlinkSync(process.execPath, join(folder, `node_modules/${pinnedName()}/bin/node`))
})
afterEach(() => {
  for (const child of children) child.kill('SIGKILL')
  rmSync(folder, { recursive: true, force: true })
})

const pinnedName = () =>
  `node-${process.platform === 'darwin' && process.arch === 'arm64' ? 'bin-' : ''}${process.platform}-${process.arch}`

function writeScript(lines: string): void {
  writeFileSync(join(folder, 'scripts/sample.ts'), `const text: string = 'sample'\n${lines}`)
}

interface Run {
  process: ChildProcess
  output(): string
  ended: Promise<number | NodeJS.Signals | null>
}

function run(command: string[], environment: NodeJS.ProcessEnv = {}): Run {
  const child = spawn(process.execPath, command, {
    cwd: folder,
    env: { PATH: process.env.PATH, ...environment },
  })
  children.push(child)
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (bytes) => (output += bytes))
  const ended = new Promise<number | NodeJS.Signals | null>((resolve) =>
    child.once('close', (code, signal) => resolve(code ?? signal)),
  )
  return { process: child, output: () => output, ended }
}

const runOld = (...parameters: string[]) => run(['--import', OLD, 'scripts/run.js', ...parameters])

describe.skipIf(process.platform === 'win32')('node scripts/run.js', () => {
  it.each([
    ['in its own process', []],
    ['on the pinned Node.js if its own is too old', ['--import', OLD]],
  ])('runs a script as the main module %s, with its parameters and exit code', async (_, options) => {
    writeScript('console.log(text, import.meta.main, process.argv.slice(2).join())\nprocess.exitCode = 3')

    const sample = run([...options, 'scripts/run.js', 'sample', '--all', 'x'])

    expect(await sample.ended).toBe(3)
    expect(sample.output()).toBe('sample true --all,x\n')
  })

  it('says what to do if no Node.js is there that reads TypeScript', async () => {
    writeScript('')
    rmSync(join(folder, 'node_modules'), { recursive: true })

    const sample = runOld('sample')

    expect(await sample.ended).toBe(1)
    expect(sample.output()).toBe(
      'headgate: this is Node.js 22.23.2; run npm ci, which installs a newer one, or use 24.2 or newer\n',
    )
  })

  it('names a script that is not there', async () => {
    const sample = runOld('missing')

    expect(await sample.ended).toBe(1)
    expect(sample.output()).toBe('headgate: there is no scripts/missing.ts\n')
  })

  it.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)('passes %s on', async (signal) => {
    writeScript(`
      process.on('${signal}', () => process.exit(7))
      setInterval(() => {}, 1000)
      console.log('ready')
    `)
    const sample = runOld('sample')
    await vi.waitFor(() => expect(sample.output()).toBe('ready\n'), { timeout: 10_000 })

    sample.process.kill(signal)

    expect(await sample.ended).toBe(7)
  })

  it('is where the scripts of package.json begin', () => {
    const direct = Object.entries(scripts).filter(([, command]) =>
      /\bnode scripts\/(?!run\.js )/.test(command),
    )

    expect(direct).toEqual([])
  })
})

describe.skipIf(process.platform !== 'linux')('a script that npm runs through a shell and run.js', () => {
  it('learns that npm was killed', async () => {
    writeScript(`
      import { watchLauncher } from '${join(ROOT, 'scripts/local/launcher-watch.ts')}'
      watchLauncher(() => process.exit())
      setTimeout(() => console.log('too late'), 10_000)
      console.log('ready')
    `)
    const npm = `
      const command = "${process.execPath} --import \\"$OLD\\" scripts/run.js sample; :"
      const env = { ...process.env, npm_lifecycle_event: 'sample' }
      require('node:child_process').spawn('sh', ['-c', command], { env, stdio: 'inherit' })
    `
    const launcher = run(['-e', npm], { OLD })
    await vi.waitFor(() => expect(launcher.output()).toContain('ready'), { timeout: 10_000 })

    launcher.process.kill('SIGKILL')

    // Its output ends with the last process that has it.
    expect(await launcher.ended).toBe('SIGKILL')
    expect(launcher.output()).toBe('ready\n')
  })
})
