import { afterEach, beforeEach } from 'vitest'

/** Where the models of these tests are served. */
export const MODEL_URL = 'https://model.example.com/v1'

/** One request to the model, answered piece by piece as the test says. */
export class ModelRequest {
  aborted = false
  readonly #pieces: Array<string | number> = []
  #state: 'open' | 'ended' | 'broken' = 'open'
  readonly body: string

  constructor(body: string) {
    this.body = body
  }

  say(text: string): void {
    this.#push({ choices: [{ index: 0, delta: { content: text }, finish_reason: null }] })
  }

  /** Calls a tool with arguments that come in two pieces. @param index counts the calls of the answer. */
  call(name: string, json: string, index = 0): void {
    const id = `call_${crypto.randomUUID()}`
    const start = { index, id, type: 'function', function: { name, arguments: json.slice(0, 1) } }
    const rest = { index, function: { arguments: json.slice(1) } }
    for (const call of [start, rest]) {
      this.#push({ choices: [{ index: 0, delta: { tool_calls: [call] }, finish_reason: null }] })
    }
  }

  /** Says nothing for so many milliseconds before it says what follows. */
  pause(milliseconds: number): void {
    this.#pieces.push(milliseconds)
  }

  /** Ends the answer as the model does. */
  finish(reason: 'stop' | 'tool_calls' = 'stop'): void {
    this.#push({ choices: [{ index: 0, delta: {}, finish_reason: reason }] })
    this.#push({ choices: [], usage: { prompt_tokens: 5, completion_tokens: 7, total_tokens: 12 } })
    this.#pieces.push('data: [DONE]\n\n')
    this.#state = 'ended'
  }

  breakOff(): void {
    this.#state = 'broken'
  }

  #push(members: object): void {
    const chunk = {
      id: 'chatcmpl-1',
      object: 'chat.completion.chunk',
      created: 1,
      model: 'upstream',
      ...members,
    }
    this.#pieces.push(`data: ${JSON.stringify(chunk)}\n\n`)
  }

  /** The next piece when there is one. The object looks by itself: nothing of a test may reach into its requests. */
  async next(): Promise<string | null> {
    for (;;) {
      const piece = this.#pieces.shift()
      if (typeof piece === 'string') return piece
      if (this.aborted) throw new DOMException('aborted', 'AbortError')
      if (piece === undefined && this.#state === 'broken') throw new TypeError('connection reset (model)')
      if (piece === undefined && this.#state === 'ended') return null
      await new Promise((resolve) => setTimeout(resolve, piece ?? 1))
    }
  }
}

/** Stands in for the model in every test of a file; to be used after the gate before Postgres. */
export function useScriptedModel() {
  const requests: ModelRequest[] = []
  /** `answer` is called with each request, for models that need not be told what to say next. */
  const model: { requests: ModelRequest[]; answer: (request: ModelRequest) => void } = {
    requests,
    answer: () => {},
  }
  let before: typeof globalThis.fetch
  beforeEach(() => {
    requests.length = 0
    model.answer = () => {}
    before = globalThis.fetch
    globalThis.fetch = async (input, init) => {
      const url = input instanceof Request ? input.url : String(input)
      if (url.startsWith('http://127.0.0.1:9')) throw new TypeError('there is no Redis here')
      if (!url.startsWith(MODEL_URL)) return before(input as Request, init)
      const asked = new Request(input as Request, init)
      const request = new ModelRequest(await asked.text())
      requests.push(request)
      model.answer(request)
      init?.signal?.addEventListener('abort', () => {
        request.aborted = true
      })
      return new Response(bodyOf(request), { headers: { 'content-type': 'text/event-stream' } })
    }
  })
  afterEach(() => {
    for (const request of requests) request.aborted = true
    globalThis.fetch = before
  })
  return model
}

function bodyOf(request: ModelRequest): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  return new ReadableStream({
    async pull(controller) {
      const piece = await request.next()
      if (piece === null) controller.close()
      else controller.enqueue(encoder.encode(piece))
    },
    cancel() {
      request.aborted = true
    },
  })
}
