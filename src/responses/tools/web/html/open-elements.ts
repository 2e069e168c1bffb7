import { BLOCK, CLOSED_BY, TABLE_PARTS } from './elements.ts'

export interface OpenElement {
  name: string
  block: boolean
}

/** Same depth as in browsers (https://chromium.googlesource.com/chromium/src: `kMaximumHTMLParserDOMTreeDepth`). */
export const DEEPEST = 512
const STRUCTURE: ReadonlySet<string> = new Set([...TABLE_PARTS, 'body', 'html'])
const SCOPES: ReadonlySet<string> = new Set(['td', 'th', 'table', 'caption'])

/**
 * The elements around the current place. Tags that are missing or wrongly nested are treated as browsers treat them. What a
 * tag closes is found without a search through the open elements: pages choose how many are open.
 */
export class OpenElements<Element extends OpenElement> {
  readonly #stack: Element[] = []
  /** Depths of the open elements by name, and of all blocks: the innermost last. */
  readonly #depths = new Map<string, number[]>()
  readonly #blocks: number[] = []

  get depth(): number {
    return this.#stack.length
  }

  get innermost(): Element | undefined {
    return this.#stack.at(-1)
  }

  push(element: Element): void {
    const depth = this.#stack.push(element) - 1
    const depths = this.#depths.get(element.name)
    if (depths) depths.push(depth)
    else this.#depths.set(element.name, [depth])
    if (element.block) this.#blocks.push(depth)
  }

  /** Closes the innermost element. */
  pop(): Element {
    const element = this.#stack.pop() as Element
    const depths = this.#depths.get(element.name) as number[]
    depths.pop()
    if (depths.length === 0) this.#depths.delete(element.name)
    if (element.block) this.#blocks.pop()
    return element
  }

  /** The depth to which the start of an element closes those that are open. */
  depthBefore(name: string): number {
    const block = this.#blocks.at(-1)
    // The start of a block ends a paragraph, unless another block is in it.
    const paragraph =
      BLOCK.has(name) && block !== undefined && this.#stack[block]?.name === 'p' ? block : this.depth
    const rule = CLOSED_BY[name]
    if (!rule) return paragraph
    const closed = this.#innermostOf(rule.closes)
    return closed > this.#innermostOf(rule.within) ? Math.min(paragraph, closed) : paragraph
  }

  /**
   * The depth to which an end tag closes. The end of an inline element does not end a block, nor that of a block the cell
   * around it.
   */
  depthAfter(name: string): number {
    const found = this.#depths.get(name)?.at(-1) ?? -1
    const isBlock = BLOCK.has(name)
    const within = isBlock
      ? STRUCTURE.has(name)
        ? -1
        : this.#innermostOf(SCOPES)
      : (this.#blocks.at(-1) ?? -1)
    return found > within ? found : this.depth
  }

  /** @returns -1 if none is open. */
  #innermostOf(names: ReadonlySet<string>): number {
    let innermost = -1
    for (const name of names) innermost = Math.max(innermost, this.#depths.get(name)?.at(-1) ?? -1)
    return innermost
  }
}
