import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import net from 'node:net'
import { networkInterfaces, tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from '@upstash/redis'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { configureNeon, openHttp } from '../local/neon-clients.ts'
import { connectClient } from '../local/qstash-harness.ts'

const SCRIPTS = join(import.meta.dirname, '../../scripts/local')
const QSTASH_KEYS = ['--current-key', 'a', '--next-key', 'b', '--token', 'token-for-tests']

/** Each stand-in with what it needs on its command line besides a port. */
const STAND_INS: { name: string; parameters: string[] }[] = [
  { name: 'postgres', parameters: [] },
  { name: 'redis', parameters: [] },
  { name: 'qstash', parameters: QSTASH_KEYS },
]

interface Run {
  readonly child: ChildProcess
  readonly port: Promise<number>
  readonly ended: Promise<{ code: number | null; stdout: string; stderr: string }>
}

const runs: Run[] = []
let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'headgate-process-'))
})
afterEach(async () => {
  for (const { child, ended } of runs.splice(0)) {
    child.kill('SIGKILL')
    await ended
  }
  rmSync(folder, { recursive: true, force: true })
})

function start(name: string, parameters: string[]): Run {
  const child = spawn(process.execPath, [join(SCRIPTS, name, 'main.ts'), ...parameters], {
    stdio: ['pipe', 'pipe', 'pipe'],
    // A token in the environment of the developer must not change what is tested.
    env: { PATH: process.env.PATH },
  })
  let stdout = ''
  let stderr = ''
  const port = new Promise<number>((resolve, reject) => {
    child.stdout.on('data', (data: Buffer) => {
      stdout += data.toString()
      if (stdout.includes('\n'))
        resolve((JSON.parse(stdout.split('\n', 1)[0] ?? '') as { port: number }).port)
    })
    child.once('exit', () => reject(new Error(`ended before it was ready: ${stderr}`)))
  })
  port.catch(() => {})
  child.stderr.on('data', (data: Buffer) => {
    stderr += data.toString()
  })
  const ended = new Promise<{ code: number | null; stdout: string; stderr: string }>((resolve) =>
    child.once('close', (code) => resolve({ code, stdout, stderr })),
  )
  const run = { child, port, ended }
  runs.push(run)
  return run
}

/** The addresses of this machine that others could reach. */
function externalAddresses(): string[] {
  const addresses = Object.values(networkInterfaces()).flatMap((entries) => entries ?? [])
  return addresses
    .filter(({ internal, family }) => !internal && family === 'IPv4')
    .map(({ address }) => address)
}

function accepts(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = net.connect({ port, host }, () => resolve(true))
    socket.setTimeout(2_000, () => resolve(false))
    socket.on('error', () => resolve(false))
    socket.on('connect', () => socket.destroy())
  })
}

describe.each(STAND_INS)('the process of the $name stand-in', { timeout: 60_000 }, ({ name, parameters }) => {
  it('prints one line when it is ready, listens on loopback only, and ends cleanly on SIGTERM', async () => {
    const run = start(name, parameters)
    const port = await run.port
    // Without --parent the end of stdin means nothing.
    run.child.stdin?.end()
    for (const address of externalAddresses()) expect(await accepts(address, port), address).toBe(false)
    expect((await fetch(`http://127.0.0.1:${port}/health`)).status).toBe(200)
    run.child.kill('SIGTERM')
    expect(await run.ended).toEqual({ code: 0, stdout: `{"ready":true,"port":${port}}\n`, stderr: '' })
  })

  it('ends cleanly on SIGINT, also twice', async () => {
    const run = start(name, parameters)
    await run.port
    run.child.kill('SIGINT')
    run.child.kill('SIGINT')
    expect((await run.ended).code).toBe(0)
  })

  it('reports a port in use in one line', async () => {
    const server = net.createServer()
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as net.AddressInfo
    const { code, stdout, stderr } = await start(name, ['--port', String(port), ...parameters]).ended
    expect({ code, stdout, stderr }).toEqual({
      code: 1,
      stdout: '',
      stderr: `local ${name}: port ${port} is already in use\n`,
    })
    server.close()
  })

  it.each([[['--port', 'many']], [['--port', '65536']], [['--nonsense']], [['stray']]])(
    'refuses %j',
    async (wrong) => {
      const { code, stderr } = await start(name, [...parameters, ...wrong]).ended
      expect(code).toBe(2)
      expect(stderr).toMatch(new RegExp(`^local ${name}: [^\\n]+\\n$`))
    },
  )

  it('ends with its parent, if it is told to', async () => {
    const run = start(name, [...parameters, '--parent'])
    await run.port
    run.child.stdin?.end()
    expect((await run.ended).code).toBe(0)
  })

  it('ends with a parent that is gone before it is ready', async () => {
    const run = start(name, [...parameters, '--parent'])
    run.child.stdin?.end()
    expect((await run.ended).code).toBe(0)
  })

  it('refuses data that another process has', async () => {
    const data = join(folder, 'data')
    await start(name, [...parameters, '--data', data]).port
    const { code, stderr } = await start(name, [...parameters, '--data', data]).ended
    expect(code).toBe(2)
    expect(stderr).toContain('is in use by process')
  })
})

