import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { createGzip } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { buildWorker } from '../../scripts/build.ts'
import { type RunningWorkerd, startWorkerd } from '../../scripts/node/workerd.ts'
import { readRuntimeSettings } from '../../scripts/node/wrangler-settings.ts'
import type { SeenStream } from '../harness/gathering-reader/worker.ts'

/**
 * `GatheringReader` in the runtime, whose streams have what it uses. The gathering times are long, so that a busy machine changes
 * nothing about what is held and what is not.
 */

type Answer = (response: ServerResponse) => Promise<void>

/** Answers by the path that requests them. */
const answers = new Map<string, Answer>()
const server = createServer((request, response) => {
  response.socket?.setNoDelay(true)
  const answer = answers.get(request.url ?? '')
  answer?.(response).catch(() => response.destroy())
})
const folder = mkdtempSync(join(tmpdir(), 'headgate-gathering-'))
let workerd: RunningWorkerd

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const bundleDirectory = join(folder, 'bundle')
  await buildWorker(bundleDirectory, { entry: 'test/harness/gathering-reader/worker.ts' })
  workerd = await startWorkerd({
    ...readRuntimeSettings(join(import.meta.dirname, '../../wrangler.toml')),
    bundleDirectory,
    entry: 'worker.js',
    bindings: { UPSTREAM: `http://127.0.0.1:${(server.address() as AddressInfo).port}` },
    durableObjects: {},
    cache: false,
  })
}, 60_000)
afterAll(async () => {
  await workerd?.stop()
  server.closeAllConnections()
  server.close()
  rmSync(folder, { recursive: true, force: true })
})

let made = 0
/** Has an answer read, with the parameters of the worker. */
async function read(answer: Answer, parameters: Record<string, number>): Promise<SeenStream> {
  const path = `/answer-${++made}`
  answers.set(path, answer)
  const query = Object.entries(parameters).map(([name, value]) => `${name}=${value}`)
  const response = await fetch(`${workerd.url}${path}?${query.join('&')}`)
  return (await response.json()) as SeenStream
}

const bytesOf = ({ reads }: SeenStream) =>
  Buffer.concat(reads.map(({ base64 }) => Buffer.from(base64, 'base64')))

/** An event with the time at which it is written. */
const stamped = () => `data: ${Date.now()} 漢字 🦉\n\n`

/** Writes events, each a chunk of its own. */
async function writeQuickly(response: ServerResponse, count: number): Promise<void> {
  for (let event = 0; event < count; event++) {
    response.write(stamped())
    await pause(2)
  }
}

/** The events of a stream, with how long after it was written each was read, in milliseconds. */
function heldTimes(stream: SeenStream): number[] {
  let text = ''
  return stream.reads.flatMap(({ at, base64 }) => {
    text += Buffer.from(base64, 'base64').toString('latin1')
    const whole = text.slice(0, text.lastIndexOf('\n\n') + 2)
    text = text.slice(whole.length)
    return [...whole.matchAll(/data: (\d+)/g)].map(([, written]) => at - Number(written))
  })
}

