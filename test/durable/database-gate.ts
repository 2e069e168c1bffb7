import { afterEach, beforeEach, vi } from 'vitest'

/** What stands between the objects and Postgres in a test; the tests run in the objects' isolate and share its fetch. */
export type GateMode = 'open' | 'away' | 'answer_lost'

const realFetch = globalThis.fetch

/**
 * Takes the place of the isolate's fetch: `away` fails before anything is sent, `answer_lost` lets the statements run
 * and fails afterwards, and `held` makes requests wait for their answer.
 */
export class DatabaseGate {
  mode: GateMode = 'open'
  held = false
  /** Only requests with this text are held. */
  heldText = ''
  /** Only requests with this text lose their answer. */
  lostText = ''
  readonly #requests: string[] = []
  /** What was logged as an error. */
  errorLog: string[] = []

  install(): void {
    this.#requests.length = 0
    globalThis.fetch = async (input, init) => {
      this.#requests.push(String(init?.body))
      const { mode } = this
      if (mode === 'away') throw new TypeError('connection refused (gate)')
      const response = await realFetch(input as Request, init)
      // Read before the gate closes, so that nothing of the answer is left unread.
      const body = await response.text()
      const isHeld = () => this.held && String(init?.body).includes(this.heldText)
      while (isHeld()) await new Promise((resolve) => setTimeout(resolve, 1))
      if (mode === 'answer_lost' && String(init?.body).includes(this.lostText))
        throw new TypeError('connection reset (gate)')
      return new Response(body, response)
    }
  }

  /** How many requests had this text: objects of other tests share the isolate, and its fetch. */
  requestsOf(text: string): number {
    return this.#requests.filter((body) => body.includes(text)).length
  }

  remove(): void {
    globalThis.fetch = realFetch
  }
}

/**
 * Puts a gate before Postgres in every test of a file, stops the clock that objects read (timers go on), and keeps the
 * log of expected failures out of the output.
 * @param now where the clock stands, in milliseconds since the epoch; the real time when left out.
 */
export function useDatabaseGate(now?: number): DatabaseGate {
  const gate = new DatabaseGate()
  beforeEach(() => {
    Object.assign(gate, { mode: 'open', held: false, heldText: '', lostText: '', errorLog: [] })
    gate.install()
    vi.spyOn(console, 'error').mockImplementation((line) => gate.errorLog.push(String(line)))
    // An object is not evicted while a timer is pending, and a signal's timer goes on after its request has ended.
    vi.spyOn(AbortSignal, 'timeout').mockImplementation(() => new AbortController().signal)
    vi.useFakeTimers({ toFake: ['Date'], now: now ?? Date.now() })
  })
  afterEach(() => {
    gate.remove()
    vi.restoreAllMocks()
    vi.useRealTimers()
  })
  return gate
}

/** Moves the stopped clock on. */
export function passTime(milliseconds: number): void {
  vi.setSystemTime(Date.now() + milliseconds)
}
