import { serialize } from 'pg-protocol'

/** Statements that read or write rows, and leave the schema as it is. */
const ROW_STATEMENT = /^\s*(?:select|insert|update|delete|with)\b/i
const TRANSACTION_STATEMENT = /^\s*(?:begin|commit|rollback)\b/i

/** Each one takes some tens of kilobytes of the database's memory. */
const MOST_STATEMENTS = 500

/**
 * Statements that one session has parsed before. A parsed statement keeps its plan too, and both cost more than most
 * statements take to run. Neon parses each one anew, which has the same results.
 */
export class KeptStatements {
  /** Names by text. */
  readonly #names = new Map<string, string>()
  #parsed = 0

  /**
   * The messages that come before a Bind, and the name that it takes.
   *
   * @returns `name` is empty for a statement that is not kept
   */
  before(text: string): { messages: Buffer[]; name: string } {
    const isKept = ROW_STATEMENT.test(text)
    const messages: Buffer[] = []
    const mayChangeResults = !isKept && !TRANSACTION_STATEMENT.test(text)
    if (mayChangeResults || this.#names.size >= MOST_STATEMENTS) messages.push(...this.#forgetAll())
    const known = this.#names.get(text)
    if (known !== undefined) return { messages, name: known }
    this.#parsed += 1
    const name = isKept ? `kept_${this.#parsed}` : ''
    return { messages: [...messages, serialize.parse({ name, text })], name }
  }

  /** Keeps a statement that was parsed under a name of `before`. A statement that failed to parse is not kept. */
  keep(text: string, name: string): void {
    if (name !== '') this.#names.set(text, name)
  }

  /** A plan whose columns have other types since then would fail. */
  #forgetAll(): Buffer[] {
    const names = [...this.#names.values()]
    this.#names.clear()
    return names.map((name) => serialize.close({ type: 'S', name }))
  }
}
