import { afterEach, beforeEach, expect, vi } from 'vitest'
import { Inspection, passAllEngine } from '../../../src/dlp/inspection.ts'
import { chatCompletions } from '../../../src/gateway/protocols/chat-completions.ts'
import type { Protocol } from '../../../src/gateway/protocols/protocol.ts'
import type { FrameConverter } from '../../../src/gateway/relay/stream-pipeline.ts'
import type { RelayEnd, RelayStart } from '../../../src/gateway/relay/stream-relay.ts'
import type { RelayTimes } from '../../../src/gateway/relay/stream-times.ts'
import { MemoryLedger } from '../ledger/memory-ledger.ts'
import { relayToHttp } from './http-relay.ts'
import { provideIdentityStream } from './identity-stream.ts'
import { chunks, events } from './stream-reading.ts'

const encoder = new TextEncoder()

/** A chunk of a chat stream with some text, and a whole short stream. */
export const chunkOf = (content: string) => chunks({ choices: [{ index: 0, delta: { content } }] })
export const STOP = chunks({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })
export const DONE = 'data: [DONE]\n\n'

/** The first event of a messages stream. */
export const MESSAGE_START = events({
  type: 'message_start',
  message: { usage: { input_tokens: 1, output_tokens: 1 } },
})
export const HEARTBEAT = ': heartbeat\n\n'
export const PING = 'event: ping\ndata: {"type":"ping"}\n\n'
/** A text longer than what may wait for a caller. */
export const LONG = 'x'.repeat(200_000)

/** For each test of a file: timers that the test moves. The streams' own turns stay real. */
export function moveTimersByHand(): void {
  provideIdentityStream()
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date'] })
  })
  afterEach(() => {
    vi.useRealTimers()
    vi.restoreAllMocks()
  })
}

const turn = globalThis.setTimeout
const IS_RUNTIME = navigator.userAgent === 'Cloudflare-Workers'

/** Lets everything run that does not wait for a timer: native streams need turns of the real event loop. */
export async function settle(): Promise<void> {
  for (let round = 0; round < 4; round++) await new Promise<void>((resolve) => turn(resolve, 0))
}

/** Waits for what follows from what has happened, as long as that takes a native stream in small pieces. */
export async function until(holds: () => boolean): Promise<void> {
  for (let round = 0; round < 500 && !holds(); round++) await settle()
  expect(holds()).toBe(true)
}

export async function advance(milliseconds: number): Promise<void> {
  await vi.advanceTimersByTimeAsync(milliseconds)
  await settle()
}

/** An upstream that sends what the test queues, and counts how often it was read. */
export class Upstream {
  asked = 0
  cancelled = 0
  readonly aborted = vi.fn()
  readonly abort = new AbortController()
  readonly stream: ReadableStream<Uint8Array>
  readonly #queue: Array<Uint8Array | string | Error> = []
  #controller: ReadableStreamDefaultController<Uint8Array> | null = null
  #wake: (() => void) | null = null

  constructor() {
    this.abort.signal.addEventListener('abort', this.aborted)
    this.stream = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller
        },
        pull: async () => {
          this.asked++
          while (this.#queue.length === 0) await new Promise<void>((resolve) => (this.#wake = resolve))
          this.#deliver()
        },
        cancel: () => {
          this.cancelled++
        },
      },
      { highWaterMark: 0 },
    )
  }

  #deliver(): void {
    const next = this.#queue.shift()
    if (next === 'close') this.#controller?.close()
    else if (next instanceof Error) this.#controller?.error(next)
    else if (typeof next === 'object' && this.cancelled === 0) this.#controller?.enqueue(next)
  }

  /** Queues chunks, each of which is one read, an error or `close`; and lets the relay take them. */
  async send(...parts: Array<string | Uint8Array | Error>): Promise<void> {
    for (const part of parts) {
      this.#queue.push(typeof part === 'string' && part !== 'close' ? encoder.encode(part) : part)
    }
    this.#wake?.()
    await settle()
  }
}

