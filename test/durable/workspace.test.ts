import { runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { workspaceClient } from '../../src/responses/tools/workspace/workspace-client.ts'
import { CallResults } from '../../src/workspace/call-results.ts'
import type { WorkspaceOperation, WorkspaceOperations } from '../../src/workspace/contract.ts'
import { RESULT_MEMORY_MS, WORKSPACE_LIFETIME_MS } from '../../src/workspace/limits.ts'
import { Workspace } from '../../src/workspace/workspace.ts'
import { WorkspaceObject } from '../../workers/tools/workspace.ts'

const newStub = () => env.WORKSPACES.getByName(crypto.randomUUID())
type Stub = ReturnType<typeof newStub>

/** A request as the gateway sends it. */
async function call<Name extends WorkspaceOperation>(
  stub: Stub,
  name: Name,
  request: WorkspaceOperations[Name]['request'],
) {
  const body = JSON.stringify(request)
  const response = await stub.fetch(`https://tools/workspaces/x/${name}`, { method: 'POST', body })
  return { status: response.status, body: (await response.json()) as Record<string, unknown> }
}

const write = (stub: Stub, callId = 'w') => call(stub, 'write', { callId, path: 'a', content: 'x' })
const list = (stub: Stub) => call(stub, 'list', { path: '.', recursive: true })
async function downloadStatus(stub: Stub): Promise<number> {
  const body = JSON.stringify({ path: '/workspace/a' })
  const response = await stub.fetch('https://tools/workspaces/x/download', { method: 'POST', body })
  await response.body?.cancel()
  return response.status
}
const exec = (command: string) => ({
  ...{ callId: 'c', commands: [command], timeoutMs: 10_000, outputBytes: 1_000 },
  egress: { allow: [], deny: [] },
})
/** A member of an object, with its methods bound to it. */
function bound<Target extends object>(target: Target, member: string | symbol): unknown {
  const value: unknown = Reflect.get(target, member, target)
  return typeof value === 'function' ? value.bind(target) : value
}
const noNetwork = () => {
  throw new Error('no network')
}

/** The clock of the objects; timers go on. */
const setClock = (now: number) => vi.spyOn(Date, 'now').mockReturnValue(now)
afterEach(() => vi.restoreAllMocks())

const alarmOf = (stub: Stub) =>
  runInDurableObject(stub, async (_, { storage }) => (await storage.getAlarm()) ?? Infinity)
const countsOf = (stub: Stub) =>
  runInDurableObject(stub, (_, { storage }) => ({
    calls: storage.sql.exec('SELECT count(*) AS n FROM calls').one().n,
    results: storage.sql.exec('SELECT count(DISTINCT call) AS n FROM results').one().n,
  }))

/** The first command of an isolate loads the shell, which takes its time on a busy machine. */
const PATIENCE = { timeout: 10_000 }

describe('a workspace', () => {
  it('stores nothing until it has a file', async () => {
    const stub = newStub()
    expect(await list(stub)).toEqual({ status: 200, body: { files: [], more: false } })
    expect(await downloadStatus(stub)).toBe(404)
    await runInDurableObject(stub, async (_, { storage }) => {
      expect(storage.sql.exec("SELECT name FROM sqlite_master WHERE name = 'entries'").toArray()).toEqual([])
      expect(await storage.getAlarm()).toBeNull()
    })
  })

  it('deletes itself when it was not used for its lifetime, which each use renews', async () => {
    const stub = newStub()
    await write(stub)
    const begun = Date.now()
    setClock(begun + RESULT_MEMORY_MS + 1_000)
    expect(await runDurableObjectAlarm(stub)).toBe(true)
    expect(Math.abs((await alarmOf(stub)) - begun - WORKSPACE_LIFETIME_MS)).toBeLessThan(60_000)
    setClock(begun + WORKSPACE_LIFETIME_MS / 2)
    expect((await list(stub)).body.files).toHaveLength(1)
    setClock(begun + WORKSPACE_LIFETIME_MS + 60_000)
    expect(await runDurableObjectAlarm(stub)).toBe(true)
    expect(await downloadStatus(stub)).toBe(200)
    setClock(begun + 2 * WORKSPACE_LIFETIME_MS + 60_000)
    expect(await runDurableObjectAlarm(stub)).toBe(true)
    expect((await list(stub)).body).toEqual({ files: [], more: false })
  })

  it('forgets the results of calls after their time, without a further call', async () => {
    const stub = newStub()
    const begun = Date.now()
    await call(stub, 'exec', exec('echo secret > a; cat a'))
    expect(await alarmOf(stub)).toBeLessThan(begun + RESULT_MEMORY_MS + 60_000)
    setClock(begun + RESULT_MEMORY_MS + 10_000)
    expect(await runDurableObjectAlarm(stub)).toBe(true)
    expect(await countsOf(stub)).toEqual({ calls: 0, results: 0 })
    expect(await downloadStatus(stub)).toBe(200)
  })

  it('keeps large results within a limit, and does not repeat a call whose result it dropped', async () => {
    await runInDurableObject(newStub(), async (_, { storage }) => {
      let now = 0
      const calls = new CallResults(
        storage.sql,
        async () => {},
        () => now++,
      )
      const large = 'x'.repeat(5_000_000)
      for (const id of ['1', '2', '3', '4', '5']) await calls.once(id, async () => large)
      const { length } = storage.sql.exec('SELECT sum(length(text)) AS length FROM results').one()
      expect(length).toBeLessThanOrEqual(64 * 256 * 1024)
      const again = () => Promise.reject(new Error('it ran twice'))
      expect(await calls.once('5', again)).toBe(large)
      await expect(calls.once('1', again)).rejects.toThrow(/interrupted/)
    })
  })

  it('is empty after its removal, also for calls whose results it remembered', async () => {
    const stub = newStub()
    expect((await write(stub)).body).toMatchObject({ created: true })
    expect(await call(stub, 'remove', {})).toEqual({ status: 200, body: { removed: true } })
    expect((await list(stub)).body).toEqual({ files: [], more: false })
    expect((await write(stub)).body).toMatchObject({ created: true })
  })

  it('that is removed while a command runs fails the command, and does not run it again', async () => {
    const stub = newStub()
    const running = call(stub, 'exec', exec('echo x > a; sleep 2; echo x > b'))
    await expect.poll(() => downloadStatus(stub), PATIENCE).toBe(200)
    await call(stub, 'remove', {})
    expect((await running).body).toMatchObject({ error: { code: 'interrupted' } })
    expect((await list(stub)).body).toEqual({ files: [], more: false })
  })

  it('does not repeat a call in whose middle its object ended', async () => {
    const stub = newStub()
    await runInDurableObject(stub, async (_, { storage }) => {
      const before = new Workspace(storage, noNetwork)
      const running = before.run('exec', exec('echo x >> log; sleep 0.5'))
      await expect.poll(() => before.download('/workspace/log'), PATIENCE).not.toBeNull()
      const after = new Workspace(storage, noNetwork)
      await expect(after.run('exec', exec('echo x >> log; sleep 0.5'))).rejects.toThrow(/interrupted/)
      await running
      expect(new TextDecoder().decode((await after.download('/workspace/log')) ?? undefined)).toBe('x\n')
    })
  })

  it.each(['exec', 'write', 'patch', 'read', 'list', 'search'] as const)(
    'has the record of a call on disk before it begins, and does not repeat one in whose middle its object ended: %s',
    async (name) => {
      const patch = '*** Begin Patch\n*** Update File: a\n@@\n-x\n+y\n*** End Patch'
      const requests = {
        exec: exec('echo y > a'),
        write: { callId: 'c', path: 'a', content: 'y' },
        patch: { callId: 'c', patch },
        read: { callId: 'c', path: 'a', offset: 1, limit: 1 },
        list: { callId: 'c', path: '.', recursive: true },
        search: { callId: 'c', pattern: 'x', path: '.', glob: null, ignoreCase: false },
      }
      const stub = newStub()
      await call(stub, 'write', { callId: 'before', path: 'a', content: 'x\n' })
      await runInDurableObject(stub, async (_, { storage }) => {
        const states: unknown[] = []
        // The object ends as soon as the record is on disk: what it would do next never happens.
        const ending = new Proxy(storage, {
          get: (target, member) => {
            if (member !== 'sync') return bound(target, member)
            return async () => {
              await target.sync()
              const begun = target.sql.exec("SELECT count(*) AS n FROM calls WHERE id = 'c'").one().n
              const content = await new Workspace(storage, noNetwork).download('/workspace/a')
              states.push([begun, new TextDecoder().decode(content ?? undefined)])
              return new Promise<never>(() => {})
            }
          },
        })
        void new Workspace(ending, noNetwork).run(name, requests[name] as never)
        await expect.poll(() => states).toEqual([[1, 'x\n']])
        const after = new Workspace(storage, noNetwork)
        await expect(after.run(name, requests[name] as never)).rejects.toMatchObject({ code: 'interrupted' })
        expect(await after.download('/workspace/a')).toEqual(new TextEncoder().encode('x\n'))
      })
    },
  )

  it('runs a call that only reads again when its answer was lost, and stores no result of it', async () => {
    const stub = newStub()
    await write(stub)
    const read = () => call(stub, 'read', { callId: 'r', path: 'a', offset: 1, limit: 9 })
    const missing = () => call(stub, 'read', { callId: 'm', path: 'b', offset: 1, limit: 9 })
    expect([await read(), await read()].map(({ status }) => status)).toEqual([200, 200])
    expect([await missing(), await missing()].map(({ status }) => status)).toEqual([404, 404])
    expect(await countsOf(stub)).toEqual({ calls: 1, results: 1 })
  })

  it('remembers the results of the last calls only', async () => {
    const stub = newStub()
    for (let index = 0; index < 40; index++) await write(stub, `w${index}`)
    expect(await countsOf(stub)).toEqual({ calls: 33, results: 33 })
    expect((await write(stub, 'w39')).body).toMatchObject({ created: false })
  })

  it('sends the requests of commands through the public network of a self-hosted runtime', async () => {
    const sent: string[] = []
    const PUBLIC_WEB = {
      fetch: async (url: string) => {
        sent.push(url)
        return new Response('from the public network')
      },
    } as unknown as Fetcher
    const request = { ...exec('curl -s https://example.com/x'), egress: { allow: ['example.com'], deny: [] } }
    const output = await runInDurableObject(newStub(), async (_, state) => {
      const object = new WorkspaceObject(state, { PUBLIC_WEB })
      const body = JSON.stringify(request)
      const response = await object.fetch(
        new Request('https://tools/workspaces/x/exec', { method: 'POST', body }),
      )
      return response.json()
    })
    expect(output).toMatchObject({ output: [{ stdout: 'from the public network' }] })
    expect(sent).toEqual(['https://example.com/x'])
  })

  it('lets other workspaces have a turn before each command, also where none works on files', async () => {
    await runInDurableObject(newStub(), async (_, { storage }) => {
      let [turns, isOver] = [0, false]
      const others = async () => {
        for (; !isOver; turns++) await scheduler.wait(0)
      }
      const counting = others()
      const workspace = new Workspace(storage, noNetwork)
      await workspace.run('exec', exec('for i in $(seq 30); do echo x | md5sum; done'))
      isOver = true
      await counting
      expect(turns).toBeGreaterThanOrEqual(60)
    })
  })

  it('has few calls waiting, and refuses more', async () => {
    const stub = newStub()
    const calls = Array.from({ length: 12 }, (_, index) =>
      call(stub, 'exec', { ...exec('sleep 0.05'), callId: `c${index}` }),
    )
    const statuses = (await Promise.all(calls)).map(({ status }) => status)
    expect(statuses.filter((status) => status === 200).length).toBe(8)
    expect(statuses.filter((status) => status === 429).length).toBe(4)
  })
})

describe('a call that is reported as failed', () => {
  const owner = { organizationId: 'org_1', userId: 'user_1' }
  const isAbort = (url: string) => url.endsWith('/abort')
  /** The gateway's client of a workspace. @param loses whether a request does not arrive. */
  function clientOf(stub: Stub, loses: (url: string) => boolean = () => false) {
    const tools = {
      fetch: async (url: string, init: RequestInit) => {
        if (loses(url)) throw new Error('lost')
        return stub.fetch(url, init as never) as never
      },
    }
    return workspaceClient(tools, async () => {})(owner, 'conv_1')
  }
  const writing = { callId: 'w', path: 'written', content: 'x' }
  /** The list waits for every call before it. */
  const pathsOf = async (stub: Stub) =>
    ((await list(stub)).body.files as Array<{ path: string }>).map(({ path }) => path)
  const begun = (stub: Stub) => expect.poll(() => downloadStatus(stub)).toBe(200)

  it('because its caller has left stops, and so does one that waits', async () => {
    const stub = newStub()
    const client = clientOf(stub)
    const leaving = new AbortController()
    const options = { signal: leaving.signal, timeLimit: 20_000 }
    const running = client.run('exec', exec('echo x > a; sleep 8; echo x > b'), options)
    const waiting = client.run('write', writing, options)
    await begun(stub)
    leaving.abort()
    await expect(running).rejects.toThrow()
    await expect(waiting).rejects.toThrow()
    const before = Date.now()
    expect(await pathsOf(stub)).toEqual(['/workspace/a'])
    expect(Date.now() - before).toBeLessThan(5_000)
  })

  it('because its time is over stops', async () => {
    const stub = newStub()
    const running = clientOf(stub).run('exec', exec('echo x > a; sleep 8; echo x > b'), { timeLimit: 300 })
    await expect(running).rejects.toThrow('The tool is not available now.')
    const before = Date.now()
    expect(await pathsOf(stub)).toEqual(['/workspace/a'])
    expect(Date.now() - before).toBeLessThan(5_000)
  })

  it('because its time is over does not begin later, also if nothing tells the workspace', async () => {
    const stub = newStub()
    const client = clientOf(stub, isAbort)
    const running = client.run('exec', exec('echo x > a; sleep 1; echo x > b'), { timeLimit: 10_000 })
    await begun(stub)
    await expect(client.run('write', writing, { timeLimit: 100 })).rejects.toThrow('not available now')
    await running
    expect(await pathsOf(stub)).toEqual(['/workspace/a', '/workspace/b'])
    // Nothing was recorded: the call may be repeated.
    expect(await client.run('write', writing, { timeLimit: 10_000 })).toMatchObject({ created: true })
  })

  it('because its answer was lost has its result for the repetition', async () => {
    const stub = newStub()
    let answers = 0
    const tools = {
      fetch: async (url: string, init: RequestInit) => {
        const response = await stub.fetch(url, init as never)
        if (answers++ > 0) return response as never
        await response.body?.cancel()
        throw new Error('lost')
      },
    }
    const client = workspaceClient(tools, async () => {})(owner, 'conv_1')
    await client.run('exec', exec('echo x >> a'), { timeLimit: 10_000 })
    expect((await call(stub, 'read', { callId: 'r', path: 'a', offset: 1, limit: 9 })).body).toMatchObject({
      totalLines: 1,
    })
  })

  it('because its workspace is removed does not begin in the empty one', async () => {
    const stub = newStub()
    const running = call(stub, 'exec', exec('echo x > a; sleep 8'))
    await begun(stub)
    const waiting = call(stub, 'write', writing)
    await list(newStub())
    await call(stub, 'remove', {})
    expect((await running).body).toMatchObject({ error: { code: 'interrupted' } })
    expect((await waiting).body).toMatchObject({ error: { code: 'interrupted' } })
    expect(await pathsOf(stub)).toEqual([])
  })
})
