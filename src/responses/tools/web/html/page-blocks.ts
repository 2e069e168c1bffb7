import { visibleText } from '../../../../lib/visible-text.ts'
import { ARTICLE, BESIDE, HIDDEN, MAIN, PREFORMATTED } from './elements.ts'

/** A paragraph, heading, list item or row of a page, as Markdown. */
interface Block {
  text: string
  flags: number
  /** Consecutive blocks of one kind stand on consecutive lines. */
  kind: BlockKind
}

type BlockKind = 'text' | 'item' | 'row'

/** Characters and number of all blocks together. Longer pages are cut. */
const MOST_CHARACTERS = 1_000_000
const MOST_BLOCKS = 50_000
/** Characters from which on the marked content of a page counts as its content. */
const LEAST_CONTENT = 200

/** Collects the text of a page in blocks, and chooses those with its content. */
export class PageBlocks {
  readonly #blocks: Block[] = []
  #pieces: string[] = []
  #flags = 0
  #prefix = ''
  #kind: BlockKind = 'text'
  #indent = ''
  #length = 0

  /** Whether the page has more text than is kept. */
  get full(): boolean {
    return this.#length >= MOST_CHARACTERS || this.#blocks.length >= MOST_BLOCKS
  }

  /** Number of characters so far. */
  get length(): number {
    return this.#length
  }

  /** Ends the open block, and begins one. @param indent and prefix before its text. */
  begin(prefix: string, kind: BlockKind, indent: string): void {
    this.end()
    this.#prefix = prefix
    this.#kind = kind
    this.#indent = indent
  }

  /** Ends the open block; the next one keeps a prefix that has no text yet, as of a paragraph in a list item. */
  continue(indent: string): void {
    this.end()
    if (this.#prefix === '') this.begin('', 'text', indent)
  }

  /** Appends a text with the flags of its element. White space collapses, unless it is preformatted. */
  append(text: string, flags: number): void {
    if (flags & HIDDEN || this.full) return
    const pre = (flags & PREFORMATTED) !== 0
    const visible = visibleText(text)
    const collapsed = pre ? visible : visible.replace(/[ \t\n\f]+/g, ' ')
    const piece = !pre && this.#endsWithSpace ? collapsed.trimStart() : collapsed
    if (piece === '') return
    if (this.#pieces.length === 0) this.#flags = flags
    this.#pieces.push(piece)
    this.#length += piece.length
  }

  /** Breaks the line, within a block. */
  breakLine(flags: number): void {
    if (this.#pieces.length > 0) this.append('\n', flags | PREFORMATTED)
  }

  /** Appends to the open block, or to the last one if none is open. */
  appendMark(mark: string, flags: number): void {
    const last = this.#blocks.at(-1)
    if (this.#pieces.length > 0 || !last) this.append(mark, flags)
    else if (!(flags & HIDDEN)) last.text += mark
  }

  /** Ends the open block. A prefix whose block has no text yet belongs to the next one. */
  end(): void {
    const pre = (this.#flags & PREFORMATTED) !== 0
    const text = this.#pieces.join('')
    this.#pieces = []
    const trimmed = pre ? text.replace(/^\n/, '').trimEnd() : text.trim()
    if (trimmed === '') return
    const content = pre ? fenced(trimmed) : this.#prefix + trimmed
    this.#blocks.push({ text: this.#indent + content, flags: this.#flags, kind: this.#kind })
    this.#prefix = ''
    this.#kind = 'text'
  }

  get #endsWithSpace(): boolean {
    const last = this.#pieces.at(-1)
    return last === undefined || last.endsWith(' ') || last.endsWith('\n')
  }

  /** The blocks of the main element, else those of articles, else all that are not beside the content, as one text. */
  content(): string {
    this.end()
    const among = (flag: number) =>
      this.#blocks.filter(({ flags }) => (flag === 0 || flags & flag) && !(flags & BESIDE))
    const chosen = [MAIN, ARTICLE, 0].map(among).find((blocks) => isContent(blocks)) ?? this.#blocks
    let text = ''
    for (const [index, block] of chosen.entries()) {
      const previous = chosen[index - 1]
      if (previous) text += block.kind !== 'text' && block.kind === previous.kind ? '\n' : '\n\n'
      text += block.text
    }
    return text
  }
}

function isContent(blocks: readonly Block[]): boolean {
  return blocks.reduce((length, { text }) => length + text.length, 0) >= LEAST_CONTENT
}

const fenced = (text: string): string => {
  const fence = text.includes('```') ? '~~~~' : '```'
  return `${fence}\n${text}\n${fence}`
}
