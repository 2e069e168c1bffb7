import type { BenchSystem } from '../system.ts'
import { Calls } from './calls.ts'
import { type EventRateFigures, measureEventRates } from './event-rate.ts'
import { type FirstEventFigures, measureFirstEvents } from './first-event.ts'
import { measureTails, type TailFigures } from './open-tails.ts'
import { measureReplay, type ReplayFigures } from './replay.ts'
import { measureRows, type RowFigures } from './rows-written.ts'

/** The name of this section for `--only`. */
export const RESPONSES_SECTION = 'responses'

/** How many scenarios' worth of time the section takes. */
export const RESPONSES_SHARES = 3

export interface ResponsesFigures {
  firstEvents: FirstEventFigures
  rates: EventRateFigures
  replay: ReplayFigures
  rows: RowFigures[]
  tails: TailFigures
}

export interface ResponsesPlan {
  rounds: number
  /** About how long all of it may take, in milliseconds; there is a least that it takes. */
  milliseconds: number
}

const RATES = [50, 1_000]
const LEAST_ROW_SECONDS = 2
const MOST_ROW_SECONDS = 10
const LEAST_TAIL_MS = 2_000

/**
 * Measures the streams of responses: each part against the chat path or against what was aimed at, in one run.
 *
 * @throws BenchFailure when a single call fails
 */
export async function measureResponses(
  system: BenchSystem,
  { rounds, milliseconds }: ResponsesPlan,
  tell: (line: string) => void,
): Promise<ResponsesFigures> {
  const calls = new Calls(system)
  const { pid } = system.gateway
  const part = milliseconds / 5
  tell('responses: time to the first event')
  const firstEvents = await measureFirstEvents(calls, rounds, part / rounds)
  tell('responses: events per second')
  const rates = await measureEventRates(calls, pid, rounds)
  tell('responses: replay')
  const replay = await measureReplay(calls, pid, part)
  const rows: RowFigures[] = []
  const seconds = Math.min(MOST_ROW_SECONDS, Math.max(LEAST_ROW_SECONDS, part / 2_000))
  for (const rate of RATES) {
    tell(`responses: rows written at ${rate} events a second`)
    rows.push(await measureRows(system, calls, rate, seconds))
  }
  tell('responses: memory of open tails')
  const tails = await measureTails(system, calls, Math.max(LEAST_TAIL_MS, part))
  return { firstEvents, rates, replay, rows, tails }
}
