import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { withinTime } from '../../src/lib/time-limit.ts'

beforeEach(() => {
  vi.useFakeTimers()
})

afterEach(() => {
  vi.useRealTimers()
})

describe('withinTime', () => {
  it('gives what the work gives, and leaves no timer behind', async () => {
    await expect(withinTime(Promise.resolve(7), 100, 'work')).resolves.toBe(7)
    await expect(withinTime(Promise.reject(new Error('broken')), 100, 'work')).rejects.toThrow('broken')
    expect(vi.getTimerCount()).toBe(0)
  })

  it('gives up on work that takes too long', async () => {
    const waiting = expect(withinTime(new Promise(() => {}), 100, 'the work')).rejects.toThrow(
      'the work took longer than 100 ms',
    )
    await vi.advanceTimersByTimeAsync(100)
    await waiting
  })
})
