import { conversation } from '../conversations.ts'
import { BenchFailure } from '../measure.ts'
import type { BenchSystem } from '../system.ts'
import type { StreamRequest } from './stream-call.ts'

/** The last event of a response, and of a chat completion. */
export const RESPONSE_ENDING = 'event: response.completed'
export const CHAT_ENDING = 'data: [DONE]'

/** Where the first text of an answer stands. */
export const CREATED = /event: response\.created\n/
export const FIRST_DELTA = /event: response\.output_text\.delta\n/
export const FIRST_CHAT_DELTA = /"content":"[^"]/

const MODEL = 'scripted-chat'
const BODY_BYTES = 1024

/** The calls of this section, as the demo organization's owner, all of one conversation of about 1 KB. */
export class Calls {
  readonly #port: number
  readonly #headers: Record<string, string>

  constructor({ gateway, scenarios }: BenchSystem) {
    this.#port = gateway.port
    this.#headers = scenarios[0]?.call.headers ?? {}
  }

  /** @param script what the upstream plays: its name and what follows it. */
  chat(script: string): StreamRequest {
    const members = { model: MODEL, max_tokens: 100_000, temperature: 1, stream: true }
    return this.#post('/v1/chat/completions', conversation(members, `script:${script} `, BODY_BYTES))
  }

  /** @param more members besides the conversation, `store` for one. */
  response(script: string, more: Record<string, unknown> = {}): StreamRequest {
    const members = { model: MODEL, max_output_tokens: 100_000, temperature: 1, stream: true, ...more }
    const { messages: input, ...rest } = conversation(members, `script:${script} `, BODY_BYTES)
    return this.#post('/v1/responses', { ...rest, input })
  }

  /** The stream of a response that exists. @param after number of the last event that the reader has */
  replay(id: string, after = 0): StreamRequest {
    const path = `/v1/responses/${id}?stream=true&starting_after=${after}`
    return { port: this.#port, path, headers: this.#headers }
  }

  /** Ends a response. @throws BenchFailure when that is refused */
  async cancel(id: string): Promise<void> {
    const url = `http://127.0.0.1:${this.#port}/v1/responses/${id}/cancel`
    const response = await fetch(url, { method: 'POST', headers: this.#headers, body: '{}' })
    await response.arrayBuffer()
    if (!response.ok) throw new BenchFailure(`cancelling a response: status ${response.status}`)
  }

  #post(path: string, body: Record<string, unknown>): StreamRequest {
    return { port: this.#port, path, headers: this.#headers, body: JSON.stringify(body) }
  }
}
