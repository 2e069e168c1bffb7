import { readFileSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { StartError } from '../local/children.ts'

/** Linux reports process times in units of 1/100 s to programs on every architecture (USER_HZ). */
const MICROSECONDS_PER_TICK = 10_000

/**
 * User and system time that a process has used since it began, of all its threads, in microseconds.
 *
 * @throws StartError without /proc, the only source of another process's times
 */
export function cpuMicroseconds(pid: number): number {
  const text = read(`/proc/${pid}/stat`)
  // The second field is the name in parentheses, and may hold blanks; utime and stime are fields 14 and 15 (proc(5)).
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) * MICROSECONDS_PER_TICK
}

/**
 * Waits until a process has done nothing for a while, so that work it put off is counted with what caused it.
 *
 * @param quiet how long it must have been idle, in milliseconds
 * @param limit when to go on regardless, in milliseconds
 */
export async function untilIdle(pid: number, quiet: number, limit: number): Promise<void> {
  const end = performance.now() + limit
  let used = cpuMicroseconds(pid)
  let since = performance.now()
  while (performance.now() < end && performance.now() - since < quiet) {
    await setTimeout(50)
    const now = cpuMicroseconds(pid)
    // One tick now and then is what timers of an idle process cost.
    if (now - used <= MICROSECONDS_PER_TICK) continue
    used = now
    since = performance.now()
  }
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    throw new StartError(`${path} cannot be read: the bench measures processes through Linux's /proc`)
  }
}
