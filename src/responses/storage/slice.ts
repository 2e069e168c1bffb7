import type { LiveParts } from './live-parts.ts'
import { Tables } from './tables.ts'

/**
 * Integer keys that each response of an object has: 1,024 rows for each of 67 million events. 65,536 responses of an object are
 * 2^52 keys, which a JavaScript number represents exactly.
 */
export const KEYS_PER_RESPONSE = 2 ** 36

/**
 * The part of an object's storage that one response has. All responses of an object share its tables: their integer keys
 * begin at `firstKey`, and their names with `prefix`.
 */
export interface Slice {
  readonly sql: SqlStorage
  readonly tables: Tables
  readonly firstKey: number
  readonly prefix: string
  /** What the response stores together with others while it is live; null in an object that has one response. */
  readonly live: LiveParts | null
  transactionSync<Result>(work: () => Result): Result
  /** To be called in the turn of the first write of a response, or of the first after `deleteAll`. Stores the head if `live` has one. */
  open(): void
  /**
   * Sets the alarm of the response, in place of an earlier one.
   * @param time milliseconds since the epoch. @param isActive whether the response has to be continued after a restart of the
   * object. One that is not is opened when it is read, and by its alarm.
   */
  setAlarm(time: number, isActive: boolean): Promise<void>
  /** Deletes everything that the response has stored. */
  deleteAll(): Promise<void>
  /** The window of the response is closed: what it has stored is not read again, and may be deleted with that of others. */
  close(): Promise<void>
}

/** The storage of an object that has one response. */
export function wholeStorage(storage: DurableObjectStorage): Slice {
  const tables = new Tables(storage.sql)
  const deleteAll = (): Promise<void> => {
    tables.forget()
    return storage.deleteAll()
  }
  return {
    sql: storage.sql,
    tables,
    firstKey: 0,
    prefix: '',
    live: null,
    transactionSync: (work) => storage.transactionSync(work),
    open: () => {},
    setAlarm: (time) => storage.setAlarm(time),
    deleteAll,
    close: deleteAll,
  }
}
