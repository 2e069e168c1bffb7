import { setImmediate } from 'node:timers/promises'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { eachPart } from '../../../src/http/request-body.ts'
import type { ApiError } from '../../../src/lib/api-error.ts'
import { PartReader } from '../../../src/lib/bytes/read-bytes.ts'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] }))
afterEach(() => void vi.useRealTimers())

const PACE = { BODY_GRACE_MS: 60_000, BODY_LEAST_BYTES_PER_SECOND: 64 * 1024 }

/** Reads a body of parts that come so many seconds apart. @returns after how many seconds it ended, and how */
async function read(parts: readonly number[], seconds: number, compressed: boolean) {
  const waiting = [...parts]
  const stream = new ReadableStream({
    type: 'bytes',
    async pull(controller) {
      const length = waiting.shift()
      if (length === undefined) {
        controller.close()
        controller.byobRequest?.respond(0)
        return
      }
      await new Promise((resolve) => setTimeout(resolve, seconds * 1_000))
      controller.enqueue(new Uint8Array(length))
    },
  })
  const begunAt = Date.now()
  const source = { stream, declared: null, compressed, unreadable: 'unreadable', pace: PACE }
  const reading = eachPart(new PartReader(stream), source, () => {}).then(
    () => 'read',
    (error: ApiError) => `${error.status} ${error.message}`,
  )
  let ended: { outcome: string; seconds: number } | null = null
  reading.then((outcome) => {
    ended = { outcome, seconds: Math.round((Date.now() - begunAt) / 1_000) }
  })
  for (let second = 0; second < 1_000 && !ended; second++) {
    await vi.advanceTimersByTimeAsync(1_000)
    await setImmediate()
  }
  return ended
}

const many = (count: number, bytes: number) => Array.from({ length: count }, () => bytes)
const late = expect.stringMatching(/^400 The body arrives too slowly: the next part of the body took longer/)

it('a body that drips holds its place for a minute', async () => {
  expect(await read(many(100, 1), 20, false)).toEqual({ outcome: late, seconds: 60 })
})

it('a body that stands still ends sooner', async () => {
  expect(await read([1, 1], 45, false)).toEqual({ outcome: late, seconds: 30 })
})

it('a large body over a slow line may take its time', async () => {
  expect(await read(many(300, 60 * 1024), 1, false)).toEqual({ outcome: 'read', seconds: 300 })
})

it('what was compressed took its sender no time', async () => {
  expect(await read(many(300, 60 * 1024), 1, true)).toEqual({ outcome: late, seconds: 60 })
})
