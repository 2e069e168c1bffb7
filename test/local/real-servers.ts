import { execFileSync, spawn } from 'node:child_process'
import { chownSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import net from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'

/** A database server that a test has started and has to stop. */
export interface RealServer {
  /** `postgres://…` or `redis://…`, on 127.0.0.1. */
  readonly url: string
  readonly pid: number
  /** Ends the server and removes its data. Calling it twice is harmless. */
  stop(): Promise<void>
}

/** How long a server may take to start or stop, in milliseconds. */
const PATIENCE_MS = 20_000

/**
 * Looks for PostgreSQL.
 *
 * @returns the folder of its programs, or nothing if there is none or it could not be run: as root it needs the
 *   user `postgres`, since it refuses to run as root
 */
export function findRealPostgres(): string | undefined {
  const root = '/usr/lib/postgresql'
  const versions = existsSync(root)
    ? readdirSync(root).sort((left, right) => Number(right) - Number(left))
    : []
  const folders = [...versions.map((version) => join(root, version, 'bin')), ...pathFolders()]
  const folder = folders.find((candidate) => existsSync(join(candidate, 'initdb')))
  if (folder === undefined || (isRoot() && postgresUser() === undefined)) return undefined
  return folder
}

/**
 * Looks for Redis.
 *
 * @returns the path of `redis-server`, or nothing
 */
export function findRealRedis(): string | undefined {
  return pathFolders()
    .map((folder) => join(folder, 'redis-server'))
    .find((path) => existsSync(path))
}

/** Names of the real servers that this machine lacks. */
export const missingServers = (): string[] => [
  ...(findRealPostgres() === undefined ? ['PostgreSQL'] : []),
  ...(findRealRedis() === undefined ? ['Redis'] : []),
]

/** Reports on stderr which tests are skipped and why, so that a skipped suite does not look like a passed one. */
export function tellSkipped(what: string, missing: string): void {
  process.stderr.write(`SKIPPED: ${what} (no ${missing} on this machine)\n`)
}

/**
 * Starts an empty PostgreSQL in a temporary folder, on a free port, with trust authentication.
 *
 * @param more settings of the server, such as `autovacuum=off`
 * @throws if there is no PostgreSQL, or it does not start in time
 */
export const startRealPostgres = (more: readonly string[] = []): Promise<RealServer> =>
  startPostgres(more, (data) => ({
    program: 'initdb',
    parameters: ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C.UTF-8', '--no-sync'],
  }))

/**
 * Starts a replica of a PostgreSQL, which has all of its databases and takes no writes.
 *
 * @param primary URL of the other server
 * @throws if there is no PostgreSQL, or it does not start in time
 */
export const startReplica = (primary: string): Promise<RealServer> =>
  startPostgres([], (data) => ({
    program: 'pg_basebackup',
    parameters: ['-D', data, '-d', primary, '--write-recovery-conf', '--checkpoint=fast', '--no-sync'],
  }))

/** @param making the program of PostgreSQL that makes the folder of the data, and its parameters */
async function startPostgres(
  more: readonly string[],
  making: (data: string) => { program: string; parameters: string[] },
): Promise<RealServer> {
  const programs = findRealPostgres()
  if (programs === undefined) throw new Error('PostgreSQL is not installed')
  const folder = mkdtempSync(join(tmpdir(), 'headgate-postgres-'))
  const user = isRoot() ? postgresUser() : undefined
  if (user !== undefined) chownSync(folder, user.uid, user.gid)
  const identity = user === undefined ? {} : { uid: user.uid, gid: user.gid }
  const data = join(folder, 'data')
  const { program, parameters } = making(data)
  execFileSync(join(programs, program), parameters, { ...identity, cwd: folder, stdio: 'ignore' })
  const port = await findFreePort()
  const settings = [
    'fsync=off',
    'synchronous_commit=off',
    'full_page_writes=off',
    'listen_addresses=127.0.0.1',
    ...more,
  ]
  return launch({
    program: join(programs, 'postgres'),
    parameters: [
      '-D',
      data,
      '-p',
      String(port),
      '-k',
      folder,
      ...settings.flatMap((setting) => ['-c', setting]),
    ],
    identity,
    folder,
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    isReady: () => answersPostgres(port),
    // Fast shutdown: it does not wait for clients to leave.
    signal: 'SIGINT',
  })
}

/**
 * Starts an empty Redis that stores nothing, on a free port.
 *
 * @throws if there is no Redis, or it does not start in time
 */
export async function startRealRedis(): Promise<RealServer> {
  const program = findRealRedis()
  if (program === undefined) throw new Error('Redis is not installed')
  const folder = mkdtempSync(join(tmpdir(), 'headgate-redis-'))
  const port = await findFreePort()
  return launch({
    program,
    parameters: [
      '--port',
      String(port),
      '--bind',
      '127.0.0.1',
      '--save',
      '',
      '--appendonly',
      'no',
      '--dir',
      folder,
    ],
    identity: {},
    folder,
    url: `redis://127.0.0.1:${port}`,
    isReady: () => answersRedis(port),
    signal: 'SIGTERM',
  })
}

interface Launch {
  readonly program: string
  readonly parameters: string[]
  readonly identity: { uid?: number; gid?: number }
  readonly folder: string
  readonly url: string
  readonly isReady: () => Promise<boolean>
  readonly signal: NodeJS.Signals
}

async function launch({
  program,
  parameters,
  identity,
  folder,
  url,
  isReady,
  signal,
}: Launch): Promise<RealServer> {
  const child = spawn(program, parameters, { ...identity, cwd: folder, stdio: 'ignore' })
  const { pid } = child
  if (pid === undefined) throw new Error(`${program} could not be started`)
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  // A test run that is broken off must not leave servers behind.
  const endWithProcess = (): void => {
    child.kill('SIGKILL')
  }
  process.once('exit', endWithProcess)
  let stopping: Promise<void> | undefined
  const shutDown = async (): Promise<void> => {
    child.kill(signal)
    const giveUp = setTimeout(() => child.kill('SIGKILL'), PATIENCE_MS)
    await ended
    clearTimeout(giveUp)
    process.off('exit', endWithProcess)
    rmSync(folder, { recursive: true, force: true })
  }
  const stop = (): Promise<void> => {
    stopping ??= shutDown()
    return stopping
  }
  const deadline = performance.now() + PATIENCE_MS
  while (!(await isReady())) {
    if (child.exitCode === null && performance.now() < deadline) continue
    await stop()
    throw new Error(`${program} did not start`)
  }
  return { url, pid, stop }
}

/** Sends bytes and waits for the answer's first byte, at most a tenth of a second. */
function exchange(port: number, bytes: Buffer): Promise<string> {
  return new Promise((resolve) => {
    const socket = net.connect({ port, host: '127.0.0.1' }, () => socket.write(bytes))
    const finish = (answer: string): void => {
      socket.destroy()
      resolve(answer)
    }
    socket.setTimeout(100, () => finish(''))
    socket.on('data', (data) => finish(String.fromCharCode(data[0] ?? 0)))
    socket.on('error', () => setTimeout(finish, 20, ''))
    socket.on('close', () => finish(''))
  })
}

/** A server that is starting up answers the startup packet with an error (`E`), a ready one asks on (`R`). */
async function answersPostgres(port: number): Promise<boolean> {
  const parameters = Buffer.from('user\0postgres\0database\0postgres\0\0')
  const head = Buffer.alloc(8)
  head.writeInt32BE(8 + parameters.length, 0)
  head.writeInt32BE(196_608, 4)
  return (await exchange(port, Buffer.concat([head, parameters]))) === 'R'
}

async function answersRedis(port: number): Promise<boolean> {
  return (await exchange(port, Buffer.from('PING\r\n'))) === '+'
}

async function findFreePort(): Promise<number> {
  const server = net.createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as net.AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}

function pathFolders(): string[] {
  return (process.env.PATH ?? '').split(delimiter).filter((folder) => folder !== '')
}

function isRoot(): boolean {
  return process.getuid?.() === 0
}

function postgresUser(): { uid: number; gid: number } | undefined {
  const line = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .find((entry) => entry.startsWith('postgres:'))
  const [, , uid, gid] = line?.split(':') ?? []
  return uid === undefined || gid === undefined ? undefined : { uid: Number(uid), gid: Number(gid) }
}
