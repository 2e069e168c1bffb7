import { isBlank } from './json-beginning.ts'

const MARKS = 3
/** White space before a fence, or after it, that is held back at most. */
const MOST_BLANKS = 256

/**
 * Follows a text that may end in a closing fence: white space, three marks, white space. Knows how much of the text so
 * far may belong to it, looking at each character once.
 */
export class ClosingFence {
  #before = 0
  #marks = 0
  #after = 0

  push(character: string): void {
    if (character === '`') this.#mark()
    else if (isBlank(character)) this.#blank()
    else this.#reset()
  }

  /** Characters at the end of the text that may still be cut. */
  get held(): number {
    return this.#before + this.#marks + this.#after
  }

  /** Whether the text ends in a whole fence now. */
  get isWhole(): boolean {
    return this.#marks === MARKS
  }

  /** Whether all that is held can be cut where the text ends: a fence, or white space alone. */
  get isCut(): boolean {
    return this.isWhole || this.#marks === 0
  }

  #mark(): void {
    if (this.#after > 0) {
      this.#before = this.#after
      this.#after = 0
      this.#marks = 1
    } else if (this.#marks < MARKS) this.#marks++
    // Of more than three marks the last ones are the fence.
    else this.#before = 0
  }

  #blank(): void {
    if (this.#marks === MARKS) this.#after++
    else if (this.#marks === 0) this.#before++
    // White space after one or two marks makes them text.
    else {
      this.#before = 1
      this.#marks = 0
    }
    if (this.#before > MOST_BLANKS || this.#after > MOST_BLANKS) this.#reset()
  }

  #reset(): void {
    this.#before = 0
    this.#marks = 0
    this.#after = 0
  }
}
