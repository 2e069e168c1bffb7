import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process'
import { closeSync, createWriteStream, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { watchGroup } from '../node/group-watch.ts'
import { inheritedEnvironment } from '../node/inherited-environment.ts'
import { endGroup, signalGroup } from '../node/process-group.ts'
import { StartError } from '../node/start-error.ts'

/** A process in a process group of its own. */
export interface Child {
  readonly name: string
  /** Id of the process, and of its group. */
  readonly pid: number
  /** Settles when the process has ended; never rejects. */
  readonly exited: Promise<void>
  /** Whether it still runs. */
  alive(): boolean
  /** Sends a signal to the process alone. */
  signal(signal: NodeJS.Signals): void
  /** Ends the whole group; calling it twice is harmless. */
  stop(graceMs?: number): Promise<void>
}

export interface ChildCommand {
  /** Name in messages and of the log file. */
  name: string
  command: string
  arguments: string[]
  environment: NodeJS.ProcessEnv
}

export interface StandInCommand {
  /** Folder under scripts/local that holds the stand-in's main.ts. */
  name: string
  port: number
  arguments: string[]
  /** Options of Node itself. */
  nodeOptions?: string[]
  environment?: NodeJS.ProcessEnv
}

const START_LIMIT_MS = 60_000

/** Slightly longer than the time after which a stand-in ends itself. */
const STOP_GRACE_MS = 9_000

/**
 * The child processes of one local system: each has a log file, its end is reported, and none outlives this process,
 * however that ends.
 */
export class Children {
  readonly #logFolder: string
  readonly #onDeath: (message: string) => void
  readonly #running = new Set<Child>()
  #stopping = false

  /**
   * @param logFolder where `<name>.log` files go; created
   * @param onDeath called with one line when a child ends by itself
   */
  constructor(logFolder: string, onDeath: (message: string) => void) {
    this.#logFolder = logFolder
    this.#onDeath = onDeath
    mkdirSync(logFolder, { recursive: true })
  }

  /** Starts a process whose output goes to its log file. @throws StartError if it cannot be run at all */
  async spawn(command: ChildCommand): Promise<Child> {
    const log = this.#openLog(command.name)
    try {
      return await this.#spawn(command, ['ignore', log, log])
    } finally {
      closeSync(log)
    }
  }

  /**
   * Starts `scripts/local/<name>/main.ts` and waits for its ready line.
   *
   * @returns the child and the port it listens on
   * @throws StartError with the last line it wrote, if it ends, or is not ready within a minute
   */
  async startStandIn(command: StandInCommand): Promise<{ child: Child; port: number }> {
    const main = join(import.meta.dirname, command.name, 'main.ts')
    const log = this.#openLog(command.name)
    const standIn = {
      name: command.name,
      command: process.execPath,
      arguments: [
        ...(command.nodeOptions ?? []),
        main,
        '--port',
        String(command.port),
        '--parent',
        ...command.arguments,
      ],
      environment: { ...inheritedEnvironment(), ...command.environment },
    }
    let started: { process: ChildProcess; child: Child }
    try {
      started = await this.#spawnProcess(standIn, ['pipe', 'pipe', log], false)
    } finally {
      closeSync(log)
    }
    const port = await this.#readyPort(started.process, started.child)
    this.#watchForDeath(started.process, started.child)
    return { child: started.child, port }
  }

  /** Ends all children at once. */
  async stop(): Promise<void> {
    this.#stopping = true
    await Promise.all([...this.#running].map((child) => child.stop()))
  }

  #logFile(name: string): string {
    return join(this.#logFolder, `${name}.log`)
  }

  /** Why a child ended, from its log and its exit: `: <last line>`, or the signal or code when it wrote nothing. */
  #reason(name: string, process: ChildProcess): string {
    const line = lastTellingLine(this.#logFile(name))
    if (line !== '') return `: ${line}`
    if (process.signalCode !== null) return ` (${process.signalCode})`
    return process.exitCode === null ? '' : ` (exit code ${process.exitCode})`
  }

  /** Empties the log and opens it for appending, since more than one writer may hold it. */
  #openLog(name: string): number {
    writeFileSync(this.#logFile(name), '', { mode: 0o600 })
    return openSync(this.#logFile(name), 'a', 0o600)
  }

  async #spawn(command: ChildCommand, stdio: StdioOptions): Promise<Child> {
    const { child } = await this.#spawnProcess(command, stdio, true)
    return child
  }

  async #spawnProcess(command: ChildCommand, stdio: StdioOptions, watched: boolean) {
    if (this.#stopping) throw new StartError(`${command.name} was not started any more`)
    const process = spawn(command.command, command.arguments, {
      detached: true,
      stdio,
      env: command.environment,
    })
    const exited = new Promise<void>((resolve) => process.once('close', () => resolve()))
    // Known from here on, so that a stop that comes now finds it.
    const child = this.#childOf(command.name, process, exited)
    await new Promise<void>((resolve, reject) => {
      process.once('spawn', resolve)
      process.once('error', (error) => reject(new StartError(`${command.name} cannot run: ${error.message}`)))
    })
    if (watched) this.#watchForDeath(process, child)
    return { process, child }
  }

  #childOf(name: string, process: ChildProcess, exited: Promise<void>): Child {
    // Without a process id it could not be run; `spawn` rejects then.
    const pid = process.pid ?? 0
    const forget = pid === 0 ? () => {} : watchGroup(pid)
    let stopped: Promise<void> | undefined
    const child: Child = {
      name,
      pid,
      exited,
      alive: () => process.exitCode === null && process.signalCode === null,
      signal: (signal) => {
        if (child.alive()) process.kill(signal)
      },
      stop: (graceMs = STOP_GRACE_MS) => {
        this.#running.delete(child)
        stopped ??= pid === 0 ? Promise.resolve() : endGroup(pid, graceMs)
        return stopped
      },
    }
    this.#running.add(child)
    exited.then(() => {
      // Processes of the group that outlive its leader would keep ports and files open.
      if (pid !== 0) signalGroup(pid, 'SIGKILL')
      forget()
    })
    return child
  }

  #watchForDeath(process: ChildProcess, child: Child): void {
    child.exited.then(() => {
      if (!this.#running.delete(child)) return
      this.#report(`${child.name} ended unexpectedly${this.#reason(child.name, process)}`)
    })
  }

  #report(message: string): void {
    if (!this.#stopping) this.#onDeath(message)
  }

  /** Reads the ready line; everything a stand-in prints on stdout later goes to its log. */
  #readyPort(process: ChildProcess, child: Child): Promise<number> {
    const log = createWriteStream(this.#logFile(child.name), { flags: 'a', mode: 0o600 })
    log.on('error', () => {})
    let ready = false
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        reject(new StartError(`${child.name} was not ready within ${START_LIMIT_MS / 1000} s`))
      }, START_LIMIT_MS)
      child.exited.then(() => {
        log.end()
        if (ready) return
        clearTimeout(timer)
        this.#running.delete(child)
        reject(new StartError(`${child.name} did not start${this.#reason(child.name, process)}`))
      })
      if (process.stdout === null) return
      createInterface({ input: process.stdout }).on('line', (line) => {
        const port = readyPortOf(line)
        if (ready || port === null) return log.write(`${line}\n`)
        ready = true
        clearTimeout(timer)
        resolve(port)
      })
    })
  }
}

/** The last meaningful line of a log: of a crash the message, not the trace after it. */
function lastTellingLine(path: string): string {
  let text: string
  try {
    text = readFileSync(path, 'utf8').slice(-20_000)
  } catch {
    return ''
  }
  const lines = text
    .split('\n')
    .filter((line) => /\w/.test(line) && !/^(\s+at |Node\.js v|\s+\w+: )/.test(line))
  const error = lines.findLast((line) => /^\w*Error\b/.test(line))
  return (error ?? lines.at(-1) ?? '').trim()
}

function readyPortOf(line: string): number | null {
  try {
    const message: unknown = JSON.parse(line)
    if (typeof message !== 'object' || message === null) return null
    const { ready, port } = message as { ready?: unknown; port?: unknown }
    return ready === true && typeof port === 'number' ? port : null
  } catch {
    return null
  }
}
