import type { CommitGroup, CommitMember } from './commit-group.ts'
import type { CommitPart, Frames } from './commit-rows.ts'

/** The log of a response, as commits see it. */
export interface FrameSource {
  readonly keptBytes: number
  /** The pending frames; null if there are none, or too many for a commit: then they are stored in rows of their own. */
  take(): Frames | null
  /** The frames that were taken are stored in a commit. */
  stored(): void
  /** Stores the frames that were taken in rows of their own. @throws the error of SQLite, which it has to remember. */
  storeAlone(): void
  /** Stores the frames that only commits have in rows of their own. @throws the error of SQLite. */
  spill(): void
  /** Forgets the frames that only commits have: they are deleted. */
  drop(): void
}

/** The state of a response, as commits see it. */
export interface HeadSource {
  /** The state as JSON for a commit; null if it is stored as it is, or belongs into the row of its response. */
  take(): string | null
  /** The state as JSON for the row of its response; null if it is stored as it is. */
  takeForRow(): string | null
  stored(): void
  failed(error: unknown): void
  /** The state as JSON, whether or not it is stored. */
  current(): string | null
}

/** The row of a response in the table of its object. */
interface HeadRow {
  read(): string | null
  write(head: string | null): void
}

/** What one live response stores in the commits of its object, until it is stored in rows of its own. */
export class LiveParts implements CommitMember {
  readonly number: number
  frames: FrameSource | null = null
  head: HeadSource | null = null
  readonly #group: CommitGroup
  readonly #row: HeadRow
  #taken: CommitPart | null = null
  #error: unknown

  constructor(number: number, group: CommitGroup, row: HeadRow) {
    this.number = number
    this.#group = group
    this.#row = row
  }

  get group(): CommitGroup {
    return this.#group
  }

  get keptBytes(): number {
    return this.frames?.keptBytes ?? 0
  }

  /** From now on commits include this response. */
  join(): void {
    this.#group.join(this)
  }

  /** Stores what all live responses of the object have. @throws the error of SQLite, if it is one of this response. */
  commit(): void {
    this.#error = undefined
    this.#group.commit()
    if (this.#error !== undefined) throw this.#error
  }

  /** The state in the row of the response: that of a response which is not live. */
  readHead(): string | null {
    return this.#row.read()
  }

  /** Stores the state in the row of the response, in place of what commits have of it. @throws the error of SQLite. */
  writeHead(head: string | null): void {
    this.#row.write(head)
    this.#group.rows.releaseHead(this.number)
  }

  /** To be called when the log has stored its frames in rows of its own. */
  releaseFrames(): void {
    this.#group.rows.releaseFrames(this.number)
  }

  /** Commits do not include the response any more. What they have of its state is not needed: its row has it. */
  leave(): void {
    this.#group.leave(this)
    this.#group.rows.releaseHead(this.number)
  }

  /** Removes from commits everything of the response. @throws the error of SQLite. */
  erase(): void {
    this.frames?.drop()
    this.releaseFrames()
    this.leave()
    this.#group.erase(this.number)
  }

  take(): CommitPart | null {
    this.#taken = null
    try {
      // A long state is stored here, which can fail: the frames are then still pending.
      const head = this.head?.take() ?? null
      const frames = this.frames?.take() ?? null
      if (frames || head !== null) this.#taken = { number: this.number, frames, head }
    } catch (error) {
      this.#fail(error)
    }
    return this.#taken
  }

  stored(): void {
    if (this.#taken?.frames) this.frames?.stored()
    if (this.#taken && this.#taken.head !== null) this.head?.stored()
    this.#taken = null
  }

  storeAlone(): void {
    const taken = this.#taken
    this.#taken = null
    try {
      if (taken?.frames) this.frames?.storeAlone()
      if (taken && taken.head !== null) {
        this.writeHead(taken.head)
        this.head?.stored()
      }
    } catch (error) {
      this.#fail(error)
    }
  }

  spill(): void {
    this.frames?.spill()
    const head = this.#group.rows.hasHead(this.number) ? this.head?.current() : null
    if (typeof head === 'string') this.writeHead(head)
  }

  #fail(error: unknown): void {
    this.#error = error
    this.head?.failed(error)
  }
}
