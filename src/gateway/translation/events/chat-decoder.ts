import { usageOfChat } from '../../protocols/usage.ts'
import { type Json, listOf, objectOf, textOf } from '../json.ts'
import type { EventDecoder, ModelEvent } from '../model-events.ts'
import { stopReasonOfChat } from './stop-reasons.ts'

/** Reads chat completions, chunks or whole. */
export class ChatDecoder implements EventDecoder {
  #started = false
  /** Tool calls of each choice, by the upstream's index or, where it sends none, by id: numbered as they appear. */
  readonly #calls = new Map<number, Map<string, number>>()

  frame(_event: string | null, data: Json): ModelEvent[] {
    const events: ModelEvent[] = []
    if (!this.#started) events.push(this.#start(data))
    for (const choice of listOf(data.choices)) this.#choice(choice, objectOf(choice.delta), events)
    const usage = usageOfChat(data.usage)
    if (usage) events.push({ type: 'usage', usage })
    return events
  }

  answer(body: Json): ModelEvent[] {
    const events: ModelEvent[] = [this.#start(body)]
    for (const choice of listOf(body.choices)) this.#choice(choice, objectOf(choice.message), events)
    const usage = usageOfChat(body.usage)
    if (usage) events.push({ type: 'usage', usage })
    return [...events, { type: 'end' }]
  }

  #start(data: Json): ModelEvent {
    this.#started = true
    const created = typeof data.created === 'number' ? data.created : null
    return {
      type: 'start',
      id: textOf(data.id),
      model: textOf(data.model),
      createdSeconds: created,
      usage: null,
    }
  }

  #choice(choice: Json, part: Json, events: ModelEvent[]): void {
    const index = typeof choice.index === 'number' ? choice.index : 0
    // Two names are in use for readable reasoning: DeepSeek and vLLM say the first, OpenRouter the second.
    const reasoning = textOf(part.reasoning_content) || textOf(part.reasoning)
    if (reasoning) events.push({ type: 'reasoning', choice: index, text: reasoning })
    const text = contentText(part.content)
    if (text) events.push({ type: 'text', choice: index, text })
    const refusal = textOf(part.refusal)
    if (refusal) events.push({ type: 'refusal', choice: index, text: refusal })
    for (const [position, call] of listOf(part.tool_calls).entries())
      this.#call(index, call, position, events)
    if (typeof choice.finish_reason === 'string') {
      const reason = stopReasonOfChat(choice.finish_reason)
      events.push({ type: 'stop', choice: index, reason, stopSequence: null, explanation: null })
    }
  }

  #call(choice: number, call: Json, position: number, events: ModelEvent[]): void {
    const known = this.#calls.get(choice) ?? new Map<string, number>()
    this.#calls.set(choice, known)
    const key = callKey(call, position)
    let number = known.get(key)
    const made = objectOf(call.function ?? call.custom)
    if (number === undefined) {
      number = known.size
      known.set(key, number)
      events.push({ type: 'tool_call', choice, call: number, id: textOf(call.id), name: textOf(made.name) })
    }
    const json = textOf(made.arguments) || textOf(made.input)
    if (json) events.push({ type: 'tool_arguments', choice, call: number, json })
  }
}

/** Identity of a call over its fragments: the index on streams, the place in a whole answer. */
function callKey(call: Json, position: number): string {
  return typeof call.index === 'number' ? `index ${call.index}` : `place ${position}`
}

/** Content of an answer is text; some upstreams send it as parts. */
function contentText(content: unknown): string {
  if (typeof content === 'string') return content
  return listOf(content)
    .map((part) => textOf(part.text))
    .join('')
}
