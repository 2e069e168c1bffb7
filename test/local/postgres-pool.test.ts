import { type AddressInfo, createServer, type Socket } from 'node:net'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { freePorts } from '../../scripts/node/ports.ts'
import { openRealPostgres } from '../../scripts/node/postgres/real-backend.ts'
import { findRealPostgres, type RealServer, startRealPostgres, tellSkipped } from './real-servers.ts'

const hasPostgres = findRealPostgres() !== undefined
if (!hasPostgres) tellSkipped('sessions of a pool', 'PostgreSQL')

describe.skipIf(!hasPostgres)('sessions of a pool', () => {
  let server: RealServer

  beforeAll(async () => {
    server = await startRealPostgres()
  }, 60_000)
  afterAll(() => server.stop())

  async function terminate(pid: string | null | undefined): Promise<void> {
    const client = new pg.Client(server.url)
    await client.connect()
    await client.query('select pg_terminate_backend($1::int)', [pid])
    await client.end()
  }

  it('outlive a connection that the server ends while it is in use', async () => {
    const backend = await openRealPostgres({ connectionString: server.url, max: 1 })
    const unhandled = vi.fn()
    process.prependListener('uncaughtException', unhandled)
    try {
      const session = await backend.openSession()
      const { rows } = await session.query('select pg_backend_pid()', [])
      const waiting = session.query('select pg_sleep(30)', []).catch((error: Error) => error)
      await terminate(rows[0]?.[0])
      expect(await waiting).toBeInstanceOf(Error)
      // Between two statements too, when no query gets the error.
      await session.end()
      const next = await backend.openSession()
      const idle = await next.query('select pg_backend_pid()', [])
      await terminate(idle.rows[0]?.[0])
      await vi.waitFor(
        async () => await expect(next.query('select 1', [])).rejects.toThrow(/connection|queryable/i),
      )
      await next.end()
      const last = await backend.openSession()
      expect((await last.query('select 1', [])).rows).toEqual([['1']])
      await last.end()
      expect(unhandled).not.toHaveBeenCalled()
    } finally {
      process.off('uncaughtException', unhandled)
      await backend.close()
    }
  })

  it('add no listener to a connection each time it is used', async () => {
    const backend = await openRealPostgres({ connectionString: server.url, max: 1 })
    const warned = vi.fn()
    process.on('warning', warned)
    for (let use = 0; use < 20; use += 1) await (await backend.openSession()).end()
    await new Promise((resolve) => setImmediate(resolve))
    process.off('warning', warned)
    await backend.close()
    expect(warned).not.toHaveBeenCalled()
  })

  it('are opened when they are needed: a pool needs no server that answers', async () => {
    const [port] = await freePorts(1)
    const backend = await openRealPostgres({ connectionString: `postgres://u@127.0.0.1:${port}/gate` })
    await expect(backend.openSession()).rejects.toMatchObject({ code: 'ECONNREFUSED' })
    await backend.close()
  })
})

describe('a server that takes connections and does not answer', () => {
  afterEach(() => void vi.useRealTimers())

  it('is given up after ten seconds', async () => {
    const sockets: Socket[] = []
    const server = createServer((socket) => void sockets.push(socket))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const backend = await openRealPostgres({ connectionString: `postgres://u:hidden@127.0.0.1:${port}/gate` })
    const settled = vi.fn()
    const opening = backend.openSession().catch((error: Error) => error)
    void opening.then(settled)
    await vi.advanceTimersByTimeAsync(9_999)
    expect(settled).not.toHaveBeenCalled()
    await vi.advanceTimersByTimeAsync(1)
    const error = await opening
    expect(error).toMatchObject({ message: expect.stringMatching(/timeout|terminated/i) })
    expect(String(error)).not.toContain('hidden')
    for (const socket of sockets) socket.destroy()
    server.close()
    await backend.close()
  })
})
