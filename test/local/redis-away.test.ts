import { connect as connectTo, createServer, type Server, type Socket } from 'node:net'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { freePorts } from '../../scripts/node/ports.ts'
import type { RedisBackend } from '../../scripts/node/redis/backend.ts'
import { openRealBackend } from '../../scripts/node/redis/real-backend.ts'
import { findRealRedis, type RealServer, startRealRedis, tellSkipped } from './real-servers.ts'

const hasRedis = findRealRedis() !== undefined
if (!hasRedis) tellSkipped('Redis that is away', 'Redis')

describe.skipIf(!hasRedis)('Redis that is away at the start', () => {
  let redis: RealServer
  let port: number
  let backend: RedisBackend | undefined
  let relay: Server | undefined
  const sockets: Socket[] = []

  beforeAll(async () => {
    redis = await startRealRedis()
    ;[port = 0] = await freePorts(1)
  }, 60_000)
  afterEach(async () => {
    await backend?.close()
    for (const socket of sockets.splice(0)) socket.destroy()
    relay?.close()
    backend = undefined
    relay = undefined
  })
  afterAll(() => redis.stop())

  /** Lets Redis be reached at the port. */
  async function comeBack(): Promise<void> {
    relay = createServer((socket) => {
      const onward = connectTo(Number(new URL(redis.url).port), '127.0.0.1')
      sockets.push(socket, onward)
      for (const each of [socket, onward]) each.on('error', () => {})
      socket.pipe(onward).pipe(socket)
    })
    await new Promise<void>((resolve) => relay?.listen(port, '127.0.0.1', resolve))
  }

  it('fails commands until it comes, and each change is reported once', async () => {
    const report = vi.fn()
    backend = await openRealBackend(`redis://:hidden@127.0.0.1:${port}`, report)
    await expect(backend.run(['PING'])).rejects.toThrow()
    expect(report.mock.calls).toEqual([[{ away: expect.stringContaining('ECONNREFUSED') }]])
    expect(JSON.stringify(report.mock.calls)).not.toContain('hidden')
  })

  it('is used when it has come', async () => {
    const report = vi.fn()
    backend = await openRealBackend(`redis://127.0.0.1:${port}`, report)
    await comeBack()
    await vi.waitFor(async () => expect(await backend?.run(['PING'])).toBe('PONG'), { timeout: 10_000 })
    expect(report.mock.calls).toEqual([[{ away: expect.stringContaining('ECONNREFUSED') }], ['reached']])
  })

  it('is an error for a program that needs it at once', async () => {
    await expect(openRealBackend(`redis://127.0.0.1:${port}`)).rejects.toThrow('ECONNREFUSED')
  })

  it('is not waited for where it refuses the password', async () => {
    backend = await openRealBackend(redis.url)
    await backend.run(['CONFIG', 'SET', 'requirepass', 'right'])
    const url = redis.url.replace('redis://', 'redis://:hidden@')
    const error = await openRealBackend(url, () => {}).catch((reason: Error) => reason)
    await backend.run(['CONFIG', 'SET', 'requirepass', ''])
    expect(error).toMatchObject({ message: expect.stringMatching(/WRONGPASS|NOAUTH/) })
    expect(String(error)).not.toContain('hidden')
  })
})
