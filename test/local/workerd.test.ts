import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { type RunningWorkerd, startWorkerd, type WorkerdOptions } from '../../scripts/node/workerd.ts'
import { readRuntimeSettings } from '../../scripts/node/wrangler-settings.ts'

const WORKER = `
import { DurableObject } from 'cloudflare:workers'
export class Ledger extends DurableObject {
  add() {
    this.ctx.storage.sql.exec('create table if not exists n (n integer)')
    this.ctx.storage.sql.exec('insert into n values (1)')
    return this.ctx.storage.sql.exec('select count(*) as n from n').one().n
  }
}
export default {
  async fetch(request, env) {
    const { pathname } = new URL(request.url)
    if (pathname === '/add') return Response.json(await env.LEDGER.getByName('one').add())
    if (pathname === '/cached') {
      const key = new Request('http://cache.example/key')
      const held = await caches.default.match(key)
      if (held) return new Response('hit ' + (await held.text()))
      await caches.default.put(key, new Response('value', { headers: { 'cache-control': 'max-age=60' } }))
      return new Response('miss')
    }
    if (pathname === '/out') return fetch(env.OUT)
    return new Response(env.TEXT ?? 'none')
  },
}`

let folder: string
let running: RunningWorkerd[]

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'headgate-workerd-test-'))
  writeFileSync(join(folder, 'gateway.js'), WORKER)
  running = []
})
afterEach(async () => {
  await Promise.all(running.map((workerd) => workerd.stop()))
  rmSync(folder, { recursive: true, force: true })
})

async function start(options: Partial<WorkerdOptions> = {}): Promise<RunningWorkerd> {
  const workerd = await startWorkerd({
    bundleDirectory: folder,
    bindings: {},
    durableObjects: { LEDGER: 'Ledger' },
    ...readRuntimeSettings(join(import.meta.dirname, '../../wrangler.toml')),
    ...options,
  })
  running.push(workerd)
  return workerd
}

const get = async (workerd: RunningWorkerd, path: string) => (await fetch(workerd.url + path)).text()

/** Ids of the processes whose command line has a path, from proc(5). */
function processesOf(path: string): string[] {
  return readdirSync('/proc').filter((name) => {
    try {
      return /^\d+$/.test(name) && readFileSync(`/proc/${name}/cmdline`, 'utf8').includes(path)
    } catch {
      return false
    }
  })
}

describe('the built Worker under workerd', () => {
  it('gets its variables as they are', async () => {
    const text = `quotes " ' \` dollar $HOME \\ line\nend`
    expect(await get(await start({ bindings: { TEXT: text } }), '/')).toBe(text)
  })

  it('has the Cache API, and goes without on request', async () => {
    const cached = await start()
    expect(await get(cached, '/cached')).toBe('miss')
    expect(await get(cached, '/cached')).toBe('hit value')
    const uncached = await start({ cache: false })
    expect((await fetch(`${uncached.url}/cached`)).status).toBe(500)
    expect(await get(uncached, '/')).toBe('none')
  })

  it('reaches other services on loopback', async () => {
    const other = await start({ bindings: { TEXT: 'there' } })
    expect(await get(await start({ bindings: { OUT: other.url } }), '/out')).toBe('there')
  })

  it('keeps objects, port and storage over a crash and takes new variables', async () => {
    const workerd = await start({ bindings: { TEXT: 'old' } })
    const { port, pid } = workerd
    expect(await get(workerd, '/add')).toBe('1')
    await workerd.kill('SIGKILL')
    await expect(get(workerd, '/')).rejects.toThrow()
    await workerd.restart({ TEXT: 'new' })
    expect(workerd.pid).not.toBe(pid)
    expect(workerd.port).toBe(port)
    expect(await get(workerd, '/')).toBe('new')
    expect(await get(workerd, '/add')).toBe('2')
  })

  it('reports in one line why it does not start', async () => {
    const workerd = await start()
    await expect(start({ port: workerd.port })).rejects.toThrow(/^workerd did not start: .*in use/i)
    writeFileSync(join(folder, 'gateway.js'), 'export default {')
    await expect(start()).rejects.toThrow(/^workerd did not start: .*SyntaxError/)
    rmSync(join(folder, 'gateway.js'))
    await expect(start()).rejects.toThrow(/^there is no bundle in .*; run npm run build$/)
  })

  it.each([
    { when: 'begins', begun: async () => {} },
    {
      when: 'is under way',
      begun: (run: string) => vi.waitUntil(() => processesOf(run).length > 0, { interval: 1 }),
    },
  ])('runs no process after a stop while a restart $when', async ({ begun }) => {
    const run = `${folder}-run`
    const workerd = await start({ folder: run })
    await workerd.kill('SIGKILL')
    const restarted = workerd.restart().catch((error: Error) => error.message)
    await begun(run)
    await workerd.stop()
    expect([processesOf(run), existsSync(run)]).toEqual([[], false])
    expect(await restarted).toBe('workerd was stopped')
    expect([processesOf(run), existsSync(run)]).toEqual([[], false])
    await expect(workerd.restart()).rejects.toThrow('workerd was stopped')
  })

  it('writes no variable into a file', async () => {
    const secret = 'canary-of-the-workerd-test'
    const workerd = await start({ bindings: { TEXT: secret } })
    expect(await get(workerd, '/')).toBe(secret)
    const config = readFileSync(join(workerd.storageDirectory, '../config.capnp'), 'utf8')
    expect(config).toContain('fromEnvironment')
    expect(config).not.toContain(secret)
    expect(readFileSync(`/proc/${workerd.pid}/cmdline`, 'utf8')).not.toContain(secret)
  })

  it('ends when its owner is killed', async () => {
    const owner = join(folder, 'owner.ts')
    const module = join(import.meta.dirname, '../../scripts/node/workerd.ts')
    writeFileSync(
      owner,
      `import { startWorkerd } from ${JSON.stringify(module)}
       const workerd = await startWorkerd({ bundleDirectory: ${JSON.stringify(folder)}, bindings: {},
         durableObjects: { LEDGER: 'Ledger' }, compatibilityDate: '2026-10-23', flags: [] })
       console.log(workerd.url)
       setInterval(() => {}, 1000)`,
    )
    const process_ = spawn(process.execPath, [owner], { stdio: ['ignore', 'pipe', 'inherit'] })
    const url = await new Promise<string>((resolve) =>
      process_.stdout.once('data', (text) => resolve(String(text).trim())),
    )
    expect((await fetch(url)).status).toBe(200)
    process_.kill('SIGKILL')
    await vi.waitFor(() => expect(fetch(url)).rejects.toThrow(), { timeout: 5_000, interval: 50 })
  })
})