/** A caller whose reads the test controls. */
export class Caller {
  text = ''
  /** Chunks as they arrived. */
  readonly writes: string[] = []
  finished = false
  failed = false
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>
  readonly #decoder = new TextDecoder()

  constructor(body: ReadableStream<Uint8Array>) {
    this.#reader = body.getReader()
  }

  async readOne(): Promise<boolean> {
    const { done, value } = await this.#reader.read()
    if (value) {
      this.writes.push(new TextDecoder().decode(value))
      this.text += this.#decoder.decode(value, { stream: true })
    }
    return !done
  }

  readAll(): this {
    const run = async () => {
      while (await this.readOne());
      this.finished = true
    }
    run().catch(() => {
      this.failed = true
    })
    return this
  }

  cancel(): Promise<void> {
    return this.#reader.cancel('gone')
  }
}

const TIMES: RelayTimes = {
  commit: 15_000,
  heartbeat: 15_000,
  firstEvent: 300_000,
  betweenEvents: 120_000,
  gather: 10,
}

export interface RelayRun {
  upstream: Upstream
  inspection: Inspection
  leave: AbortController
  ledger: MemoryLedger
  body: ReadableStream<Uint8Array>
  /** Set as soon as the relay has started. */
  start: RelayStart | null
  end: RelayEnd | null
  failed: unknown
}

export interface RunOptions {
  /** Protocol of the upstream, and of the caller by default. */
  protocol?: Protocol
  caller?: Protocol
  /** Makes the caller's frames; null between equal protocols. */
  converter?: FrameConverter<Uint8Array> | null
  times?: Partial<RelayTimes>
  usageRequested?: boolean
  inspection?: Inspection
  /** The caller was gone before it began. */
  leftBefore?: boolean
}

/** Begins a relay; what becomes of it stands in the result. */
export async function run(options: RunOptions = {}): Promise<RelayRun> {
  const { protocol = chatCompletions, inspection = new Inspection(passAllEngine) } = options
  const upstream = new Upstream()
  const leave = new AbortController()
  if (options.leftBefore) leave.abort()
  const ledger = new MemoryLedger()
  const { usageRequested = true } = options
  const { body, start } = relayToHttp({
    upstream: upstream.stream,
    reader: protocol.streamReader({ inspection, modelId: null, usageRequested }),
    inspection,
    dialect: (options.caller ?? protocol).dialect,
    converter: options.converter ?? null,
    times: { ...TIMES, ...options.times },
    callerSignal: leave.signal,
    upstreamAbort: upstream.abort,
    ledger,
  })
  const relay: RelayRun = { upstream, inspection, leave, ledger, body, start: null, end: null, failed: null }
  start
    .then(async (start) => {
      relay.start = start
      relay.end = start.started ? await start.ended : start.end
    })
    .catch((error) => {
      relay.failed = error
    })
  await settle()
  return relay
}

/** The caller's side of a relay that has started. */
export function callerOf(relay: RelayRun): Caller {
  if (!relay.start?.started) throw new Error(`not started: ${JSON.stringify(relay.start)}`)
  return new Caller(relay.body)
}

/** A relay that has started with a first text, and a caller who has read it. */
export async function started(
  options: RunOptions = {},
  first = chunkOf('first'),
): Promise<RelayRun & { caller: Caller }> {
  const relay = await run(options)
  await relay.upstream.send(first)
  const caller = callerOf(relay).readAll()
  await settle()
  return Object.assign(relay, { caller })
}

/** After every end nothing is left running, and every byte that was read is counted. */
export function checkEnded(relay: RelayRun): void {
  expect(relay.failed).toBeNull()
  expect(relay.end).not.toBeNull()
  // In the runtime itself, objects of other tests set timers too.
  if (!IS_RUNTIME) expect(vi.getTimerCount()).toBe(0)
  const { inspected, uninspected, released, withheld } = relay.inspection.counts
  expect(inspected + uninspected).toBe(released + withheld)
}
