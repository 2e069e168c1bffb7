import { readFileSync } from 'node:fs'

const INTERVAL_MS = 250

/**
 * Calls back when the npm that runs this script is gone, or a process between them. npm passes a signal on to its shell
 * only, and that shell ends without passing it on to the script: a system started by `npm run` would keep running. Does
 * nothing if no npm started the script.
 */
export function watchLauncher(onGone: () => void): void {
  if (process.env.npm_lifecycle_event === undefined) return
  const launchers = launchersOf(process.ppid)
  const timer = setInterval(() => {
    const living = [process.ppid, ...launchers.map(parentOf)]
    if (launchers.every((pid, index) => pid === living[index])) return
    clearInterval(timer)
    onGone()
  }, INTERVAL_MS)
  timer.unref()
}

/** A process and its ancestors up to npm, the first one without the variable that npm sets for what it runs. */
function launchersOf(pid: number): number[] {
  const parent = hasVariableOfNpm(pid) ? parentOf(pid) : undefined
  return parent === undefined ? [pid] : [pid, ...launchersOf(parent)]
}

/** Whether npm started a process, by its environment in proc(5); false where there is no /proc. */
function hasVariableOfNpm(pid: number): boolean {
  try {
    const variables = readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0')
    return variables.some((variable) => variable.startsWith('npm_lifecycle_event='))
  } catch {
    return false
  }
}

/** The parent's process id, field 4 of proc(5) stat; undefined where there is no /proc. */
function parentOf(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1])
  } catch {
    return undefined
  }
}
