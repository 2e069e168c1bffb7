/** What an answer begins with: JSON in a code fence, bare JSON, or neither. */
export type Beginning = 'fenced' | 'bare' | 'none'

interface Found {
  /** Text to tell now. */
  told: string
  /** Null while nothing is decided. */
  beginning: Beginning | null
  /** The text from the first character of the JSON on. */
  rest: string
}

/**
 * Characters that are held back at most until it is decided where the JSON begins. The sentences that models write
 * before it are shorter, and of prose without any JSON nobody misses the first lines for a second.
 */
const LONGEST_HELD = 1_024
const LONGEST_LABEL = 32
const LABEL = /^[ \t]*(?:json[ \t]*)?$/i
const LABEL_BEGUN = /^[ \t]*(?:j|js|jso|json[ \t]*)?$/i

/**
 * Finds where the JSON of an answer begins, looking at each character once. The first one that is not blank decides as a
 * rule: a bracket begins bare JSON, and a fence, without a name or named `json`, begins what it holds. After any other
 * character the answer begins with words. They are held back up to a limit, and dropped when a fence follows that holds
 * a bracket, or a line that begins as an object does.
 */
export class JsonBeginning {
  #held = ''
  #phase: 'blank' | 'words' | 'ticks' | 'label' | 'gap' | 'brace' = 'blank'
  #ticks = 0
  #label = ''
  /** Whether the answer begins with words. */
  #spoke = false
  /** Whether a line of them began, and only blanks came since. */
  #atLineStart = false
  /** Whether a fence of another name began: braces in it are code. */
  #code = false
  /** Where in what is held the value begins. */
  #valueAt = 0

  push(text: string): Found {
    let told = ''
    for (let at = 0; at < text.length; at++) {
      const character = text.charAt(at)
      this.#held += character
      const beginning = this.#step(character)
      if (beginning) {
        // Blanks before bare JSON are JSON too.
        if (this.#phase === 'blank') told += this.#held.slice(0, this.#valueAt)
        return { told, beginning, rest: this.#held.slice(this.#valueAt) + text.slice(at + 1) }
      }
      if (this.#held.length < LONGEST_HELD) continue
      if (this.#phase !== 'blank' && !this.#isInFence) {
        return { told: told + this.#held + text.slice(at + 1), beginning: 'none', rest: '' }
      }
      // Models in JSON mode can run into white space without end.
      if (this.#phase === 'blank') told += this.#held
      this.#held = ''
    }
    return { told, beginning: null, rest: '' }
  }

  /** @returns what is held, for a text that ends here. A fence around nothing is cut. */
  end(): string {
    return this.#isInFence ? '' : this.#held
  }

  /** Whether the answer begins with a fence that can be nothing else. */
  get #isInFence(): boolean {
    return this.#phase === 'gap' && !this.#spoke
  }

  #step(character: string): Beginning | null {
    if (this.#phase === 'ticks') return this.#inTicks(character)
    if (this.#phase === 'label') return this.#inLabel(character)
    if (this.#phase === 'words') return this.#inWords(character)
    // The other phases end with the first character that is not blank.
    if (isBlank(character)) return null
    if (this.#phase === 'brace') {
      return character === '"' || character === '}' ? 'bare' : this.#inWords(character)
    }
    const opens = character === '{' || character === '['
    if (opens || this.#isInFence) return this.#value(this.#phase === 'gap' ? 'fenced' : 'bare')
    this.#code ||= this.#phase === 'gap'
    return this.#inWords(character)
  }

  #value(beginning: Beginning): Beginning {
    this.#valueAt = this.#held.length - 1
    return beginning
  }

  #inWords(character: string): null {
    if (character === '`') {
      this.#phase = 'ticks'
      this.#ticks = 1
      return null
    }
    this.#phase = 'words'
    if (character === '{' && this.#atLineStart && !this.#code) {
      this.#phase = 'brace'
      this.#valueAt = this.#held.length - 1
    }
    this.#spoke = true
    if (character === '\n' || character === '\r') this.#atLineStart = true
    else if (!isBlank(character)) this.#atLineStart = false
    return null
  }

  #inTicks(character: string): Beginning | null {
    if (character === '`') {
      this.#ticks++
      return null
    }
    this.#atLineStart = false
    this.#code ||= this.#ticks > 3
    if (this.#ticks !== 3) return this.#inWords(character)
    this.#phase = 'label'
    this.#label = ''
    return this.#inLabel(character)
  }

  /** What follows the marks of a fence in its line. */
  #inLabel(character: string): Beginning | null {
    const isWhole = LABEL.test(this.#label)
    if (isWhole && (character === '{' || character === '[')) return this.#value('fenced')
    if (isWhole && (character === '\n' || character === '\r')) {
      this.#phase = 'gap'
      return null
    }
    this.#label += character
    const mayBecome = this.#label.length <= LONGEST_LABEL && LABEL_BEGUN.test(this.#label)
    if (mayBecome) return null
    this.#code = true
    this.#spoke = true
    return this.#inWords(character)
  }
}

/** @param character one UTF-16 unit. */
export const isBlank = (character: string): boolean => character.trim() === ''
