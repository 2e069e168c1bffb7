import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'

let watchdog: ChildProcess | undefined

/**
 * Makes sure that a process group ends when this process does, however that happens: a small process beside it
 * notices that its stdin closed and ends the group.
 *
 * @param group id of the group, the process id of its leader
 * @returns ends the watch; to be called once the group has ended, since process ids are used again
 */
export function watchGroup(group: number): () => void {
  if (watchdog === undefined || watchdog.exitCode !== null || watchdog.signalCode !== null) {
    watchdog = startWatchdog()
  }
  const stdin = watchdog.stdin
  stdin?.write(`+${group}\n`)
  return () => {
    stdin?.write(`-${group}\n`)
  }
}

function startWatchdog(): ChildProcess {
  const started = spawn(process.execPath, [join(import.meta.dirname, 'watchdog.ts')], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  // It must not keep this process alive: that this process ends is what it waits for.
  started.unref()
  const pipe = started.stdin as (NodeJS.WritableStream & { unref?: () => void }) | null
  pipe?.unref?.()
  pipe?.on('error', () => {})
  return started
}
