import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { pause } from '../../../src/lib/pause.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

it('ends after its time and not before', async () => {
  const ended = vi.fn()
  const pausing = pause(1_000, new AbortController().signal).then(ended)
  await vi.advanceTimersByTimeAsync(999)
  expect(ended).not.toHaveBeenCalled()
  await vi.advanceTimersByTimeAsync(1)
  await pausing
  expect(ended).toHaveBeenCalledOnce()
})

it('ends with the signal, and leaves no timer', async () => {
  const abort = new AbortController()
  const pausing = pause(1_000, abort.signal)
  abort.abort(new Error('gone'))
  await expect(pausing).rejects.toThrow('gone')
  expect(vi.getTimerCount()).toBe(0)
})

it('does not begin after the signal, and takes no time for none', async () => {
  await expect(pause(0, AbortSignal.abort(new Error('gone')))).rejects.toThrow('gone')
  await pause(0, new AbortController().signal)
  expect(vi.getTimerCount()).toBe(0)
})
