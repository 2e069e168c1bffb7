import { closeSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs'
import { claimPath } from './folder-claim.ts'
import { OptionError } from './stand-in-process.ts'

/** How often a changed state is saved, in milliseconds: what a killed process can lose at most. */
const SAVE_INTERVAL_MS = 1_000

/** Where the state comes from and goes to. */
export interface SnapshotSource<State> {
  /** The state, in a form that survives JSON. */
  take(): State
  /** A number that grows with every change. */
  changes(): number
}

/**
 * Keeps the state of a stand-in in one JSON file. It is written to a second file first and renamed, so that a
 * crash leaves the old state or the new one, never half of one.
 */
export class SnapshotFile<State> {
  readonly #path: string
  readonly #releaseClaim: () => void
  #source: SnapshotSource<State> | undefined
  #savedChanges = 0
  #timer: NodeJS.Timeout | undefined

  /**
   * @param path the file; its folder is created, the file itself on the first save
   * @throws OptionError when another process uses the file
   */
  constructor(path: string) {
    this.#path = path
    this.#releaseClaim = claimPath(path)
  }

  /**
   * Reads the saved state.
   *
   * @returns nothing if there is no file yet
   * @throws OptionError if the file is no JSON
   */
  load(): State | undefined {
    let text: string
    try {
      text = readFileSync(this.#path, 'utf8')
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
      throw error
    }
    try {
      return JSON.parse(text) as State
    } catch {
      throw new OptionError(`${this.#path} is damaged; delete it to start empty`)
    }
  }

  /** Begins to save whenever something has changed. */
  start(source: SnapshotSource<State>): void {
    this.#source = source
    this.#savedChanges = source.changes()
    this.#timer = setInterval(() => this.save(), SAVE_INTERVAL_MS)
    this.#timer.unref()
  }

  /** Saves now, if something has changed since the last time. */
  save(): void {
    const source = this.#source
    if (source === undefined || source.changes() === this.#savedChanges) return
    this.#savedChanges = source.changes()
    const temporary = `${this.#path}.${process.pid}.new`
    const file = openSync(temporary, 'w', 0o600)
    try {
      writeSync(file, JSON.stringify(source.take()))
      fsyncSync(file)
    } finally {
      closeSync(file)
    }
    renameSync(temporary, this.#path)
  }

  /** Saves a last time and lets others use the file. */
  close(): void {
    clearInterval(this.#timer)
    this.save()
    this.#source = undefined
    this.#releaseClaim()
  }
}
