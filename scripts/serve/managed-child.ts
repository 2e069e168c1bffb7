import { type ChildProcess, fork } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as wait } from 'node:timers/promises'
import { withinTime } from '../../src/lib/time-limit.ts'
import { Backoff } from '../node/backoff.ts'
import { inheritedEnvironment } from '../node/inherited-environment.ts'
import { StartError } from '../node/start-error.ts'
import { type Log, logOutput } from './log.ts'

export interface ChildOptions<Ready> {
  /** The process runs `<name>-process.ts`. */
  name: string
  /** What it gets when it starts. @param last what it was ready with before, so that it can listen at the same ports */
  settings(last: Ready | null): Record<string, unknown>
  /** Called after each start, also after a crash. */
  onReady?(ready: Ready): void
  log: Log
}

const START_LIMIT_MS = 60_000
const ANSWER_LIMIT_MS = 10_000

/** A process of the node, which is started again when it ends by itself. */
export class ManagedChild<Ready> {
  readonly #options: ChildOptions<Ready>
  readonly #backoff = new Backoff()
  #process: ChildProcess | undefined
  #last: Ready | null = null
  #isStopping = false
  #messages = 0
  readonly #pending = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>()

  constructor(options: ChildOptions<Ready>) {
    this.#options = options
  }

  /** Process id; undefined while it does not run. */
  get pid(): number | undefined {
    return this.#process?.pid
  }

  /** Starts it. @throws StartError with its reason */
  async start(): Promise<Ready> {
    const { name, settings, onReady } = this.#options
    const child = fork(join(import.meta.dirname, `${name}-process.ts`), {
      env: inheritedEnvironment(),
      execArgv: [],
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    })
    this.#process = child
    child.once('exit', () => this.#rejectPending('ended'))
    for (const stream of [child.stdout, child.stderr])
      if (stream) createInterface({ input: stream }).on('line', (line) => logOutput(name, line))
    const ready = await this.#ready(child, settings(this.#last))
    this.#last = ready
    child.once('exit', () => this.#ended(child))
    onReady?.(ready)
    return ready
  }

  #ready(child: ChildProcess, settings: Record<string, unknown>): Promise<Ready> {
    const { name } = this.#options
    return new Promise((resolve, reject) => {
      const fail = (reason: string): void => {
        clearTimeout(timer)
        child.kill('SIGKILL')
        this.#rejectPending('did not start')
        reject(new StartError(`${name} did not start: ${reason}`))
      }
      const failByEnd = (code: number | null, signal: string | null): void =>
        fail(`it ended (${signal ?? code})`)
      const timer = setTimeout(fail, START_LIMIT_MS, 'not ready in time')
      child.on('error', (error) => fail(error.message))
      child.once('exit', failByEnd)
      child.on('message', (message: Record<string, unknown>) => {
        if (typeof message.failed === 'string') fail(message.failed)
        if (message.ready !== undefined) {
          clearTimeout(timer)
          child.off('exit', failByEnd)
          resolve(message.ready as Ready)
        }
        if (typeof message.id === 'number') this.#settle(message.id, message)
      })
      child.send({ settings })
    })
  }

  #settle(id: number, { answer, error }: Record<string, unknown>): void {
    const pending = this.#pending.get(id)
    this.#pending.delete(id)
    if (typeof error === 'string') pending?.reject(new Error(error))
    else pending?.resolve(answer)
  }

  #rejectPending(what: string): void {
    for (const { reject } of this.#pending.values()) reject(new Error(`${this.#options.name} ${what}`))
    this.#pending.clear()
  }

  #ended(child: ChildProcess): void {
    if (this.#isStopping) return
    const { name, log } = this.#options
    log('error', 'process_ended', { process: name, code: child.exitCode, signal: child.signalCode })
    void this.#startAgain()
  }

  async #startAgain(): Promise<void> {
    const { name, log } = this.#options
    while (!this.#isStopping) {
      await wait(this.#backoff.next(performance.now()))
      if (this.#isStopping) return
      try {
        await this.start()
        log('info', 'process_started_again', { process: name })
        return
      } catch (error) {
        log('error', 'process_not_started', { process: name, reason: (error as Error).message })
      }
    }
  }

  /**
   * Sends a message; a process that starts answers once it is ready.
   * @param limitMs milliseconds in which it has to answer
   * @returns its answer. @throws if the process ends first, fails, or does not answer in time
   */
  ask(message: Record<string, unknown>, limitMs = ANSWER_LIMIT_MS): Promise<unknown> {
    const { name } = this.#options
    const id = ++this.#messages
    const answer = new Promise((resolve, reject) => {
      if (!this.#process?.connected) return reject(new Error(`${name} does not run`))
      this.#pending.set(id, { resolve, reject })
      this.#process.send({ id, ask: message }, (error) => {
        if (error !== null) this.#settle(id, { error: error.message })
      })
    })
    return withinTime(answer, limitMs, `an answer of ${name}`).finally(() => this.#pending.delete(id))
  }

  /** Ends it: it closes what is open when the link to this process closes. */
  async stop(graceMs = 3_000): Promise<void> {
    this.#isStopping = true
    const child = this.#process
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const gone = new Promise((resolve) => child.once('exit', resolve))
    const timer = setTimeout(() => child.kill('SIGKILL'), graceMs)
    if (child.connected) child.disconnect()
    await gone
    clearTimeout(timer)
  }
}
