import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import pg from 'pg'
import { vi } from 'vitest'
import { freePorts } from '../../scripts/node/ports.ts'
import type { GatewayAddress } from './start-gateway.ts'
import { uniqueName } from './tenant.ts'

const ROOT = join(import.meta.dirname, '../..')

type LogLine = Record<string, unknown> & { event: string }

/** A run of `scripts/serve.ts`. */
export interface ServedNode {
  process: ChildProcess
  lines(): LogLine[]
  output(): string
  /** The line with its process ids and port. @throws with its output if it ends first */
  ready(): Promise<LogLine>
  /** @returns its exit code, or the signal that ended it */
  ended(): Promise<number | NodeJS.Signals | null>
}

const inherited = () => ({
  PATH: process.env.PATH,
  HOME: process.env.HOME,
  TMPDIR: process.env.TMPDIR,
  NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
  LD_PRELOAD: process.env.LD_PRELOAD,
  MOVED_CLOCK_SECONDS: process.env.MOVED_CLOCK_SECONDS,
})

/** New secrets for a node. */
export function nodeSecrets(): Record<string, string> {
  const ring = (id: string) => `${id}:${randomBytes(32).toString('base64')}`
  return {
    ADMIN_TOKEN: `hga_${randomBytes(32).toString('base64url')}`,
    KEY_PEPPERS: ring('p1'),
    VAULT_KEYS: ring('v1'),
  }
}

/** Starts a node with these variables alone. */
export function startServe(variables: Record<string, string>, parameters: string[] = []): ServedNode {
  return servedNode(
    spawn(process.execPath, [join(ROOT, 'scripts/serve.ts'), ...parameters], {
      cwd: ROOT,
      env: { ...inherited(), ...variables },
      stdio: ['ignore', 'pipe', 'pipe'],
    }),
  )
}

/** A process of `scripts/serve.ts` that was started. */
export function servedNode(child: ChildProcess): ServedNode {
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream?.on('data', (text: Buffer) => {
      output += text.toString()
    })
  const closed = new Promise<number | NodeJS.Signals | null>((resolve) =>
    child.once('close', (code, signal) => resolve(code ?? signal)),
  )
  const lines = () =>
    output
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line) as LogLine)
  return {
    process: child,
    lines,
    output: () => output,
    ended: () => closed,
    ready: () =>
      vi.waitFor(
        () => {
          const line = lines().find(({ event }) => event === 'ready')
          if (line !== undefined) return line
          if (child.exitCode !== null) throw new Error(`it ended: ${output}`)
          throw new Error(`not ready: ${output}`)
        },
        { timeout: 40_000, interval: 50 },
      ),
  }
}

/** Runs a script with these variables to its end. */
export function runScript(
  name: 'backup' | 'restore',
  parameters: string[],
  variables: Record<string, string>,
): Promise<{ code: number; text: string }> {
  return new Promise((resolve) => {
    const words = [join(ROOT, 'scripts', `${name}.ts`), ...parameters]
    execFile(
      process.execPath,
      words,
      { cwd: ROOT, env: { ...inherited(), ...variables } },
      (error, out, err) => resolve({ code: error === null ? 0 : Number(error.code), text: out + err }),
    )
  })
}

/** An empty database of a server. @returns its URL */
export async function createDatabase(serverUrl: string): Promise<string> {
  const name = uniqueName('served').replaceAll('-', '_')
  const client = new pg.Client(serverUrl)
  await client.connect()
  await client.query(`create database ${name}`)
  await client.end()
  const url = new URL(serverUrl)
  url.pathname = `/${name}`
  return url.href
}

export const freePort = async (): Promise<number> => (await freePorts(1))[0] ?? 0

/** As far as the helpers for tenants and models need it. */
export const addressOf = (variables: Record<string, string>, modelUpstream: string): GatewayAddress =>
  ({
    baseUrl: `http://127.0.0.1:${variables.PORT}`,
    adminToken: variables.ADMIN_TOKEN,
    standIns: { modelUpstream },
    variables,
  }) as unknown as GatewayAddress
