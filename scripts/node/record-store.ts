import { closeSync, existsSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs'
import { claimPath } from './folder-claim.ts'
import { OptionError } from './start-error.ts'

/** A line of the file: a record was stored, or deleted if there is no value. */
type Line = [collection: string, id: string, value?: unknown]

/** Lines after which the file is rewritten with the live records only. */
const COMPACT_AFTER_LINES = 20_000

/** Records of one kind, in the order in which they were first stored. */
export class RecordCollection<Value> {
  readonly #records = new Map<string, Value>()
  readonly #name: string
  readonly #append: (line: Line) => void

  constructor(name: string, append: (line: Line) => void) {
    this.#name = name
    this.#append = append
  }

  get(id: string): Value | undefined {
    return this.#records.get(id)
  }

  /** Stores a record. It is in the file when this returns. */
  set(id: string, value: Value): void {
    this.#records.set(id, value)
    this.#append([this.#name, id, value])
  }

  /** @returns whether there was such a record */
  delete(id: string): boolean {
    const existed = this.#records.delete(id)
    if (existed) this.#append([this.#name, id])
    return existed
  }

  values(): Value[] {
    return [...this.#records.values()]
  }

  entries(): [id: string, value: Value][] {
    return [...this.#records]
  }

  /** Takes over a line of the file. */
  replay(id: string, value: unknown): void {
    if (value === undefined) this.#records.delete(id)
    else this.#records.set(id, value as Value)
  }

  lines(): Line[] {
    return [...this.#records].map(([id, value]) => [this.#name, id, value])
  }
}

/**
 * Records that survive a restart: every change is appended to a file before the call returns. A message that was
 * accepted is not lost even if the process is killed. Without a path, the records are in memory only.
 */
export class RecordStore {
  readonly #path: string | undefined
  readonly #collections = new Map<string, RecordCollection<unknown>>()
  readonly #replayed: Line[]
  readonly #releaseClaim: () => void
  #file: number | undefined
  #lineCount = 0

  /** @throws OptionError if another process uses the file or a line of it is damaged */
  constructor(path: string | undefined) {
    this.#path = path
    this.#releaseClaim = path === undefined ? () => {} : claimPath(path)
    try {
      this.#replayed = path === undefined ? [] : readLines(path)
    } catch (error) {
      this.#releaseClaim()
      throw error
    }
  }

  /** The records of one kind, those of the file included. All kinds are requested before `open`. */
  collection<Value>(name: string): RecordCollection<Value> {
    const made = new RecordCollection<Value>(name, (line) => this.#append(line))
    for (const [collection, id, value] of this.#replayed) if (collection === name) made.replay(id, value)
    this.#collections.set(name, made as RecordCollection<unknown>)
    return made
  }

  /** Rewrites the file with the live records and begins to append to it. */
  open(): void {
    if (this.#path !== undefined) this.#compact(this.#path)
  }

  close(): void {
    if (this.#file !== undefined && this.#path !== undefined) {
      this.#compact(this.#path)
      closeSync(this.#file)
    }
    this.#file = undefined
    this.#releaseClaim()
  }

  #append(line: Line): void {
    if (this.#file === undefined || this.#path === undefined) return
    writeSync(this.#file, `${JSON.stringify(line)}\n`)
    this.#lineCount++
    if (this.#lineCount > COMPACT_AFTER_LINES) this.#compact(this.#path)
  }

  #compact(path: string): void {
    const temporary = `${path}.${process.pid}.new`
    const file = openSync(temporary, 'w', 0o600)
    const lines = [...this.#collections.values()].flatMap((collection) => collection.lines())
    for (const line of lines) writeSync(file, `${JSON.stringify(line)}\n`)
    fsyncSync(file)
    renameSync(temporary, path)
    if (this.#file !== undefined) closeSync(this.#file)
    this.#file = file
    this.#lineCount = 0
  }
}

function readLines(path: string): Line[] {
  if (!existsSync(path)) return []
  const texts = readFileSync(path, 'utf8').split('\n')
  // The text after the last line break was cut short by a kill; its change had not been answered yet.
  texts.pop()
  return texts.map((text, index) => {
    try {
      return JSON.parse(text) as Line
    } catch {
      throw new OptionError(`${path} is damaged in line ${index + 1}; delete it to start empty`)
    }
  })
}
