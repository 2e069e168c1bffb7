import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { StartError } from '../node/start-error.ts'

/** Linux reports process times in units of 1/100 s to programs on every architecture (USER_HZ). */
const MICROSECONDS_PER_TICK = 10_000

/**
 * User and system time that a process has used since it began, of all its threads, in microseconds.
 *
 * @throws StartError without /proc, the only source of another process's times
 */
export function cpuMicroseconds(pid: number): number {
  const { own } = ticksOf(read(`/proc/${pid}/stat`))
  return own * MICROSECONDS_PER_TICK
}

/**
 * Usage of a process and of its children, including children that have ended.
 *
 * @throws StartError without /proc
 */
export function treeMicroseconds(pid: number): number {
  const { own, ended } = ticksOf(read(`/proc/${pid}/stat`))
  const children = readdirSync('/proc').flatMap((name) => {
    if (!/^[0-9]+$/.test(name)) return []
    try {
      const { parent, own } = ticksOf(readFileSync(`/proc/${name}/stat`, 'utf8'))
      return parent === pid ? [own] : []
    } catch {
      // It has ended meanwhile.
      return []
    }
  })
  return children.reduce((sum, ticks) => sum + ticks, own + ended) * MICROSECONDS_PER_TICK
}

/** Parent and ticks of a process and of its children that have ended, from its `stat` (proc(5)). */
function ticksOf(stat: string): { parent: number; own: number; ended: number } {
  // The second field is the name in parentheses, and may hold blanks.
  const fields = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number)
  const [, parent = 0] = fields
  const [user = 0, system = 0, endedUser = 0, endedSystem = 0] = fields.slice(11, 15)
  return { parent, own: user + system, ended: endedUser + endedSystem }
}

/**
 * Waits until a process has done nothing for a while, so that work it put off is counted with what caused it.
 *
 * @param quiet how long it must have been idle, in milliseconds
 * @param limit longest wait, in milliseconds
 */
export async function untilIdle(pid: number, quiet: number, limit: number): Promise<void> {
  const end = performance.now() + limit
  let used = cpuMicroseconds(pid)
  let since = performance.now()
  while (performance.now() < end && performance.now() - since < quiet) {
    await setTimeout(50)
    const now = cpuMicroseconds(pid)
    // Timers of an idle process cost a tick now and then.
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
