import type { ClientRequest } from 'node:http'
import { setTimeout } from 'node:timers/promises'
import { BenchFailure } from '../measure.ts'
import { residentBytes } from '../process-usage.ts'
import { median } from '../statistics.ts'
import type { BenchSystem } from '../system.ts'
import { type Calls, RESPONSE_ENDING } from './calls.ts'
import { registerPaced } from './paced-script.ts'
import { beginResponse, type RunningResponse } from './running-response.ts'
import { callStream, openStream, StreamReader } from './stream-call.ts'

/** Memory of the gateway's process with many readers of responses that generate. */
export interface TailFigures {
  responses: number
  tails: number
  /** Of them, those that read nothing of what is sent. */
  slow: number
  /** Bytes that each of the slow ones does not read. */
  logBytes: number
  /** Resident bytes: of a fresh process after one response, with the responses and no reader but their callers, with all tails. */
  before: number
  running: number
  open: number
  perTail: number
  /** Events that a reading tail got in the time, on average. */
  eventsPerTail: number
  milliseconds: number
}

const RESPONSES = 10
const TAILS = 500
/** How many there are for each that reads nothing. Prime to the number of responses, so that each has some. */
const SLOW_EVERY = 7
/** Sent before the tails are opened; the slow ones leave all of it unread. */
const EVENTS_BEFORE = 20_000
const EVENTS_PER_SECOND = 20
/** More than a run takes, which ends the responses itself. */
const LONGEST_SECONDS = 300
const BURST_LIMIT_MS = 60_000
const SETTLE_MS = 2_000
const SAMPLE_MS = 100

/**
 * Opens readers on running responses: most at the live edge, some from the first event of a long log. The latter then read
 * nothing.
 *
 * @param milliseconds how long all tails are held open
 * @throws BenchFailure when a tail is not opened, or one that reads gets nothing
 */
export async function measureTails(
  { gateway, upstream, variables }: BenchSystem,
  calls: Calls,
  milliseconds: number,
): Promise<TailFigures> {
  // What other measurements left behind would hide what the tails take.
  await gateway.restart(variables)
  const { pid } = gateway
  await callStream(calls.response(`long-stream tokens=${EVENTS_BEFORE}`), RESPONSE_ENDING)
  const before = await residentFor(pid, SETTLE_MS)
  const pace = { burst: EVENTS_BEFORE, rate: EVENTS_PER_SECOND, seconds: LONGEST_SECONDS }
  const script = await registerPaced(upstream, 'bench-tails', pace)
  const running = await Promise.all(Array.from({ length: RESPONSES }, () => beginResponse(calls, script)))
  // They are ended in mid-stream.
  for (const { end } of running) end().catch(() => {})
  const tails: Tail[] = []
  try {
    const logBytes = await Promise.all(running.map(burstBytes))
    const withResponses = await residentFor(pid, SETTLE_MS)
    for (let number = 0; number < TAILS; number += 1) tails.push(await openTail(calls, running, number))
    const open = await residentFor(pid, milliseconds)
    const read = tails.flatMap(({ reader }) => reader ?? [])
    const silent = read.filter(({ events }) => events === 0).length
    if (silent > 0) throw new BenchFailure(`${silent} of ${read.length} open tails got nothing`)
    return {
      responses: RESPONSES,
      tails: tails.length,
      slow: tails.length - read.length,
      logBytes: median(logBytes),
      before,
      running: withResponses,
      open,
      perTail: (open - withResponses) / tails.length,
      eventsPerTail: read.reduce((sum, { events }) => sum + events, 0) / read.length,
      milliseconds,
    }
  } finally {
    for (const { call } of tails) call.destroy()
    await Promise.all(running.map(({ id }) => calls.cancel(id)))
  }
}

interface Tail {
  call: ClientRequest
  /** Null for one that reads nothing. */
  reader: StreamReader | null
}

async function openTail(calls: Calls, running: RunningResponse[], number: number): Promise<Tail> {
  const response = running[number % running.length]
  if (response === undefined) throw new BenchFailure('there is no response to follow')
  const slow = number % SLOW_EVERY === 0
  const { call, answer } = await openStream(
    calls.replay(response.id, slow ? 0 : response.received.events - 1),
  )
  // Both are cut off at the end.
  call.on('error', () => {})
  answer.on('error', () => {})
  if (slow) return { call, reader: null }
  const reader = new StreamReader(performance.now())
  answer.on('data', (bytes: Buffer) => reader.take(bytes))
  return { call, reader }
}

/** Waits until a response has sent its first burst. @returns bytes of its log until then */
async function burstBytes({ received }: RunningResponse): Promise<number> {
  const end = performance.now() + BURST_LIMIT_MS
  while (received.events < EVENTS_BEFORE) {
    if (performance.now() > end)
      throw new BenchFailure(`a response sent ${received.events} events in a minute`)
    await setTimeout(50)
  }
  return received.bytes
}

/** The median of resident memory over a time. */
async function residentFor(pid: number, milliseconds: number): Promise<number> {
  const samples: number[] = []
  const end = performance.now() + milliseconds
  do {
    await setTimeout(SAMPLE_MS)
    samples.push(residentBytes(pid))
  } while (performance.now() < end)
  return median(samples)
}
