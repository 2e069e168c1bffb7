/** What stands between the objects and Postgres in a test; the tests run in the objects' isolate and share its fetch. */
export type GateMode = 'open' | 'away' | 'answer_lost'

const realFetch = globalThis.fetch

/**
 * Takes the place of the isolate's fetch: `away` fails before anything is sent, `answer_lost` lets the statements run
 * and fails afterwards, and `held` makes requests wait.
 */
export class DatabaseGate {
  mode: GateMode = 'open'
  held = false
  requests = 0

  install(): void {
    globalThis.fetch = async (input, init) => {
      this.requests += 1
      const { mode } = this
      if (mode === 'away') throw new TypeError('connection refused (gate)')
      const response = await realFetch(input as Request, init)
      // Read before the gate closes, so that nothing of the answer is left unread.
      const body = await response.text()
      while (this.held) await new Promise((resolve) => setTimeout(resolve, 1))
      if (mode === 'answer_lost') throw new TypeError('connection reset (gate)')
      return new Response(body, response)
    }
  }

  remove(): void {
    globalThis.fetch = realFetch
  }
}
