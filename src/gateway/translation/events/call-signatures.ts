import type { CallerProtocol } from '../../protocols/protocol.ts'
import { markedSignature } from '../marked-signature.ts'
import type { EventFilter, ModelEvent } from '../model-events.ts'

/**
 * Puts signatures where the caller's protocol has a place for them. A call of generateContent has the signature of the
 * reasoning before it: messages and responses have it on that reasoning, chat completions on the call. Callers of messages
 * and chat completions send it back by themselves, so that it is marked with its origin. Redacted reasoning has no place for
 * a mark: only responses have it.
 */
export class CallSignatures implements EventFilter {
  readonly #caller: CallerProtocol
  readonly #origin: string | undefined

  /** @param origin of the model that answers; without one callers get no signatures. */
  constructor(caller: CallerProtocol, origin: string | undefined) {
    this.#caller = caller
    this.#origin = origin
  }

  events(event: ModelEvent): ModelEvent[] {
    if (event.type === 'reasoning_signature') return this.#proof(event.signature, event.choice)
    if (event.type === 'redacted_reasoning' && this.#caller !== 'responses') return []
    if (event.type !== 'tool_call' || event.signature === undefined) return [event]
    const { signature, ...call } = event
    if (this.#caller !== 'chat_completions') return [...this.#proof(signature, event.choice), call]
    return [
      this.#origin === undefined ? call : { ...call, signature: markedSignature(signature, this.#origin) },
    ]
  }

  #proof(signature: string, choice: number): ModelEvent[] {
    if (this.#caller === 'responses') return [{ type: 'reasoning_signature', choice, signature }]
    if (this.#caller !== 'messages' || this.#origin === undefined) return []
    return [{ type: 'reasoning_signature', choice, signature: markedSignature(signature, this.#origin) }]
  }
}
