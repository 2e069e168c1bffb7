import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { untilResponsesEnd } from '../../scripts/serve/live-responses.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** How long the wait took, in milliseconds, and what it logged. */
async function waited(countLive: () => Promise<number>, limitMs = 10_000) {
  const log = vi.fn()
  const begun = performance.now()
  let took = -1
  const done = untilResponsesEnd(countLive, begun + limitMs, log).then(() => {
    took = performance.now() - begun
  })
  await vi.advanceTimersByTimeAsync(limitMs * 2)
  expect(took).not.toBe(-1)
  await done
  return { took, logged: log.mock.calls }
}

describe('the wait for responses in progress', () => {
  it('ends with the last one', async () => {
    const counts = [2, 1, 0]
    const { took, logged } = await waited(async () => counts.shift() ?? 0)
    expect([took, logged]).toEqual([500, []])
  })

  it('reports how many are left at its end', async () => {
    const { took, logged } = await waited(async () => 3)
    expect([took, logged]).toEqual([10_000, [['warn', 'responses_cut', { responses: 3 }]]])
  })

  it('has an end when the database does not answer', async () => {
    const { took, logged } = await waited(() => new Promise(() => {}))
    expect([took, logged]).toEqual([10_000, [['warn', 'responses_cut', { responses: null }]]])
  })

  it('takes a failure for no number, and goes on', async () => {
    const answers = [() => Promise.reject(new Error('lost')), () => Promise.reject(new Error('lost'))]
    const { took, logged } = await waited(() => answers.shift()?.() ?? Promise.resolve(0))
    expect([took, logged]).toEqual([500, []])
    const failing = await waited(() => Promise.reject(new Error('lost')))
    expect([failing.took, failing.logged]).toEqual([10_000, [['warn', 'responses_cut', { responses: null }]]])
  })
})
