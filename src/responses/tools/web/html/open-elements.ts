import { BLOCK, CLOSED_BY, flagsIn, HIDDEN, TABLE_PARTS } from './elements.ts'
import type { Attributes } from './html-tokens.ts'

export interface OpenElement {
  name: string
  block: boolean
  flags: number
}

/** As in browsers (https://chromium.googlesource.com/chromium/src: `kMaximumHTMLParserDOMTreeDepth`). Text deeper than this is left out. */
const DEEPEST = 512
const STRUCTURE = new Set([...TABLE_PARTS, 'body', 'html'])
const SCOPES = new Set(['td', 'th', 'table', 'caption'])

/** The elements around the current place. Tags that are missing or wrongly nested are treated as browsers treat them. */
export class OpenElements<Element extends OpenElement> {
  readonly #stack: Element[] = []
  /** Blocks and hidden elements that are open beyond the depth. */
  #beyond = 0
  readonly #closed: (element: Element) => void

  /** @param closed called for each element that ends, innermost first. */
  constructor(closed: (element: Element) => void) {
    this.#closed = closed
  }

  get flags(): number {
    return this.#beyond > 0 ? HIDDEN : (this.innermost?.flags ?? 0)
  }

  get innermost(): Element | undefined {
    return this.#stack.at(-1)
  }

  /** Opens an element, after closing those that it ends. @param element of the opened one. */
  open(name: string, attributes: Attributes, element: (base: OpenElement) => Element): void {
    const block = BLOCK.has(name)
    if (this.#beyond === 0) this.#closeBefore(name, block)
    const flags = flagsIn(name, attributes, this.flags)
    if (this.#stack.length < DEEPEST && this.#beyond === 0) this.#stack.push(element({ name, block, flags }))
    else if (block || flags & HIDDEN) this.#beyond++
  }

  close(name: string): void {
    const block = BLOCK.has(name)
    if (this.#beyond > 0) {
      if (block) this.#beyond--
      return
    }
    // The end of an inline element does not end a block, nor that of a block the cell around it.
    this.#closeInnermost(
      (open) => open.name === name,
      (open) => (open.block && !block) || (SCOPES.has(open.name) && !STRUCTURE.has(name)),
    )
  }

  closeAll(): void {
    this.#closeTo(0)
  }

  #closeBefore(name: string, block: boolean): void {
    if (block) {
      this.#closeInnermost(
        (open) => open.name === 'p',
        (open) => open.block,
      )
    }
    const rule = CLOSED_BY[name]
    if (!rule) return
    this.#closeInnermost(
      (open) => rule.closes.has(open.name),
      (open) => rule.within.has(open.name),
    )
  }

  /** Closes the innermost element that matches, unless a boundary is inside of it. */
  #closeInnermost(isWanted: (open: Element) => boolean, isBoundary: (open: Element) => boolean): void {
    const index = this.#stack.findLastIndex((open) => isWanted(open) || isBoundary(open))
    const found = this.#stack[index]
    if (found && isWanted(found)) this.#closeTo(index)
  }

  #closeTo(index: number): void {
    while (this.#stack.length > index) this.#closed(this.#stack.pop() as Element)
  }
}
