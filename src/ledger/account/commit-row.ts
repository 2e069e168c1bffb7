import type { ChainLink } from '../records/chain.ts'
import type { AccountState, CommitRow } from './account-tables.ts'
import type { OpenCall } from './open-calls.ts'

/** Cloudflare limits SQLite rows to 2 MB, which local runtimes do not enforce; a character can take three bytes. */
const ROW_CHARACTERS = 400_000

/** The row of a commit while that is being decided. */
export class CommitDraft {
  readonly #previousHash: string
  readonly #opened: string[] = []
  readonly #renewed: string[] = []
  readonly #ids: string[] = []
  readonly #hashes: string[] = []
  readonly #bodies: string[] = []
  readonly #counted = new Map<string, number>()
  /** Calls whose rows in `open_calls` are deleted with this commit. */
  readonly closedRows: string[] = []
  #size = 0

  /** @param previousHash of the newest record. */
  constructor(previousHash: string) {
    this.#previousHash = previousHash
  }

  get isEmpty(): boolean {
    return this.#size === 0
  }

  /** Whether the row has to be written before more is added. */
  get isFull(): boolean {
    return this.#size >= ROW_CHARACTERS
  }

  open({ id, reserve, deadline, progress, opening }: OpenCall): void {
    this.#push(this.#opened, `${id}\t${reserve}\t${deadline}\t${progress ?? ''}\t${opening}`)
  }

  renew(id: string, deadline: number, progress: string | null): void {
    this.#push(this.#renewed, `${id}\t${deadline}\t${progress ?? ''}`)
  }

  count(userId: string): void {
    this.#counted.set(userId, (this.#counted.get(userId) ?? 0) + 1)
    this.#size += 1
  }

  append({ id, hash, body }: ChainLink): void {
    this.#ids.push(id)
    this.#hashes.push(hash)
    this.#push(this.#bodies, body)
  }

  row(number: number, at: number, { sequence, hash, balance }: AccountState): CommitRow {
    return {
      number,
      at,
      sequence,
      hash,
      balance,
      previousHash: this.#previousHash,
      counted: this.#counted.size === 0 ? '' : JSON.stringify([...this.#counted]),
      opened: this.#opened.join('\n'),
      renewed: this.#renewed.join('\n'),
      ids: this.#ids.join('\n'),
      hashes: this.#hashes.join('\n'),
      bodies: this.#bodies.join('\n'),
    }
  }

  #push(lines: string[], line: string): void {
    lines.push(line)
    this.#size += line.length
  }
}

/** Reads the calls of each user that were counted. */
export const countedOf = (counted: string): Array<[userId: string, calls: number]> =>
  counted === '' ? [] : JSON.parse(counted)

/** Reads the calls that commit `number` opened. */
export function* openedOf(opened: string, number: number): Iterable<OpenCall> {
  for (const line of linesOf(opened)) {
    const [id = '', reserve, deadline, progress, opening = ''] = line.split('\t')
    yield {
      id,
      reserve: Number(reserve),
      deadline: Number(deadline),
      progress: progress || null,
      opening,
      openedBy: number,
      isStored: false,
      isChanged: false,
    }
  }
}

/** Reads the leases that were renewed. */
export function* renewedOf(renewed: string) {
  for (const line of linesOf(renewed)) {
    const [id = '', deadline, progress] = line.split('\t')
    yield { id, deadline: Number(deadline), progress: progress || null }
  }
}

export const linesOf = (text: string): string[] => (text === '' ? [] : text.split('\n'))
