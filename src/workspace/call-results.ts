import { WorkspaceError } from './contract.ts'
import { FileError } from './files/file-error.ts'
import { RESULT_MEMORY_MS } from './limits.ts'

/** Size of a part in UTF-16 units, of which each has at most three bytes: a row holds at most 2 MB. */
const PART = 256 * 1024
/** Results of the last calls, which no quota of files counts. */
const MOST_RESULTS = 32
/** Maximum number of parts of all results together; one of the largest outputs has about 40. */
const MOST_PARTS = 64

/**
 * The calls of tools that have begun, and the results of the last calls with effects, by call id. A call is recorded, on disk,
 * before it runs. A request that is repeated, because its answer was lost, gets the first result; a call without effects runs
 * again. A recorded call without a result is not run again: the object ended during the call, perhaps because of it. The same
 * holds for a call whose result was dropped, because all results together were too large.
 */
export class CallResults {
  readonly #sql: SqlStorage
  readonly #sync: () => Promise<void>
  readonly #now: () => number

  /** Creates the tables. @param sync resolves when what was written is on disk. */
  constructor(sql: SqlStorage, sync: () => Promise<void>, now: () => number) {
    this.#sql = sql
    this.#sync = sync
    this.#now = now
    sql.exec(
      'CREATE TABLE IF NOT EXISTS calls (id TEXT PRIMARY KEY, begun INTEGER NOT NULL, parts INTEGER) WITHOUT ROWID',
    )
    sql.exec(
      'CREATE TABLE IF NOT EXISTS results (call TEXT, number INTEGER, text TEXT, PRIMARY KEY (call, number)) WITHOUT ROWID',
    )
  }

  /**
   * Runs a call with effects, or returns the result of its first run. Calls are made one after another.
   * @throws WorkspaceError interrupted for a call that ended without a result, and what `run` throws, which had no effect.
   */
  async once<Result>(callId: string, run: () => Promise<Result>): Promise<Result> {
    const known = this.#known(callId, EFFECTS_UNKNOWN)
    if (known) return known.result as Result
    await this.#begin(callId)
    try {
      const result = await run()
      this.#store(callId, JSON.stringify(result))
      return result
    } catch (error) {
      if (hadNoEffect(error)) this.#forget(callId)
      throw error
    }
  }

  /** Runs a call without effects. @throws WorkspaceError interrupted if the object has ended in its middle; what `run` throws. */
  async reading<Result>(callId: string, run: () => Promise<Result>): Promise<Result> {
    this.#known(callId, NOTHING_CHANGED)
    await this.#begin(callId)
    try {
      return await run()
    } finally {
      this.#forget(callId)
    }
  }

  /** Deletes what is older than results are remembered. @returns when there will be more of it; null without any. */
  forgetOld(): number | null {
    this.#forgetOld()
    const { oldest } = this.#sql
      .exec<{ oldest: number | null }>('SELECT min(begun) AS oldest FROM calls')
      .one()
    return oldest === null ? null : oldest + RESULT_MEMORY_MS + 1
  }

  /** @param message of a call that has begun, and has no result. */
  #known(callId: string, message: string): { result: unknown } | null {
    this.#forgetOld()
    const call = this.#sql
      .exec<{ parts: number | null }>('SELECT parts FROM calls WHERE id = ?', callId)
      .toArray()[0]
    if (!call) return null
    if (call.parts === null) throw new WorkspaceError('interrupted', message)
    const parts = this.#sql.exec<{ text: string }>(
      'SELECT text FROM results WHERE call = ? ORDER BY number',
      callId,
    )
    return { result: JSON.parse([...parts].map(({ text }) => text).join('')) }
  }

  async #begin(callId: string): Promise<void> {
    this.#sql.exec('INSERT INTO calls (id, begun) VALUES (?, ?)', callId, this.#now())
    await this.#sync()
  }

  #forget(callId: string): void {
    this.#sql.exec('DELETE FROM calls WHERE id = ?', callId)
  }

  #store(callId: string, json: string): void {
    let number = 0
    for (let at = 0; at < json.length; at += PART) {
      this.#sql.exec('INSERT INTO results VALUES (?, ?, ?)', callId, number++, json.slice(at, at + PART))
    }
    this.#sql.exec('UPDATE calls SET parts = ? WHERE id = ?', number, callId)
    this.#dropTooMany()
  }

  /** Drops the oldest results that do not fit. Their calls stay recorded. */
  #dropTooMany(): void {
    const totals =
      'SELECT id, sum(parts) OVER (ORDER BY begun DESC, id) AS total FROM calls WHERE parts IS NOT NULL'
    const { rowsWritten } = this.#sql.exec(
      `UPDATE calls SET parts = NULL WHERE id IN (SELECT id FROM (${totals}) WHERE total > ?)`,
      MOST_PARTS,
    )
    if (rowsWritten === 0) return
    this.#sql.exec('DELETE FROM results WHERE call NOT IN (SELECT id FROM calls WHERE parts IS NOT NULL)')
  }

  #forgetOld(): void {
    const before = this.#now() - RESULT_MEMORY_MS
    const latest = 'SELECT id FROM calls WHERE begun >= ? ORDER BY begun DESC LIMIT ?'
    this.#sql.exec(`DELETE FROM results WHERE call NOT IN (${latest})`, before, MOST_RESULTS)
    this.#sql.exec(`DELETE FROM calls WHERE id NOT IN (${latest})`, before, MOST_RESULTS)
  }
}

/** Refusals come before the first effect, or roll it back. */
const hadNoEffect = (error: unknown): boolean => error instanceof WorkspaceError || error instanceof FileError

const EFFECTS_UNKNOWN =
  'The call was interrupted, and it is not known how much of it was done. Look at the files before you repeat it.'
const NOTHING_CHANGED =
  'The call was interrupted, perhaps because it took too much time or memory. It has changed nothing. Ask for less at once.'