describe('a quick stream', () => {
  it('is read in few steps, its first event at once, and with the same bytes', async () => {
    let sent = ''
    const stream = await read(
      async (response) => {
        for (let event = 0; event < 300; event++) {
          const bytes = Buffer.from(stamped())
          sent += bytes.toString()
          // Most chunks end within a frame, many within a character.
          response.write(bytes.subarray(0, event % bytes.length))
          response.write(bytes.subarray(event % bytes.length))
          await pause(2)
        }
        response.end()
      },
      { gather: 300 },
    )
    expect(stream.end).toBe('ended')
    expect(bytesOf(stream).toString()).toBe(sent)
    expect(stream.reads.length).toBeLessThan(30)
    expect(heldTimes(stream)[0]).toBeLessThan(150)
    expect(stream.reads[0]?.gathers).toBe(false)
    expect(stream.reads.at(-1)?.gathers).toBe(true)
  })

  it('that stalls holds nothing longer than the gathering time, and its next event not at all', async () => {
    const stream = await read(
      async (response) => {
        await writeQuickly(response, 50)
        await pause(4_000)
        response.write(stamped())
        await pause(4_000)
        response.end()
      },
      { gather: 500 },
    )
    const held = heldTimes(stream)
    expect(held).toHaveLength(51)
    // Not until the next event, which came after 4,000 ms.
    expect(Math.max(...held.slice(0, 50))).toBeLessThan(1_500)
    expect(Math.max(...held)).toBeGreaterThan(100)
    expect(held[50]).toBeLessThan(300)
  })

  it('that is cut loses nothing of what had arrived, and fails', async () => {
    const stream = await read(
      async (response) => {
        await writeQuickly(response, 50)
        await pause(100)
        response.destroy()
      },
      { gather: 5_000 },
    )
    expect(stream.end).toBe('failed')
    expect(heldTimes(stream)).toHaveLength(50)
    expect(Math.max(...heldTimes(stream))).toBeLessThan(3_000)
  })

  it('that ends is not held until the gathering time is over', async () => {
    const stream = await read(
      async (response) => {
        await writeQuickly(response, 50)
        response.end()
      },
      { gather: 10_000 },
    )
    expect(stream.end).toBe('ended')
    expect(heldTimes(stream)).toHaveLength(50)
    expect(Math.max(...heldTimes(stream))).toBeLessThan(5_000)
  })

  it('that is compressed is read in few steps as well', async () => {
    const stream = await read(
      async (response) => {
        response.setHeader('content-encoding', 'gzip')
        const gzip = createGzip()
        gzip.pipe(response)
        for (let event = 0; event < 50; event++) {
          gzip.write(stamped())
          await new Promise<void>((resolve) => gzip.flush(resolve))
          await pause(2)
        }
        gzip.end()
      },
      { gather: 200 },
    )
    expect(stream.end).toBe('ended')
    expect(heldTimes(stream)).toHaveLength(50)
    expect(stream.reads.length).toBeLessThan(20)
    expect(stream.reads.at(-1)?.gathers).toBe(true)
  })
})

describe('a slow stream', () => {
  it('is read event by event, each at once', async () => {
    const stream = await read(
      async (response) => {
        for (let event = 0; event < 10; event++) {
          response.write(stamped())
          await pause(100)
        }
        response.end()
      },
      { gather: 5 },
    )
    expect(stream.reads).toHaveLength(10)
    expect(stream.reads.map(({ gathers }) => gathers)).not.toContain(true)
  })
})

describe('a stream of many megabytes', () => {
  it('does not wait for the gathering time between its blocks', async () => {
    const block = Buffer.alloc(64 * 1024, 'x')
    const begun = performance.now()
    const stream = await read(
      async (response) => {
        for (let count = 0; count < 64; count++) {
          if (!response.write(block)) await new Promise((resolve) => response.once('drain', resolve))
        }
        response.end()
      },
      { gather: 1_000 },
    )
    expect(stream.end).toBe('ended')
    expect(bytesOf(stream).equals(Buffer.concat(Array(64).fill(block)))).toBe(true)
    // One wait for each block of 16 KB would take four minutes.
    expect(performance.now() - begun).toBeLessThan(15_000)
  })

  it('is left where it is while it is not read', async () => {
    const block = Buffer.alloc(64 * 1024, 'x')
    let written = 0
    let writtenInPause = 0
    await read(
      async (response) => {
        const timer = setTimeout(() => {
          writtenInPause = written
        }, 2_500)
        response.once('close', () => clearTimeout(timer))
        for (let count = 0; count < 1_024 && !response.destroyed; count++) {
          written += block.length
          if (!response.write(block)) await new Promise((resolve) => response.once('drain', resolve))
        }
        response.end()
      },
      { gather: 10, pauseAfter: 20, pause: 4_000, cancelAfter: 21 },
    )
    expect(writtenInPause).toBeGreaterThan(0)
    // The buffers of two sockets; the whole answer has 64 MB.
    expect(writtenInPause).toBeLessThan(16 * 1024 * 1024)
  })
})

describe('a stream that is cancelled', () => {
  it.each([
    ['before it is quick', 2],
    ['while it is gathered', 6],
  ])('%s ends its upstream', async (_name, cancelAfter) => {
    const closed = vi.fn()
    const stream = await read(
      async (response) => {
        response.once('close', closed)
        while (!response.destroyed) {
          response.write(stamped())
          await pause(2)
        }
      },
      { gather: 500, cancelAfter },
    )
    expect(stream.end).toBe('cancelled')
    expect(stream.reads.at(-1)?.gathers).toBe(cancelAfter > 3)
    await vi.waitFor(() => expect(closed).toHaveBeenCalled(), 5_000)
  })
})