describe('killed without warning', { timeout: 60_000 }, () => {
  it('Postgres keeps what was committed', async () => {
    const parameters = ['--data', join(folder, 'postgres')]
    const { sql } = openHttp()
    const first = start('postgres', parameters)
    configureNeon(await first.port)
    await sql`create table kept (n int)`
    await sql`insert into kept values (1)`
    first.child.kill('SIGKILL')
    await first.ended
    configureNeon(await start('postgres', parameters).port)
    expect(await sql`select n from kept`).toEqual([{ n: 1 }])
  })

  it('QStash keeps every message it accepted', async () => {
    const parameters = [...QSTASH_KEYS, '--data', join(folder, 'qstash.jsonl')]
    const first = start('qstash', parameters)
    const client = connectClient(`http://127.0.0.1:${await first.port}`)
    const { messageId } = await client.publishJSON({ url: 'http://127.0.0.1:1/', body: 1, delay: '1h' })
    first.child.kill('SIGKILL')
    await first.ended
    const again = connectClient(`http://127.0.0.1:${await start('qstash', parameters).port}`)
    expect(await again.messages.get(messageId)).toMatchObject({ messageId })
  })

  it('Redis keeps what was written', async () => {
    const parameters = ['--data', join(folder, 'redis.jsonl')]
    const connect = (port: number): Redis =>
      new Redis({ url: `http://127.0.0.1:${port}`, token: 'local', enableTelemetry: false })
    const first = start('redis', parameters)
    const redis = connect(await first.port)
    await redis.set('old', 1)
    first.child.kill('SIGKILL')
    await first.ended
    expect(await connect(await start('redis', parameters).port).get('old')).toBe(1)
  })
})

describe('options of one stand-in', { timeout: 60_000 }, () => {
  it.each([
    ['postgres', ['--data', 'x', '--database-url', 'postgres://localhost/db'], 2, /exclude each other/],
    ['postgres', ['--database-url', 'http://localhost/db'], 2, /postgres:\/\/ URL/],
    ['postgres', ['--database-url', 'postgres://user:hidden-password@127.0.0.1:1/db'], 1, /ECONNREFUSED/],
    ['redis', ['--redis-url', 'localhost:6379'], 2, /rediss:\/\/ URL/],
    ['redis', ['--redis-url', 'redis://:hidden-password@127.0.0.1:1'], 1, /ECONNREFUSED/],
    ['redis', ['--redis-url', 'redis://127.0.0.1:1', '--control'], 2, /excludes/],
    ['qstash', [], 2, /--current-key and --next-key/],
    ['qstash', ['--current-key', 'a', '--next-key', ''], 2, /both signing keys/],
  ])('%s %j ends with %i', async (name, parameters, expected, message) => {
    const { code, stdout, stderr } = await start(name, parameters).ended
    expect({ code, stdout }).toEqual({ code: expected, stdout: '' })
    expect(stderr).toMatch(message)
    expect(stderr.trim().split('\n')).toHaveLength(1)
    expect(stderr).not.toContain('hidden-password')
  })
})
