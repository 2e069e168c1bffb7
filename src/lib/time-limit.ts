/** Something took longer than it may. */
export class TimeLimitError extends Error {
  constructor(what: string, milliseconds: number) {
    super(`${what} took longer than ${milliseconds} ms`)
    this.name = 'TimeLimitError'
  }
}

/**
 * Waits for `work`, but not for ever. The work itself goes on: only the waiting ends, and a late failure is dropped.
 * @param milliseconds the longest wait. @param what names the work in the error.
 * @throws TimeLimitError when the time is over first, and whatever `work` throws.
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
