import { setTimeout as delay } from 'node:timers/promises'
import type { AnswerOf } from '../../src/client/management-client.ts'
import { counted } from '../../src/lib/counted.ts'
import type { Outcome } from './command.ts'
import { AdminError, usageError } from './errors.ts'
import { cell } from './output.ts'
import type { TableCall } from './table.ts'

type AuditRecord = AnswerOf<'audit.list'>['data'][number]

/** Records of different shards become visible out of order, within this time. */
const OVERLAP_MS = 60_000
/** Pause after a failure, doubled up to the longest. */
const [FIRST_PAUSE, LONGEST_PAUSE] = [1, 30]

/** Columns with their widths: what a table would have, of which the rows are not known yet. */
const COLUMNS: ReadonlyArray<[name: keyof AuditRecord, width: number]> = [
  ['at', 24],
  ['status', 6],
  ['surface', 17],
  ['model', 28],
  ['credits_settled', 15],
  ['key_id', 14],
  ['request_id', 0],
]

/** What has been read: the time of the newest record, and the ids of the records of the overlap before it, by their times. */
interface Position {
  newest: number | null
  /** The time of the oldest record that was read at the beginning: what is older is not followed. */
  floor: number
  seen: Map<string, number>
}

/**
 * Prints calls as their records appear, until Ctrl-C. It asks for the records since the newest that it knows, less an overlap, so
 * that what is recorded while the connection is lost is printed later.
 */
export async function tailCalls(call: TableCall): Promise<Outcome> {
  const { options, interrupted } = call
  const interval = options.number('interval') ?? 5
  const last = options.number('last') ?? 10
  if (interval < 1) throw usageError('--interval takes a number of seconds from 1')
  const position: Position = { newest: null, floor: 0, seen: new Map() }
  const earlier = await newCalls(call, position)
  if (!options.flag('json')) call.print(line(COLUMNS.map(([name]) => heading(name))))
  show(call, last > 0 ? earlier.slice(-last) : [])
  let pause = FIRST_PAUSE
  for (;;) {
    await sleep(interval, interrupted)
    if (interrupted.aborted) return { kind: 'printed' }
    try {
      show(call, await newCalls(call, position))
      pause = FIRST_PAUSE
    } catch (error) {
      if (!isPassing(error)) throw error
      call.note(`${(error as Error).message}; trying again in ${counted(pause, 'second')}`)
      await sleep(pause, interrupted)
      pause = Math.min(LONGEST_PAUSE, pause * 2)
    }
  }
}

/** Waits so many seconds, or until the signal. */
const sleep = (seconds: number, signal: AbortSignal) =>
  delay(seconds * 1000, undefined, { signal }).catch(() => {})

/** Calls that were recorded since the position, oldest first; at the beginning those of the newest records. Moves the position. */
async function newCalls(call: TableCall, position: Position): Promise<AuditRecord[]> {
  const { path, query } = await call.request()
  const { newest, seen } = position
  const since = newest === null ? {} : { from: new Date(newest - OVERLAP_MS).toISOString() }
  const records: AuditRecord[] = []
  for await (const page of call.gateway.pages('audit.list', {
    path,
    query: { ...query, ...since, limit: 200 },
  })) {
    records.push(...page.data)
    if (newest === null || call.interrupted.aborted) break
  }
  if (newest === null) position.floor = Date.parse(records.at(-1)?.at ?? '1970-01-01')
  const fresh = records.filter(({ id, at }) => !seen.has(id) && Date.parse(at) >= position.floor)
  let latest = newest ?? 0
  for (const { id, at } of fresh) {
    seen.set(id, Date.parse(at))
    latest = Math.max(latest, Date.parse(at))
  }
  position.newest = latest
  for (const [id, at] of seen) if (at < latest - 2 * OVERLAP_MS) seen.delete(id)
  return fresh.filter(({ kind }) => kind === 'call').toReversed()
}

function show(call: TableCall, calls: readonly AuditRecord[]): void {
  for (const record of calls) {
    const cells = COLUMNS.map(([name]) => cell(record[name]))
    call.print(call.options.flag('json') ? JSON.stringify(record) : line(cells))
  }
}

const heading = (name: string) => name.toUpperCase().replaceAll('_', ' ')

const line = (cells: readonly string[]) =>
  cells
    .map((text, index) => text.padEnd(COLUMNS[index]?.[1] ?? 0))
    .join('  ')
    .trimEnd()

/** What may be over by the next try: no answer, a limit, a failure of the gateway. */
const isPassing = (error: unknown): boolean =>
  error instanceof AdminError &&
  error.exitCode === 1 &&
  (error.status === undefined || error.status === 429 || error.status >= 500)
