/**
 * Follows a JSON object or array that arrives in fragments, to know when it is over. It counts brackets outside of
 * strings and judges nothing else.
 */
export class JsonExtent {
  #depth = 0
  #begun = false
  #inString = false
  #escaped = false

  /** Whether the value is over, so that only white space can follow. Plain strings and numbers never count as over. */
  get complete(): boolean {
    return this.#begun && this.#depth === 0
  }

  push(fragment: string): void {
    for (const character of fragment) {
      if (this.#inString) this.#insideString(character)
      else if (character === '"') this.#inString = true
      else if (character === '{' || character === '[') {
        this.#depth++
        this.#begun = true
      } else if (character === '}' || character === ']') this.#depth = Math.max(0, this.#depth - 1)
    }
  }

  #insideString(character: string): void {
    if (this.#escaped) this.#escaped = false
    else if (character === '\\') this.#escaped = true
    else if (character === '"') this.#inString = false
  }
}
