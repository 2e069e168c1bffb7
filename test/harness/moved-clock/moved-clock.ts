import { execFileSync } from 'node:child_process'
import { mkdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'

const FOLDER = join(import.meta.dirname, '../../../node_modules/.cache/headgate')
const SOURCE = join(import.meta.dirname, 'moved-clock.c')

/**
 * The environment of processes whose clock is at `instant` now, and continues from there: those of Node.js, of workerd and of
 * the servers of PostgreSQL and Redis alike. Linux only; it takes a C compiler.
 *
 * @param instant such as `2026-11-30T23:59:50Z`
 * @throws Error for an instant that is none, or if the compiler is missing
 */
export function movedClock(instant: string): Record<string, string> {
  const at = Date.parse(instant)
  if (Number.isNaN(at)) throw new Error('--clock takes an instant, such as 2026-11-30T23:59:50Z')
  mkdirSync(FOLDER, { recursive: true })
  const library = join(FOLDER, 'moved-clock.so')
  // A run beside this one has the library open.
  const built = `${library}.${process.pid}`
  execFileSync('cc', ['-O2', '-Wall', '-Werror', '-shared', '-fPIC', '-o', built, SOURCE])
  renameSync(built, library)
  const ahead = Number(process.env.MOVED_CLOCK_SECONDS ?? 0) + Math.round((at - Date.now()) / 1000)
  return { LD_PRELOAD: library, MOVED_CLOCK_SECONDS: String(ahead) }
}
