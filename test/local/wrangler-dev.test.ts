import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  copyFileSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { wranglerArguments, wranglerEnvironment } from '../../scripts/local/wrangler-command.ts'
import { inheritedEnvironment } from '../../scripts/node/inherited-environment.ts'
import { freePorts } from '../../scripts/node/ports.ts'
import { endGroup } from '../../scripts/node/process-group.ts'
import { type DevFile, freePortPair } from '../harness/dev-command.ts'
import { openResponseSocket } from '../harness/response-socket.ts'

const ROOT = join(import.meta.dirname, '../..')
/** Both start on a machine that may be busy. */
const PATIENCE_MS = 60_000

/** A project folder of its own: `.dev.vars` and wrangler's state are written where the command runs. */
const folder = mkdtempSync(join(tmpdir(), 'headgate-wrangler-'))
const variablesFile = join(folder, '.dev.vars')
const processes: ChildProcess[] = []
let output = ''

function start(parameters: string[], environment: NodeJS.ProcessEnv): ChildProcess {
  const child = spawn(process.execPath, parameters, {
    cwd: folder,
    env: { ...inheritedEnvironment(), ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  processes.push(child)
  const collect = (text: Buffer): void => {
    output += text.toString()
  }
  child.stdout.on('data', collect)
  child.stderr.on('data', collect)
  return child
}

/** Waits until a check passes. @throws with all output when a process ended or time is up */
async function waitFor(check: () => unknown): Promise<void> {
  await vi.waitFor(
    async () => {
      const ended = processes.some(({ exitCode }) => exitCode !== null)
      if (ended || !(await check())) throw new Error(`not ready:\n${output}`)
    },
    { timeout: PATIENCE_MS, interval: 50 },
  )
}

const answers = (url: string) =>
  fetch(url, { signal: AbortSignal.timeout(5_000) }).then(
    ({ status }) => status === 200,
    () => false,
  )

describe.skipIf(process.platform === 'win32')('npx wrangler dev beside npm run services', () => {
  let services: ChildProcess
  let dev: DevFile

  beforeAll(async () => {
    for (const name of [
      'workers',
      'src',
      'schema',
      'public',
      'scripts',
      'node_modules',
      'tsconfig.json',
      'package.json',
    ]) {
      symlinkSync(join(ROOT, name), join(folder, name))
    }
    copyFileSync(join(ROOT, 'wrangler.toml'), join(folder, 'wrangler.toml'))
    const port = await freePortPair()
    const [inspectorPort = 0] = await freePorts(1)
    services = start([join(ROOT, 'scripts/services.ts')], { HEADGATE_FOLDER: folder, PORT: String(port) })
    // Its variables are there before its services are; a person would wait for both.
    await waitFor(() => existsSync(variablesFile))
    const scripts = ['-c', 'wrangler.toml', '-c', 'workers/tools/wrangler.toml']
    const ports = ['--port', String(port), '--inspector-port', String(inspectorPort)]
    const parameters = ['dev', ...scripts, ...ports]
    start(wranglerArguments(parameters), wranglerEnvironment(folder))
    await waitFor(() => output.includes('Ctrl-C ends everything'))
    dev = JSON.parse(readFileSync(join(folder, 'services/dev.json'), 'utf8'))
    await waitFor(() => answers(`${dev.base_url}/health`))
  }, 2 * PATIENCE_MS)
  afterAll(async () => {
    await Promise.all(processes.map(({ pid }) => pid && endGroup(pid, 10_000)))
    rmSync(folder, { recursive: true, force: true })
  })

  it('serves the reference pages, whose script the build has copied', async () => {
    for (const path of ['/docs/api', '/docs/api/redoc.js', '/openapi.json']) {
      expect([path, await answers(dev.base_url + path)]).toEqual([path, true])
    }
  })

  const call = (url: string, stream: boolean) =>
    fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${dev.keys.owner}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        model: 'scripted-chat',
        stream,
        messages: [{ role: 'user', content: 'Hello' }],
      }),
    })

  it('serves a whole answer, on both hosts', async () => {
    for (const url of [dev.base_url, dev.llm_url]) {
      const response = await call(url, false)
      expect(response.status).toBe(200)
      expect(await response.json()).toMatchObject({
        object: 'chat.completion',
        choices: [{ message: { content: expect.stringContaining('Hello') } }],
      })
    }
  })

  it('serves a stream to its end', async () => {
    const response = await call(dev.base_url, true)
    expect(response.headers.get('content-type')).toMatch(/^text\/event-stream/)
    const events = (await response.text()).split('\n\n').filter((event) => event !== '')
    expect(events.length).toBeGreaterThan(5)
    expect(events.at(-1)).toBe('data: [DONE]')
  })

  it('reaches the script of tools', async () => {
    const headers = { authorization: `Bearer ${dev.keys.owner}`, 'content-type': 'application/json' }
    const body = JSON.stringify({ model: 'scripted-chat', input: 'Hello' })
    const created = await fetch(`${dev.base_url}/v1/responses`, { method: 'POST', headers, body })
    const { conversation } = (await created.json()) as { conversation: { id: string } }
    const files = await fetch(`${dev.base_url}/v1/conversations/${conversation.id}/files`, { headers })
    expect([files.status, await files.json()]).toEqual([200, { object: 'list', data: [], has_more: false }])
  })

  it('serves responses on a WebSocket', async () => {
    const socket = await openResponseSocket({ baseUrl: dev.base_url }, dev.keys.owner ?? '')
    for (const input of ['Hello', 'Hello again']) {
      const events = await socket.create({ model: 'scripted-chat', input })
      expect(events.at(-1)).toMatchObject({ response: { status: 'completed' } })
    }
    socket.close()
  })

  it('keeps the secrets of .dev.vars from others, and removes them with the services', async () => {
    expect(statSync(variablesFile).mode & 0o777).toBe(0o600)
    const command = 'npx wrangler dev -c wrangler.toml -c workers/tools/wrangler.toml'
    expect(output).toContain(`${command} --port ${new URL(dev.base_url).port}`)
    services.kill('SIGINT')
    expect(await once(services, 'close')).toEqual([0, null])
    expect(existsSync(variablesFile)).toBe(false)
  })

  it('keeps a .dev.vars that npm run services did not write', async () => {
    writeFileSync(variablesFile, 'MINE=1\n')
    const refused = start([join(ROOT, 'scripts/services.ts')], {
      HEADGATE_FOLDER: folder,
      PORT: new URL(dev.base_url).port,
    })
    expect(await once(refused, 'close')).toEqual([1, null])
    expect(output).toContain('headgate: .dev.vars was not written by npm run services; move it away first')
    expect(readFileSync(variablesFile, 'utf8')).toBe('MINE=1\n')
  })
})
