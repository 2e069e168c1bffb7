/** Description of one result column, as Neon's endpoint and `pg` name its members. */
export interface ResultField {
  readonly name: string
  readonly tableID: number
  readonly columnID: number
  readonly dataTypeID: number
  readonly dataTypeSize: number
  readonly dataTypeModifier: number
  readonly format: string
}

/** The outcome of one statement. Values are PostgreSQL's own text form; the Neon driver does the parsing. */
export interface StatementResult {
  readonly fields: ResultField[]
  readonly rows: (string | null)[][]
  /** First word of the command tag, for example `INSERT`. */
  readonly command: string
  /** The number in the command tag, or nothing where the tag has none (`CREATE TABLE`). */
  readonly rowCount: number | null
}

/** A database session, used by one HTTP request at a time. */
export interface SqlSession {
  /**
   * Runs one statement by the extended protocol, which takes one statement only.
   *
   * @throws the database's error, with `severity`, `code` and the other fields of an ErrorResponse
   */
  query(text: string, parameters: unknown[]): Promise<StatementResult>
  /** Gives the session back: an open transaction is rolled back and what `SET` changed is undone. */
  end(): Promise<void>
}

/** Runs statements: embedded Postgres or a real one. */
export interface PostgresBackend {
  openSession(): Promise<SqlSession>
  close(): Promise<void>
}

/**
 * Reads a command tag such as `INSERT 0 3` or `CREATE TABLE`.
 *
 * @returns its first word and, if the tag ends in one, its row count
 */
export function readCommandTag(tag: string): { command: string; rowCount: number | null } {
  const words = tag.split(' ')
  const last = words.at(-1) ?? ''
  return { command: words[0] ?? '', rowCount: words.length > 1 && /^\d+$/.test(last) ? Number(last) : null }
}

/** Turns a JSON parameter into the text form that the protocol carries. */
export function toParameterText(value: unknown): string | null {
  if (value === null || value === undefined) return null
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

/** A statement that starts with one of these words, at the start or after a semicolon. */
const CHANGING_START =
  /(?:^|;)(?:\s|--[^\n]*\n|\/\*[\s\S]*?\*\/)*(?:set|begin|start|prepare|listen|discard|load|do|call|create\s+(?:local\s+|global\s+)?temp)/i

/** A function or a clause that changes the session, in any place of a statement. */
const CHANGING_PART = /\bset_config\b|advisory_lock|\binto\s+temp/i

/**
 * Whether a statement can leave something behind in its session: a setting, an open transaction, an advisory
 * lock, a prepared statement, a temporary table. Neon runs every HTTP query in a session of its own, so none of
 * that may reach the next query. False alarms only cost time.
 */
export function mayChangeSession(text: string): boolean {
  return CHANGING_START.test(text) || CHANGING_PART.test(text)
}
