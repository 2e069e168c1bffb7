import { type AddressInfo, createServer } from 'node:net'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { ManagedChild } from '../../scripts/serve/managed-child.ts'

const children: Array<ManagedChild<{ port: number }>> = []
afterEach(async () => {
  for (const child of children.splice(0)) await child.stop(0)
})

function frontDoor(port = 0): ManagedChild<{ port: number }> {
  const child = new ManagedChild<{ port: number }>({
    name: 'edge',
    log: () => {},
    settings: (last) => ({ host: '127.0.0.1', port: last?.port ?? port, gatewayPort: 1, trustedProxies: '' }),
  })
  children.push(child)
  return child
}

describe('a process of the node', () => {
  it('refuses what was asked of it when it does not start', async () => {
    const taken = createServer()
    await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve))
    const child = frontDoor((taken.address() as AddressInfo).port)
    const started = child.start()
    const asked = child.ask({ closed: null })
    await expect(started).rejects.toThrow('edge did not start')
    await expect(asked).rejects.toThrow('edge')
    await new Promise((resolve) => taken.close(resolve))
  })

  it('answers what it was asked while it started', async () => {
    const child = frontDoor()
    const started = child.start()
    expect(await child.ask({ closed: null })).toBeNull()
    await started
  })

  it('has a limit for its answers', async () => {
    const child = frontDoor()
    await child.start()
    process.kill(child.pid ?? 0, 'SIGSTOP')
    await expect(child.ask({ closed: null }, 100)).rejects.toThrow(
      'an answer of edge took longer than 100 ms',
    )
    await child.stop(100)
    expect(child.pid).toBeDefined()
    expect(() => process.kill(child.pid ?? 0, 0)).toThrow()
  })

  it('is stopped while it starts, and not started again', async () => {
    const child = frontDoor()
    const started = child.start().catch((error: Error) => error)
    await child.stop()
    expect(await started).toBeInstanceOf(Error)
    const { pid } = child
    await vi.waitFor(() => expect(() => process.kill(pid ?? 0, 0)).toThrow())
    expect(child.pid).toBe(pid)
  })
})
