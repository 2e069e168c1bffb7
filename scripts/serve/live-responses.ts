import { withinTime } from '../../src/lib/time-limit.ts'
import type { Log } from './log.ts'

const INTERVAL_MS = 250

/**
 * Waits until no response is in progress. One without a reader is no request, and would fail with its model's call.
 * @param countLive how many there are; a failure, or no answer in time, says nothing about their number
 * @param end of the wait, in milliseconds of `performance.now()`; what is left then is logged, null for an unknown number
 */
export async function untilResponsesEnd(
  countLive: () => Promise<number>,
  end: number,
  log: Log,
): Promise<void> {
  for (;;) {
    const leftMs = Math.max(0, end - performance.now())
    const live = await withinTime(countLive(), leftMs, 'the count of responses').catch(() => null)
    if (live === 0) return
    if (performance.now() >= end) return log('warn', 'responses_cut', { responses: live })
    await new Promise((resolve) => setTimeout(resolve, INTERVAL_MS))
  }
}
