import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'

/**
 * Whether any process of the group still runs. A process that has ended and was not reaped does not
 * count: in a container whose first process reaps nothing, such entries stay for ever.
 */
export function groupIsAlive(group: number): boolean {
  try {
    process.kill(-group, 0)
  } catch {
    return false
  }
  const states = statesOfGroup(group)
  return states === null || states.some((state) => state !== 'Z' && state !== 'X')
}

/** State letters of the group's processes from proc(5); null where there is no /proc. */
function statesOfGroup(group: number): string[] | null {
  let names: string[]
  try {
    names = readdirSync('/proc')
  } catch {
    return null
  }
  if (!names.includes('self')) return null
  return names.flatMap((name) => {
    if (!/^\d+$/.test(name)) return []
    const [state = '', , processGroup] = fieldsAfterName(name)
    return processGroup === String(group) ? [state] : []
  })
}

/** Fields of /proc/<pid>/stat from the state on: state, parent, group, and so on. The name before may hold anything. */
function fieldsAfterName(pid: string): string[] {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  } catch {
    return []
  }
}

/** Sends a signal to every process of the group; a group that is gone is no error. */
export function signalGroup(group: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-group, signal)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

/**
 * Ends every process of a group: SIGTERM, then SIGKILL for what is left after the grace time.
 *
 * @param graceMs how long the group may take to end by itself, in milliseconds
 * @returns once no process of the group is left (or the system refuses to end one within two more seconds)
 */
export async function endGroup(group: number, graceMs: number): Promise<void> {
  signalGroup(group, 'SIGTERM')
  if (await goneWithin(group, graceMs)) return
  signalGroup(group, 'SIGKILL')
  await goneWithin(group, 2_000)
}

async function goneWithin(group: number, limitMs: number): Promise<boolean> {
  const end = Date.now() + limitMs
  while (groupIsAlive(group)) {
    if (Date.now() >= end) return false
    await wait(20)
  }
  return true
}
