import { DatabaseSync, type SQLInputValue } from 'node:sqlite'
import type { LedgerStorage } from '../../../src/ledger/account/account-tables.ts'

/** The storage of a Durable Object over SQLite in memory, as far as the ledger uses it. */
export function memoryStorage(): LedgerStorage & { failNext(): void } {
  const database = new DatabaseSync(':memory:')
  let failing = false
  const exec = (query: string, ...bindings: SQLInputValue[]) => {
    if (failing && /^\s*(INSERT INTO|UPDATE) commits/.test(query)) {
      failing = false
      throw new Error('disk full')
    }
    const isScript = bindings.length === 0 && query.trim().replace(/;$/, '').includes(';')
    if (isScript) database.exec(query)
    const rows = isScript ? [] : database.prepare(query).all(...bindings)
    return {
      rowsWritten: Number(database.prepare('SELECT changes() AS changes').get()?.changes),
      toArray: () => rows,
      one: () => rows[0],
      [Symbol.iterator]: () => rows[Symbol.iterator](),
    }
  }
  return {
    sql: { exec, databaseSize: 0 } as unknown as SqlStorage,
    transactionSync: (work) => {
      database.exec('SAVEPOINT work')
      try {
        const result = work()
        database.exec('RELEASE work')
        return result
      } catch (error) {
        database.exec('ROLLBACK TO work; RELEASE work')
        throw error
      }
    },
    /** The next commit is not written. */
    failNext: () => {
      failing = true
    },
  }
}
