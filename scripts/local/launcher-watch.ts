import { readFileSync } from 'node:fs'

const INTERVAL_MS = 250

/**
 * Calls back when the npm that runs this script is gone. npm passes a signal on to the shell between it and the
 * script only, and that shell ends without telling the script: a system that `npm run` started would live on.
 * Does nothing when no npm is there.
 */
export function watchLauncher(onGone: () => void): void {
  if (process.env.npm_lifecycle_event === undefined) return
  const shell = process.ppid
  const npm = parentOf(shell)
  const timer = setInterval(() => {
    if (process.ppid === shell && parentOf(shell) === npm) return
    clearInterval(timer)
    onGone()
  }, INTERVAL_MS)
  timer.unref()
}

/** Field 4 of proc(5) stat; undefined where there is no /proc. */
function parentOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]
  } catch {
    return undefined
  }
}
