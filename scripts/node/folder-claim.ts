import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { OptionError } from './start-error.ts'

/**
 * Claims a data folder or file for this process, so that two local systems never write the same one. Embedded
 * Postgres has no lock of its own: two processes on one folder destroy it.
 *
 * The claim is a file beside the data that names the owner by process id and start time. A claim whose owner is
 * gone is taken over, so a killed process needs no cleaning up. Both say nothing in another container, so that what is
 * shared by containers needs `claimBySocket`.
 *
 * @param path the folder or file to claim; its parent folder is created, and has to be writable
 * @returns gives the claim back
 * @throws OptionError when a living process holds it
 */
export function claimPath(path: string): () => void {
  mkdirSync(dirname(path), { recursive: true })
  const claim = `${path}.lock`
  const own = `${process.pid} ${startTimeOf(process.pid) ?? ''}`
  try {
    writeFileSync(claim, own, { flag: 'wx', mode: 0o600 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    const holder = readFileSync(claim, 'utf8')
    if (isAlive(holder)) throw new OptionError(`${path} is in use by process ${holder.split(' ', 1)[0]}`)
    writeFileSync(claim, own)
  }
  let held = true
  return () => {
    // Another process may have taken it over, such as one of a container, for which this one does not exist.
    if (held && holderOf(claim) === own) rmSync(claim, { force: true })
    held = false
  }
}

/** @returns null if nothing holds it */
function holderOf(claim: string): string | null {
  try {
    return readFileSync(claim, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    return null
  }
}

function isAlive(holder: string): boolean {
  const [pid = '', startTime = ''] = holder.split(' ')
  if (!/^\d+$/.test(pid)) return false
  try {
    process.kill(Number(pid), 0)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') return false
  }
  // Process ids are reused, most of all in containers; the start time distinguishes two owners.
  const current = startTimeOf(Number(pid))
  return current === undefined || startTime === '' || current === startTime
}

/** Start time of a process in clock ticks since boot (field 22 of proc(5) stat); nothing where there is no /proc. */
function startTimeOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]
  } catch {
    return undefined
  }
}
