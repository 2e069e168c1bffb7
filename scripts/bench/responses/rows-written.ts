import { BenchFailure } from '../measure.ts'
import { databaseFiles, readDatabase } from '../object-storage.ts'
import type { BenchSystem } from '../system.ts'
import type { Calls } from './calls.ts'
import { registerPaced } from './paced-script.ts'
import { beginResponse } from './running-response.ts'

/** What one response wrote for its events while its upstream sent them at some rate. */
export interface RowFigures {
  /** Events a second that the upstream was to send, and how many of them came. */
  wanted: number
  eventsPerSecond: number
  /** All events of the response. */
  events: number
  rows: number
  seconds: number
  rowsPerSecond: number
  eventsPerRow: number
  /** At most 10 rows a second or one for 16 events, and one for each beginning and end of something. */
  allowed: number
}

/** Beginnings and ends in a response of one text: eight events, and its first delta. */
const BOUNDARIES = 9
const ROWS_PER_SECOND = 10
const EVENTS_PER_ROW = 16

/**
 * Counts the rows of events in the SQLite file of a response's object. A row of an event log is never written again.
 * @param seconds how long the upstream sends
 */
export async function measureRows(
  system: BenchSystem,
  calls: Calls,
  rate: number,
  seconds: number,
): Promise<RowFigures> {
  const before = new Set(databaseFiles(system.gateway.storageDirectory))
  const script = await registerPaced(system.upstream, `bench-paced-${rate}`, { rate, seconds })
  const { total, events } = await (await beginResponse(calls, script)).end()
  const found = databaseFiles(system.gateway.storageDirectory)
    .filter((file) => !before.has(file))
    .flatMap(rowsOf)
  const [only] = found
  if (found.length !== 1 || only?.last !== events) {
    throw new BenchFailure(`of one response with ${events} events, found ${JSON.stringify(found)}`)
  }
  const measured = total / 1_000
  const { rows } = only
  const allowed = Math.max(ROWS_PER_SECOND * measured, events / EVENTS_PER_ROW) + BOUNDARIES
  return {
    wanted: rate,
    eventsPerSecond: events / measured,
    events,
    rows,
    seconds: measured,
    rowsPerSecond: rows / measured,
    eventsPerRow: events / rows,
    allowed,
  }
}

const rowsOf = (file: string): Array<{ rows: number; last: number }> =>
  readDatabase(file, (database) => {
    const query = 'SELECT count(*) AS rows, max(last_sequence) AS last FROM event_segments'
    const { rows, last } = database.prepare(query).get() ?? {}
    return { rows: Number(rows), last: Number(last) }
  })
