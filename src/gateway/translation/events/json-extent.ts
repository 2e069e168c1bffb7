/**
 * Follows a JSON object or array that arrives in fragments, to detect its end. Counts brackets outside strings and
 * validates nothing else.
 */
export class JsonExtent {
  #depth = 0
  #begun = false
  #inString = false
  #escaped = false

  /** Whether the value has ended, so that only white space can follow. Strings and numbers alone never end. */
  get complete(): boolean {
    return this.#begun && this.#depth === 0
  }

  /** Whether the last character belongs to a string, its closing quote excluded. */
  get inString(): boolean {
    return this.#inString
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
