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
