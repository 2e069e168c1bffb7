import type { EventFilter, ModelEvent } from '../model-events.ts'

/** Events that a legacy completion can express. */
const VISIBLE = new Set<ModelEvent['type']>(['text', 'refusal', 'stop'])

/** Puts the prompt of a legacy completion before the answer of each choice (`echo`). For one call. */
export class PromptEcho implements EventFilter {
  readonly #prompt: string
  readonly #begun = new Set<number>()

  /** @param prompt as the caller wrote it. */
  constructor(prompt: string) {
    this.#prompt = prompt
  }

  events(event: ModelEvent): ModelEvent[] {
    // An answer without a choice is rendered as one empty choice, which has the prompt too.
    if (event.type === 'end') return [...(this.#begun.size === 0 ? this.#echo(0) : []), event]
    if (!('choice' in event) || !VISIBLE.has(event.type)) return [event]
    return [...this.#echo(event.choice), event]
  }

  #echo(choice: number): ModelEvent[] {
    if (this.#begun.has(choice)) return []
    this.#begun.add(choice)
    return this.#prompt === '' ? [] : [{ type: 'text', choice, text: this.#prompt }]
  }
}
