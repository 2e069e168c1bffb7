/**
 * Waits for a time, or until the signal fires.
 * @param milliseconds 0 does not wait at all. @throws the signal's reason.
 */
export async function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted()
  if (milliseconds <= 0) return
  let timer: ReturnType<typeof setTimeout> | undefined
  let end = () => {}
  await new Promise<void>((resolve) => {
    end = resolve
    timer = setTimeout(resolve, milliseconds)
    signal.addEventListener('abort', end)
  })
  clearTimeout(timer)
  signal.removeEventListener('abort', end)
  signal.throwIfAborted()
}
