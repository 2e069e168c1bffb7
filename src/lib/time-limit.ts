/** Something took longer than it may. */
export class TimeLimitError extends Error {
  constructor(what: string, milliseconds: number) {
    super(`${what} took longer than ${milliseconds} ms`)
    this.name = 'TimeLimitError'
  }
}

/**
 * Waits for `work` for a limited time. The work itself continues after it, and a late failure is ignored.
 * @param milliseconds the longest wait. @param what names the work in the error.
 * @throws TimeLimitError when the time is over first, and what `work` throws.
 */
export async function withinTime<Result>(
  work: Promise<Result>,
  milliseconds: number,
  what: string,
): Promise<Result> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const limit = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new TimeLimitError(what, milliseconds)), milliseconds)
  })
  try {
    return await Promise.race([work, limit])
  } finally {
    clearTimeout(timer)
  }
}

/** Timers that a wait for an answer is made of. */
const TURNS = 10

/**
 * Calls `over` after a time, in which time of a busy event loop does not count: an answer that has arrived meanwhile could
 * not be read. Each late timer is a turn of the loop more, up to as many as there are timers.
 * @param milliseconds on an idle loop. @returns cancels the call.
 */
export function afterLoopTime(milliseconds: number, over: () => void): () => void {
  const each = Math.ceil(milliseconds / TURNS)
  let timer: ReturnType<typeof setTimeout> | undefined
  let [left, late] = [TURNS, 0]
  const waitTurn = () => {
    const since = Date.now()
    timer = setTimeout(() => {
      if (Date.now() - since > 2 * each && late < TURNS) late += 1
      else left -= 1
      if (left > 0) waitTurn()
      else over()
    }, each)
  }
  waitTurn()
  return () => clearTimeout(timer)
}

/**
 * Waits for `work` as `withinTime` does, by the time of `afterLoopTime`.
 * @param milliseconds the longest wait on an idle loop. @param what names the work in the error.
 * @throws TimeLimitError when the time is over first, and what `work` throws.
 */
export async function withinLoopTime<Result>(
  work: Promise<Result>,
  milliseconds: number,
  what: string,
): Promise<Result> {
  let cancel = () => {}
  const limit = new Promise<never>((_, reject) => {
    cancel = afterLoopTime(milliseconds, () => reject(new TimeLimitError(what, milliseconds)))
  })
  try {
    return await Promise.race([work, limit])
  } finally {
    cancel()
  }
}

/**
 * A signal that aborts by the time of `afterLoopTime`. `AbortSignal.timeout` would also abort an answer that arrived
 * while the loop was busy. Its timers end with the request that made it.
 * @param what names the work in the reason, a TimeLimitError.
 */
export function loopTimeSignal(milliseconds: number, what: string): AbortSignal {
  const controller = new AbortController()
  afterLoopTime(milliseconds, () => controller.abort(new TimeLimitError(what, milliseconds)))
  return controller.signal
}
