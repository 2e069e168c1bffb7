/** Waits for all of them, also after one has failed. @throws what the first one that failed threw. */
export async function settleAll(work: ReadonlyArray<Promise<unknown>>): Promise<void> {
  for (const outcome of await Promise.allSettled(work)) {
    if (outcome.status === 'rejected') throw outcome.reason
  }
}
