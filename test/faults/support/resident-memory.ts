import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'

/** Only Linux shows the memory of another process, and its maximum. */
export const TELLS_MEMORY = existsSync('/proc/self/status')

const SAMPLE_MS = 5

/** Memory of a process and of all in its group that is in RAM, in bytes. */
export class ResidentMemory {
  readonly #group: number

  /** @param pid of the group's leader */
  constructor(pid: number) {
    this.#group = pid
  }

  now(): number {
    return this.#sum('VmRSS')
  }

  /** Runs `work`. @returns the most memory there was in the meantime, with what `work` resolved with. */
  async peakOf<Result>(work: () => Promise<Result>): Promise<{ peak: number; result: Result }> {
    const exact = this.#resetPeaks()
    let sampled = this.now()
    const sampler = setInterval(() => {
      sampled = Math.max(sampled, this.now())
    }, SAMPLE_MS)
    try {
      const result = await work()
      return { peak: Math.max(sampled, exact ? this.#sum('VmHWM') : 0), result }
    } finally {
      clearInterval(sampler)
    }
  }

  /** @returns whether the kernel counts peaks anew from now on (proc(5), clear_refs); else samples have to do. */
  #resetPeaks(): boolean {
    try {
      for (const pid of this.#members()) writeFileSync(`/proc/${pid}/clear_refs`, '5')
      return true
    } catch {
      return false
    }
  }

  #sum(field: 'VmRSS' | 'VmHWM'): number {
    const kibibytes = (pid: number) =>
      Number(new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(readFile(`/proc/${pid}/status`))?.[1] ?? 0)
    return this.#members().reduce((sum, pid) => sum + kibibytes(pid) * 1024, 0)
  }

  #members(): number[] {
    const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
    return pids.map(Number).filter((pid) => groupOf(pid) === this.#group)
  }
}

/** The fifth field of a process's line, after the name in parentheses that may hold blanks (proc(5)). */
function groupOf(pid: number): number {
  const text = readFile(`/proc/${pid}/stat`)
  return Number(text.slice(text.lastIndexOf(')') + 2).split(' ')[2])
}

/** Processes end while they are looked at: one that is gone has no text. */
function readFile(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
