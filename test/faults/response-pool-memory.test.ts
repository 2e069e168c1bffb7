import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, inject, it, vi } from 'vitest'
import { Inspector } from '../../scripts/bench/inspector.ts'
import { freePorts } from '../../scripts/node/ports.ts'
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
 * The whole process: Worker, objects, sockets, SQLite, and what is not collected yet. Measured: 211 to 253 MB, and 176 MB where
 * each segment had a row.
 */
const MOST_ABOVE_IDLE = 320 * MEGABYTE
/**
 * What the isolate needs: the heap of the Worker and of all objects, and the bytes outside of it, after a collection. An isolate
 * has 128 MB. Measured: 39 MB, of which 17 MB are those of an idle gateway, and 16 MB the events that only commits have rows for.
 */
const MOST_NEEDED = 64 * MEGABYTE
/** Nearly all events are there, and all responses are live. */
const LATE_MS = 105_000
const LIMIT_MS = 240_000

let gateway: StartedGateway
let inspector: Inspector
const storage = mkdtempSync(join(tmpdir(), 'headgate-pool-memory-'))
beforeAll(async () => {
  const [inspectorPort = 0] = await freePorts(1)
  const measured = { storage, inspectorPort }
  gateway = await startGateway({ bundleDirectory: inject('bundleDirectory'), measured })
  inspector = await Inspector.open(inspectorPort)
}, 60_000)
afterAll(async () => {
  inspector?.close()
  await gateway?.stop()
  rmSync(storage, { recursive: true, force: true })
})

/** Bytes that the isolate needs. */
async function needed(): Promise<{ heap: number; outside: number }> {
  await inspector.call('HeapProfiler.enable')
  await inspector.call('HeapProfiler.collectGarbage')
  const { usedSize, embedderHeapUsedSize, backingStorageSize } = (await inspector.call(
    'Runtime.getHeapUsage',
  )) as { usedSize: number; embedderHeapUsedSize: number; backingStorageSize: number }
  return { heap: usedSize + embedderHeapUsedSize, outside: backingStorageSize }
}

const megabytes = (bytes: number): string => `${Math.round(bytes / MEGABYTE)} MB`

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
    const idle = await needed()
    const before = memory.now()
    const { peak, result } = await memory.peakOf(async () => {
      const streams = await Promise.all(Array.from({ length: LIVE }, open))
      const found = streams.map((stream) => responseIdIn(stream.text()) ?? '')
      const url = (id: string) => `${gateway.baseUrl}/v1/responses/${id}`
      const statusOf = async (id: string) => {
        const response = await fetch(url(id), { headers: bearer(tenant.key) })
        return ((await response.json()) as { status: string }).status
      }
      await setTimeout(LATE_MS)
      const late = await needed()
      for (const id of found) {
        await vi.waitFor(async () => expect(await statusOf(id)).toBe('completed'), {
          timeout: LIMIT_MS,
          interval: 500,
        })
      }
      for (const stream of streams) stream.leave()
      return { ids: found, late }
    })
    const { ids, late } = result
    const places = new Set(ids.map((id) => id.slice(5, 10)))
    console.log(
      `${LIVE} live responses in ${places.size} objects, unread: the process ${megabytes(peak - before)} above idle at the most; ` +
        `the isolate needs ${megabytes(late.heap)} of heap (idle ${megabytes(idle.heap)}) and ${megabytes(late.outside)} outside ` +
        `(idle ${megabytes(idle.outside)})`,
    )
    expect(late.heap + late.outside).toBeLessThan(MOST_NEEDED)
    expect(peak - before).toBeLessThan(MOST_ABOVE_IDLE)
    for (const id of ids.slice(0, 8)) {
      const last = expectWholeStream(await replay(gateway, tenant.key, id))
      expect(last.status).toBe('completed')
    }
  })
})
