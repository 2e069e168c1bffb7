import type { EventFilter, ModelEvent } from '../model-events.ts'
import { JsonExtent } from './json-extent.ts'

/** Longest text, in characters, that is held back while an opening fence may still follow. */
const LONGEST_PREFACE = 1_024
/** A fence that begins the answer may enclose any value; one after words has to enclose an object or array. */
const OPENING_FENCE = /^\s*```[ \t]*(?:json[ \t]*)?[\r\n]|(?<!`)```\s*(?:json\s*)?(?=[{[])/i
const BARE_JSON = /^\s*[{[]/
const CLOSING_FENCE = '```'
/** Longest white space, in characters, that is held back because a closing fence may follow it. */
const LONGEST_BLANK = 256

/**
 * Removes the code fence around an answer that was requested as JSON (interface: JSON mode, case 2), while it streams.
 * For one call; only text of the first choice is changed.
 *
 * - The opening fence is removed with everything before it, if it begins within the first 1,024 characters.
 * - The closing fence is the first one outside a JSON string. It is removed with everything after it.
 * - An answer that begins with a bracket, and an answer without a fence, pass unchanged.
 */
export class FenceStripper implements EventFilter {
  #state: 'before' | 'fenced' | 'after' | 'plain' = 'before'
  /** Text not yet emitted: the preface, or white space and backticks that may be the closing fence. */
  #held = ''
  /** Whether the fence has held anything but white space so far. */
  #begun = false
  readonly #value = new JsonExtent()

  events(event: ModelEvent): ModelEvent[] {
    if (event.type === 'end') return [...textEvents(this.#flush()), event]
    if (!('choice' in event) || event.choice !== 0) return [event]
    if (event.type === 'text') return textEvents(this.#push(event.text))
    const endsText = event.type === 'tool_call' || event.type === 'stop'
    return endsText ? [...textEvents(this.#flush()), event] : [event]
  }

  #push(text: string): string {
    if (this.#state === 'plain') return text
    if (this.#state === 'after') return ''
    if (this.#state === 'fenced') return this.#insideFence(text)
    this.#held += text
    const isBare = BARE_JSON.test(this.#held)
    const fence = isBare ? null : OPENING_FENCE.exec(this.#held.slice(0, LONGEST_PREFACE))
    if (fence) {
      const inside = this.#held.slice(fence.index + fence[0].length)
      this.#held = ''
      this.#state = 'fenced'
      return this.#insideFence(inside)
    }
    if (!isBare && this.#held.length < LONGEST_PREFACE) return ''
    this.#state = 'plain'
    return this.#takeHeld()
  }

  #insideFence(text: string): string {
    let emitted = ''
    for (const character of text) {
      this.#value.push(character)
      const isBlank = character.trim() === ''
      if (isBlank && !this.#begun) continue
      this.#begun = true
      this.#held += character
      const mayClose = !this.#value.inString && (isBlank || character === '`')
      if (!mayClose || this.#held.length > LONGEST_BLANK) emitted += this.#takeHeld()
      else if (this.#held.endsWith(CLOSING_FENCE)) {
        this.#state = 'after'
        break
      }
    }
    return emitted
  }

  /** The text held back when the answer, or this part of it, ends: a preface without a fence is an answer by itself. */
  #flush(): string {
    return this.#state === 'before' ? this.#takeHeld() : ''
  }

  #takeHeld(): string {
    const held = this.#held
    this.#held = ''
    return held
  }
}

const textEvents = (text: string): ModelEvent[] => (text === '' ? [] : [{ type: 'text', choice: 0, text }])
