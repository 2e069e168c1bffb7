import { expect } from 'vitest'
import { type AttemptRow, attemptsByRun } from './attempts.ts'
import type { CallRecord } from './effect-checks.ts'
import type { DrivenRun } from './run-driver.ts'
import type { TapeSystem } from './tape-system.ts'
import type { UpstreamTape } from './upstream-tape.ts'

/** Calls of a judge for one step: after the last of them, its verdict is `unknown`. */
const MOST_CALLS = 3
/** After this many unusable answers the search for a verdict ends. */
const UNUSABLE_ANSWERS = 2

/** Expects the verdict that a judge of this kind leads to. Only a judge whose calls were all cut off has another one. */
export function expectVerdict({ plan: { judge } }: DrivenRun, row: AttemptRow, about: string): void {
  const isCompleted = row.status === 'completed'
  if (!isCompleted || judge === 'checks') {
    expect([row.verdict, row.verdict_cost], about).toEqual(isCompleted ? ['fail', 0] : [null, null])
    return
  }
  expect(judge === 'unusable' ? ['unknown'] : ['pass', 'unknown'], about).toContain(row.verdict)
  if (row.verdict === 'pass') return
  const isUnusable = judge === 'unusable' && row.verdict_details?.reason === 'invalid_answer'
  const least = isUnusable ? UNUSABLE_ANSWERS : MOST_CALLS
  expect(callsOf(row), about).toBeGreaterThanOrEqual(least)
  expect(callsOf(row), about).toBeLessThanOrEqual(MOST_CALLS)
}

const callsOf = ({ verdict_details: details }: AttemptRow): number => Number(details?.calls ?? 0)

/**
 * Expects that no call of a judge was sent or paid more often than its verdict says, whatever was delivered again.
 * @param records of the ledger.
 */
export async function expectSingleVerdicts(
  system: TapeSystem,
  { runs, upstream }: { runs: readonly DrivenRun[]; upstream: UpstreamTape },
  records: readonly CallRecord[],
): Promise<{ judged: number }> {
  const attempts = await attemptsByRun(system)
  const byAction = Map.groupBy(records, ({ action }) => action)
  const requests = upstream.judgements(system.judges)
  const byMark = Map.groupBy(
    runs.flatMap((run) => run.plan.steps.map(({ mark }, index) => ({ run, mark, number: index + 1 }))),
    ({ mark }) => mark,
  )
  let judged = 0
  for (const [mark, uses] of byMark) {
    const rows = uses.flatMap(({ run, number }) =>
      (attempts.get(run.runId) ?? []).filter((row) => row.number === number && row.status === 'completed'),
    )
    const sent = requests.get(mark)?.length ?? 0
    const about = JSON.stringify({ mark, sent, rows })
    expect(sent, about).toBeLessThanOrEqual(rows.reduce((sum, row) => sum + callsOf(row), 0))
    expect(sent, about).toBeGreaterThanOrEqual(rows.filter(({ verdict }) => verdict === 'pass').length)
    for (const row of rows) {
      expectPaid(row, byAction.get(`EVALUATE /v1/runs/${row.run_id} step ${row.number}`) ?? [], about)
    }
    judged += sent
  }
  return { judged }
}

/** A verdict costs what its calls did, and each of them has one record. */
function expectPaid(row: AttemptRow, records: readonly CallRecord[], about: string): void {
  const detail = `${about} ${JSON.stringify(records)}`
  const paid = records.reduce((sum, { cost }) => sum + cost, 0)
  // A call that its object could not settle itself is settled by its lease, after the verdict.
  expect(row.verdict_cost, detail).toBeLessThanOrEqual(paid)
  if (records.every(({ provenance }) => provenance === 'reported')) {
    expect(row.verdict_cost, detail).toBe(paid)
    expect(records.length, detail).toBe(callsOf(row))
  }
}
