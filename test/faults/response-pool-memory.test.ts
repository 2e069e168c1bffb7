import { setTimeout } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, inject, it, vi } from 'vitest'
import { createBusyTenant } from '../harness/contention.ts'
import { openStream } from '../harness/open-stream.ts'
import { type StartedGateway, startGateway } from '../harness/start-gateway.ts'
import { bearer } from '../harness/tenant.ts'
import { ResidentMemory, TELLS_MEMORY } from './support/resident-memory.ts'
import { expectWholeStream, replay, responseIdIn } from './support/response-readers.ts'

const MEGABYTE = 1024 * 1024
/** Most responses that an object generates at a time. */
const LIVE = 64
/** About 250 KB of events for each, in two minutes. */
const INPUT = 'script:long-stream tokens=1200 delay=100'
/**
 * The whole process: Worker, objects, sockets, SQLite. Measured: 231 MB, and 176 MB where each event had a row. Objects keep at
 * most 16 MB each of events for which only commits have rows.
 */
const MOST_ABOVE_IDLE = 320 * MEGABYTE
const LIMIT_MS = 240_000

let gateway: StartedGateway
beforeAll(async () => {
  gateway = await startGateway({ bundleDirectory: inject('bundleDirectory') })
}, 60_000)
afterAll(() => gateway?.stop())

describe.skipIf(!TELLS_MEMORY)('64 live responses whose readers do not read', () => {
  it('take bounded memory, and lose nothing', { timeout: 2 * LIMIT_MS }, async () => {
    const tenant = await createBusyTenant(gateway, 1_000_000_000_000)
    const request = { model: 'scripted-chat', input: INPUT, stream: true, max_output_tokens: 10_000 }
    const open = async () => {
      const body = JSON.stringify(request)
      const stream = await openStream(`${gateway.baseUrl}/v1/responses`, bearer(tenant.key), body)
      await vi.waitFor(() => expect(responseIdIn(stream.text())).not.toBeNull(), { timeout: 30_000 })
      stream.pause()
      return stream
    }
    const warm = await open()
    warm.leave()
    await setTimeout(1_000)
    const memory = new ResidentMemory(gateway.pids.workerd)
    const before = memory.now()
    const { peak, result: ids } = await memory.peakOf(async () => {
      const streams = await Promise.all(Array.from({ length: LIVE }, open))
      const found = streams.map((stream) => responseIdIn(stream.text()) ?? '')
      const url = (id: string) => `${gateway.baseUrl}/v1/responses/${id}`
      const statusOf = async (id: string) => {
        const response = await fetch(url(id), { headers: bearer(tenant.key) })
        return ((await response.json()) as { status: string }).status
      }
      for (const id of found) {
        await vi.waitFor(async () => expect(await statusOf(id)).toBe('completed'), {
          timeout: LIMIT_MS,
          interval: 500,
        })
      }
      for (const stream of streams) stream.leave()
      return found
    })
    const above = Math.round((peak - before) / MEGABYTE)
    const places = new Set(ids.map((id) => id.slice(5, 10)))
    console.log(
      `${LIVE} live responses in ${places.size} objects, unread: ${above} MB above idle at the most`,
    )
    expect(peak - before).toBeLessThan(MOST_ABOVE_IDLE)
    for (const id of ids.slice(0, 8)) {
      const last = expectWholeStream(await replay(gateway, tenant.key, id))
      expect(last.status).toBe('completed')
    }
  })
})
