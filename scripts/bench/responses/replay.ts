import { BenchFailure } from '../measure.ts'
import { cpuMicroseconds } from '../process-usage.ts'
import { median } from '../statistics.ts'
import { type Calls, RESPONSE_ENDING } from './calls.ts'
import { beginResponse } from './running-response.ts'
import { callStream } from './stream-call.ts'

/** How fast the log of an ended response is replayed, over HTTP and to one reader. */
export interface ReplayFigures {
  events: number
  bytes: number
  /** From the first byte to the last. */
  eventsPerSecond: number
  megabytesPerSecond: number
  /** Milliseconds until the first byte. */
  firstByte: number
  /** CPU of the gateway's process, in microseconds. */
  cpuPerEvent: number
  replays: number
}

const EVENTS = 10_000
const LEAST_REPLAYS = 10

/** @param pid of the gateway's process. @param milliseconds about how long to replay */
export async function measureReplay(calls: Calls, pid: number, milliseconds: number): Promise<ReplayFigures> {
  const running = await beginResponse(calls, `long-stream tokens=${EVENTS}`)
  const { events, bytes } = await running.end()
  const request = calls.replay(running.id)
  const replay = async () => {
    const answer = await callStream(request, RESPONSE_ENDING)
    if (answer.events === events && answer.bytes === bytes) return answer
    throw new BenchFailure(
      `a replay sent ${answer.events} events of ${events}, ${answer.bytes} bytes of ${bytes}`,
    )
  }
  for (let call = 0; call < LEAST_REPLAYS; call += 1) await replay()
  const answers: Awaited<ReturnType<typeof replay>>[] = []
  const before = cpuMicroseconds(pid)
  const end = performance.now() + milliseconds
  while (answers.length < LEAST_REPLAYS || performance.now() < end) answers.push(await replay())
  const used = cpuMicroseconds(pid) - before
  const seconds = median(answers.map(({ firstByte, total }) => total - firstByte)) / 1_000
  return {
    events,
    bytes,
    eventsPerSecond: events / seconds,
    megabytesPerSecond: bytes / 1_000_000 / seconds,
    firstByte: median(answers.map(({ firstByte }) => firstByte)),
    cpuPerEvent: used / (answers.length * events),
    replays: answers.length,
  }
}
