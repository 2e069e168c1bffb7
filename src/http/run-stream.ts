import { RunEvents } from '../agents/live/run-events.ts'
import type { ViewedAttempt } from '../agents/live/run-view.store.ts'
import { pause } from '../lib/pause.ts'
import { KEEP_ALIVE } from '../responses/log/log-tail.ts'
import type { ResponseObject } from '../wire/responses.ts'

/** A run that is read again and again until it has ended. */
interface FollowedRun {
  status: string
  attempts: ReadonlyArray<Pick<ViewedAttempt, 'responseId' | 'hasResponse' | 'isOpen'>>
}

/** The source of the stream of a run. */
export interface RunSource<Run extends FollowedRun> {
  /** The run as it is now. @throws when it does not exist any more. */
  readRun(): Promise<Run>
  /** All events of an attempt's response, live or stored; null without one. */
  openAttempt(responseId: string): Promise<ReadableStream<Uint8Array> | null>
  /** The run as a response before its first step, and when it has ended. */
  beginning(run: Run): ResponseObject
  ended(run: Run): Promise<ResponseObject>
  /** Between two comments to a reader of a silent stream. */
  heartbeatMilliseconds: number
}

/** Wait between two reads of a run whose next step has not begun. It doubles from the first to the last value. */
const FIRST_WAIT_MS = 250
const LONGEST_WAIT_MS = 2_000
/** A run that cannot be read so often, for about a minute, ends its stream. */
const MOST_FAILURES = 30

/**
 * The events of a run as one stream of SSE frames: the events of the responses of its attempts, one after the other, stored
 * and live, until the run ends. Between two steps Postgres is polled for the next one.
 * @param run as it is now.
 */
export function runStream<Run extends FollowedRun>(
  source: RunSource<Run>,
  run: Run,
): ReadableStream<Uint8Array> {
  const leaving = new AbortController()
  const frames = runFrames(source, run, leaving.signal)
  return new ReadableStream(
    {
      async pull(controller) {
        const { done, value } = await frames.next()
        if (done) controller.close()
        else controller.enqueue(value)
      },
      async cancel(reason) {
        // Ends what it waits for, and then the generator.
        leaving.abort(reason)
        await frames.return(undefined).catch(() => {})
      },
    },
    { highWaterMark: 0 },
  )
}

async function* runFrames<Run extends FollowedRun>(
  source: RunSource<Run>,
  first: Run,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, undefined> {
  const events = new RunEvents()
  yield events.beginning(source.beginning(first))
  const wait = new Wait(source.heartbeatMilliseconds, signal)
  let run = first
  for (let followed = 0; ; ) {
    signal.throwIfAborted()
    const attempt = run.attempts[followed]
    const frames = attempt?.hasResponse ? await source.openAttempt(attempt.responseId) : null
    if (frames) yield* chunksOf(events.ofAttempt(frames), signal)
    // The response of a cancelled attempt may still begin: every later reader would get its events.
    if (attempt && (frames || !attempt.isOpen)) {
      followed++
      wait.restart()
    } else if (!attempt && run.status !== 'in_progress') {
      yield events.end(await source.ended(run))
      return
    } else {
      if (await wait.next()) yield KEEP_ALIVE
      run = await wait.tolerating(source.readRun(), run)
    }
  }
}

/** Waits for a run to change, ever longer. */
export class Wait {
  readonly #heartbeatMilliseconds: number
  readonly #signal: AbortSignal
  #milliseconds = FIRST_WAIT_MS
  #silent = 0
  #failures = 0

  constructor(heartbeatMilliseconds: number, signal: AbortSignal) {
    this.#heartbeatMilliseconds = heartbeatMilliseconds
    this.#signal = signal
  }

  restart(): void {
    this.#milliseconds = FIRST_WAIT_MS
    this.#silent = 0
  }

  /** @returns whether a heartbeat is due. @throws the reason of the signal. */
  async next(): Promise<boolean> {
    const milliseconds = Math.min(this.#milliseconds, this.#heartbeatMilliseconds)
    await pause(milliseconds, this.#signal)
    this.#milliseconds = Math.min(LONGEST_WAIT_MS, this.#milliseconds * 2)
    this.#silent += milliseconds
    if (this.#silent < this.#heartbeatMilliseconds) return false
    this.#silent = 0
    return true
  }

  /** The value that was read, or the known value while reading fails. @throws the error of reading when it fails for too long. */
  async tolerating<Value>(reading: Promise<Value>, known: Value): Promise<Value> {
    try {
      const value = await reading
      this.#failures = 0
      return value
    } catch (error) {
      if (++this.#failures > MOST_FAILURES) throw error
      return known
    }
  }
}

async function* chunksOf(
  stream: ReadableStream<Uint8Array>,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, undefined> {
  const reader = stream.getReader()
  // Fails if the stream has failed.
  const leave = () => reader.cancel(signal.reason).catch(() => {})
  signal.addEventListener('abort', leave)
  try {
    signal.throwIfAborted()
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      yield value
    }
  } finally {
    signal.removeEventListener('abort', leave)
    await leave()
  }
}
