import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { afterLoopTime, loopTimeSignal, withinLoopTime, withinTime } from '../../src/lib/time-limit.ts'

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

describe('withinLoopTime', () => {
  const busy = (milliseconds: number) => vi.setSystemTime(Date.now() + milliseconds)

  it('gives what the work gives, and leaves no timer behind', async () => {
    await expect(withinLoopTime(Promise.resolve(7), 100, 'work')).resolves.toBe(7)
    await expect(withinLoopTime(Promise.reject(new Error('broken')), 100, 'work')).rejects.toThrow('broken')
    expect(vi.getTimerCount()).toBe(0)
  })

  it('ends a wait for silence on an idle loop in time', async () => {
    const waiting = expect(withinLoopTime(new Promise(() => {}), 100, 'the work')).rejects.toThrow(
      'the work took longer than 100 ms',
    )
    await vi.advanceTimersByTimeAsync(100)
    await waiting
  })

  it('waits for an answer after the loop was busy, and has an end on a loop that always is', async () => {
    const answer = Promise.withResolvers<number>()
    const answered = withinLoopTime(answer.promise, 100, 'the work')
    const silent = withinLoopTime(new Promise(() => {}), 100, 'the work').catch(
      (error: Error) => error.message,
    )
    for (let turn = 0; turn < 10; turn += 1) {
      busy(5_000)
      await vi.advanceTimersByTimeAsync(10)
    }
    answer.resolve(7)
    expect(await answered).toBe(7)
    for (let turn = 0; turn < 10; turn += 1) {
      busy(5_000)
      await vi.advanceTimersByTimeAsync(10)
    }
    expect(await silent).toBe('the work took longer than 100 ms')
  })
})

describe('loopTimeSignal', () => {
  it('aborts after its time on an idle loop', async () => {
    const signal = loopTimeSignal(100, 'the work')
    await vi.advanceTimersByTimeAsync(99)
    expect(signal.aborted).toBe(false)
    await vi.advanceTimersByTimeAsync(1)
    expect(signal.reason).toMatchObject({ message: 'the work took longer than 100 ms' })
  })

  it('does not abort because the loop was busy for longer', async () => {
    const signal = loopTimeSignal(100, 'the work')
    vi.setSystemTime(Date.now() + 500)
    await vi.advanceTimersByTimeAsync(100)
    expect(signal.aborted).toBe(false)
  })
})

it('afterLoopTime can be cancelled', async () => {
  const over = vi.fn()
  const cancel = afterLoopTime(100, over)
  await vi.advanceTimersByTimeAsync(50)
  cancel()
  await vi.advanceTimersByTimeAsync(1_000)
  expect(over).not.toHaveBeenCalled()
})
