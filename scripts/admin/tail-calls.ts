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

/**
 * Prints calls as their records appear, until Ctrl-C. It asks for the records since the newest that it knows, less an overlap, so
 * that what is recorded while the connection is lost is printed later.
 */
export async function tailCalls(call: TableCall): Promise<Outcome> {
  const { options, interrupted } = call
  const interval = options.number('interval') ?? 5
  const last = options.number('last') ?? 10
  if (interval < 1) throw usageError('--interval takes a number of seconds from 1')
  const seen = new Map<string, number>()
  const known = await newestCalls(call, last)
  if (!options.flag('json')) call.print(line(COLUMNS.map(([name]) => heading(name))))
  show(call, known.slice(0, last), seen)
  for (const { id, at } of known) seen.set(id, Date.parse(at))
  let pause = FIRST_PAUSE
  for (;;) {
    await delay(interval * 1000, undefined, { signal: interrupted }).catch(() => {})
    if (interrupted.aborted) return { kind: 'printed' }
    try {
      show(call, await callsSince(call, seen), seen)
      pause = FIRST_PAUSE
    } catch (error) {
      if (!isPassing(error)) throw error
      call.note(`${(error as Error).message}; trying again in ${counted(pause, 'second')}`)
      await delay(pause * 1000, undefined, { signal: interrupted }).catch(() => {})
      pause = Math.min(LONGEST_PAUSE, pause * 2)
    }
  }
}

/** The newest calls, newest first: so many as are asked for, or those of one page of records. */
async function newestCalls(call: TableCall, most: number): Promise<AuditRecord[]> {
  const { path, query } = await call.request()
  const limit = Math.min(200, Math.max(1, most * 2))
  const page = await call.gateway.call('audit.list', {
    path,
    query: { ...query, limit },
  })
  return page.data.filter(({ kind }) => kind === 'call')
}

/** Calls that were recorded since the newest known one, newest first. */
async function callsSince(call: TableCall, seen: Map<string, number>): Promise<AuditRecord[]> {
  const { path, query } = await call.request()
  const newest = Math.max(...seen.values())
  const from = Number.isFinite(newest) ? { from: new Date(newest - OVERLAP_MS).toISOString() } : {}
  for (const [id, at] of seen) if (at < newest - OVERLAP_MS) seen.delete(id)
  const calls: AuditRecord[] = []
  const request = { path, query: { ...query, ...from, limit: 200 } }
  for await (const { data } of call.gateway.pages('audit.list', request)) {
    calls.push(...data.filter(({ kind, id }) => kind === 'call' && !seen.has(id)))
    if (call.interrupted.aborted) break
  }
  return calls
}

/** Prints calls, oldest first. */
function show(call: TableCall, newestFirst: readonly AuditRecord[], seen: Map<string, number>): void {
  for (const record of newestFirst.toReversed()) {
    seen.set(record.id, Date.parse(record.at))
    call.print(
      call.options.flag('json') ? JSON.stringify(record) : line(COLUMNS.map(([name]) => cell(record[name]))),
    )
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
