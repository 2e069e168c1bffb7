import type { EventFilter, ModelEvent } from '../model-events.ts'
import { ClosingFence } from './closing-fence.ts'
import { JsonBeginning } from './json-beginning.ts'
import { JsonExtent } from './json-extent.ts'

/** Up to this a value is parsed when its brackets are closed, to know that it is JSON and not text in brackets. */
const LONGEST_PARSED = 256 * 1024

/**
 * Makes an answer that was asked for as JSON raw JSON (interface: JSON mode, case 2), as it streams. For one call.
 *
 * - A code fence around the JSON is cut, and so are words before and after it. A fence without a name or named `json`
 *   opens it; it ends with its object or array, or at a fence after that, or at a fence at the very end.
 * - Of bare JSON nothing is cut but what follows it, once it has proved to be JSON. Text in brackets passes as it is.
 * - An answer that begins with words is held back, up to 1,024 characters, until a fence that holds a bracket or a line
 *   that begins as an object does (`{"` or `{}`) tells where its JSON begins; the words before are dropped then. Without
 *   any, and before a tool call, they pass as they are: a model may refuse, or say what it is about to look up.
 * - White space is held back where it may stand before a closing fence, up to 256 characters.
 *
 * The work is linear in the text, however it is cut into pieces.
 */
export class FenceStripper implements EventFilter {
  #state: 'beginning' | 'fenced' | 'bare' | 'over' | 'plain' = 'beginning'
  #beginning = new JsonBeginning()
  readonly #extent = new JsonExtent()
  readonly #closing = new ClosingFence()
  /** The end of a fenced text that may be its closing fence. */
  #held = ''
  /** The value so far, until its brackets are closed. */
  #value: string[] = []
  #valueLength = 0
  #judged = false

  /** @returns the events to tell in place of the given one. Only text of the first choice is looked at. */
  events(event: ModelEvent): ModelEvent[] {
    if (event.type === 'end') return [...spoken(this.#end()), event]
    if (!('choice' in event) || event.choice !== 0) return [event]
    if (event.type === 'text') return spoken(this.#push(event.text))
    if (event.type === 'tool_call') return [...spoken(this.#interrupt()), event]
    return event.type === 'stop' ? [...spoken(this.#end()), event] : [event]
  }

  #push(text: string): string {
    if (this.#state === 'beginning') {
      const { told, beginning, rest } = this.#beginning.push(text)
      if (beginning !== null) this.#state = beginning === 'none' ? 'plain' : beginning
      return rest === '' ? told : told + this.#push(rest)
    }
    if (this.#state === 'over') return ''
    return this.#state === 'plain' ? text : this.#inValue(text)
  }

  #inValue(text: string): string {
    for (let at = 0; at < text.length; at++) {
      const character = text.charAt(at)
      this.#extent.push(character)
      if (this.#state === 'fenced') this.#closing.push(character)
      if (!this.#extent.complete) continue
      if (this.#closing.isWhole || this.#isJson(text.slice(0, at + 1))) {
        this.#state = 'over'
        return this.#release(text.slice(0, at + 1))
      }
      if (this.#state === 'bare') {
        this.#state = 'plain'
        return text
      }
    }
    this.#keep(text)
    return this.#release(text)
  }

  /** @param text more of a fenced or bare text. @returns what of it can be told now. */
  #release(text: string): string {
    const all = this.#held + text
    const end = all.length - this.#closing.held
    this.#held = this.#state === 'over' ? '' : all.slice(end)
    return all.slice(0, end)
  }

  #keep(text: string): void {
    if (this.#judged) return
    this.#valueLength += text.length
    if (this.#valueLength <= LONGEST_PARSED) this.#value.push(text)
    else this.#value = []
  }

  /** To be asked when the brackets of the value are closed, which happens once to JSON. */
  #isJson(text: string): boolean {
    if (this.#judged) return false
    this.#keep(text)
    this.#judged = true
    const value = this.#value.join('')
    this.#value = []
    return this.#valueLength > LONGEST_PARSED || parses(value)
  }

  /** A tool call parts texts: what came before it is no beginning of what follows. */
  #interrupt(): string {
    if (this.#state !== 'beginning') return ''
    const held = this.#beginning.end()
    this.#beginning = new JsonBeginning()
    return held
  }

  #end(): string {
    const state = this.#state
    const held = this.#held
    this.#state = 'plain'
    this.#held = ''
    if (state === 'beginning') return this.#beginning.end()
    return state === 'fenced' && !this.#closing.isCut ? held : ''
  }
}

const spoken = (text: string): ModelEvent[] => (text === '' ? [] : [{ type: 'text', choice: 0, text }])

function parses(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
