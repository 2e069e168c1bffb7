import type { ModelEvent } from '../model-events.ts'

/** A code fence before JSON: bare or named `json`, followed by a line end or by the value itself. */
const OPENING = /^\s*```[ \t]*(?:json)?[ \t]*(?=[\r\n{[])\s*/i
/** What may still become one. */
const OPENING_BEGUN = /^\s*(?:`{0,2}|```[ \t]*(?:j|js|jso|json[ \t]*)?)$/i
const BLANK = /^\s*$/
const FENCE = '```'

/**
 * Takes the code fence off an answer that was asked for as JSON (interface: JSON mode). Text without a fence at its very
 * beginning passes untouched. Of a fenced text the opening fence, a closing fence at the very end, and the white space
 * around the body are cut. Only what may still be one of these is held back. For one call.
 */
export class FenceStripper {
  #state: 'blank' | 'beginning' | 'before_body' | 'body' | 'unfenced' = 'blank'
  /** In pieces: to look at the end of a text that was put together makes one text of it, each time. */
  readonly #held: string[] = []

  /** @returns the events to tell in place of the given one. Only text of the first choice is looked at. */
  events(event: ModelEvent): ModelEvent[] {
    if (event.type === 'end') return [...spoken(this.#flush()), event]
    if (!('choice' in event) || event.choice !== 0) return [event]
    if (event.type === 'text') return spoken(this.#push(event.text))
    return event.type === 'stop' ? [...spoken(this.#flush()), event] : [event]
  }

  #push(text: string): string {
    if (this.#state === 'unfenced') return text
    return this.#state === 'before_body' || this.#state === 'body' ? this.#body(text) : this.#beginning(text)
  }

  // Models in JSON mode can run into white space without end: to look at all of it each time would be quadratic.
  #beginning(text: string): string {
    if (this.#state === 'blank' && BLANK.test(text)) return this.#hold(text)
    this.#state = 'beginning'
    const begun = this.#release() + text
    const opening = OPENING.exec(begun)
    if (opening) {
      this.#state = 'before_body'
      return this.#body(begun.slice(opening[0].length))
    }
    if (OPENING_BEGUN.test(begun)) return this.#hold(begun)
    this.#state = 'unfenced'
    return begun
  }

  #body(text: string): string {
    const wanted = this.#state === 'before_body' ? text.trimStart() : text
    if (wanted === '') return ''
    this.#state = 'body'
    const last = this.#held[this.#held.length - 1] ?? ''
    if (BLANK.test(wanted) && (BLANK.test(last.slice(-1)) || last.endsWith(FENCE))) return this.#hold(wanted)
    const all = this.#release() + wanted
    const end = endOfBody(all)
    this.#hold(all.slice(end))
    return all.slice(0, end)
  }

  #flush(): string {
    const fenced = this.#state === 'body'
    this.#state = 'unfenced'
    const rest = this.#release()
    return fenced ? withoutClosing(rest) : rest
  }

  #hold(text: string): '' {
    if (text !== '') this.#held.push(text)
    return ''
  }

  #release(): string {
    return this.#held.splice(0).join('')
  }
}

const spoken = (text: string): ModelEvent[] => (text === '' ? [] : [{ type: 'text', choice: 0, text }])

/** Where that begins which may still be cut: white space, a closing fence, and what may become one. */
function endOfBody(text: string): number {
  const trimmed = text.trimEnd()
  if (trimmed.endsWith(FENCE)) return beforeTicks(trimmed, FENCE.length)
  // The marks of a fence stand together: white space after one or two of them makes them text.
  if (trimmed.length < text.length || !trimmed.endsWith('`')) return trimmed.length
  return beforeTicks(trimmed, trimmed.endsWith('``') ? 2 : 1)
}

const beforeTicks = (text: string, ticks: number) => text.slice(0, -ticks).trimEnd().length

function withoutClosing(text: string): string {
  const trimmed = text.trimEnd()
  return trimmed.endsWith(FENCE) ? trimmed.slice(0, -FENCE.length).trimEnd() : trimmed
}
