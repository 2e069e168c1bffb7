import type { HeldText, Inspection } from '../../governance/dlp/inspection.ts'
import type { ByteEdit } from '../../lib/byte-edits.ts'
import { encodeFrame } from '../../lib/sse.ts'
import { type FrameString, type HeldFrame, heldText, inspectPiece, type TextKind } from './streamed-texts.ts'

/**
 * Texts of a chat completion stream, each followed over its chunks: by the index of its choice, and for tool calls by
 * theirs, because places in a chunk say nothing.
 */

type Path = ReadonlyArray<string | number>

/** What a chunk says besides its texts. */
export interface ChunkPlaces {
  /** By position in the chunk: the index of each choice. */
  choices: readonly number[]
  /** Positions of choices that end with it. */
  finished: ReadonlySet<number>
  /** Indexes that elements name for themselves, by their path. */
  indexes: ReadonlyMap<string, number>
}

const ARGUMENTS = new Set(['arguments', 'input'])
const pathKey = (path: Path) => JSON.stringify(path)

export class ChunkTexts {
  readonly #inspection: Inspection
  readonly #inBlocks: boolean
  /** By choice: the part of an answer that is being told, where it is told in blocks. */
  readonly #parts = new Map<number, Part>()
  /** Parts that end within the chunk at hand, as `<choice>:<part>`. */
  readonly #closing = new Set<string>()
  /** Where the text of each key stands in a choice. */
  readonly #places = new Map<string, Path>()

  /** @param inBlocks whether the caller gets the parts of an answer one after the other, as blocks. */
  constructor(inspection: Inspection, inBlocks = false) {
    this.#inspection = inspection
    this.#inBlocks = inBlocks
  }

  /**
   * What was held back of a part of the answer goes out before another part begins: it could not be told later in the
   * same block. For callers that get blocks, to be asked before the edits of a chunk.
   * @param head what a frame begins with.
   */
  endedParts(
    strings: readonly FrameString[],
    places: ChunkPlaces,
    head: () => Record<string, unknown>,
  ): HeldFrame[] {
    if (!this.#inBlocks) return []
    this.#closing.clear()
    const frames: HeldFrame[] = []
    for (const [choice, parts] of partsIn(strings, places)) {
      const told = this.#parts.get(choice)
      const last = PARTS.findLast((part) => parts.has(part)) ?? 'text'
      this.#parts.set(choice, last)
      for (const part of parts) if (part !== last) this.#closing.add(`${choice}:${part}`)
      // Arguments of tools are told each in its place, however late.
      if (told !== undefined && told !== 'call' && !parts.has(told))
        frames.push(...this.#endPart(choice, told, head))
    }
    return frames
  }

  #endPart(choice: number, part: Part, head: () => Record<string, unknown>): HeldFrame[] {
    const keys = [...this.#places].filter(
      ([key, place]) => key.startsWith(`${choice}:`) && partOf(place) === part,
    )
    return keys.flatMap(([key]) => this.#inspection.end(key).map((held) => this.#frame(held, head())))
  }

  /** Shows the strings of a chunk to the inspection. */
  edits(strings: readonly FrameString[], source: Uint8Array, places: ChunkPlaces): ByteEdit[] {
    const edits: ByteEdit[] = []
    for (const string of strings) {
      const edit = this.#edit(string, source, places)
      if (edit) edits.push(edit)
    }
    return edits
  }

  #edit(string: FrameString, source: Uint8Array, places: ChunkPlaces): ByteEdit | null {
    const [root, position, member] = string.path
    const streamed = root === 'choices' && typeof position === 'number' && isStreamed(string.path)
    if (!streamed) {
      const field = { path: string.path, partial: false, ...chunkTextKind(string.path) }
      return member === 'logprobs' ? null : this.#inspection.text(field, source, string.start, string.end)
    }
    const place = resolved(string.path, places.indexes)
    const choice = places.choices[position] ?? position
    const key = `${choice}:${pathKey(place)}`
    this.#places.set(key, place)
    const last = places.finished.has(position) || this.#closing.has(`${choice}:${partOf(place)}`)
    return inspectPiece(this.#inspection, string, source, { key, ...chunkTextKind(string.path), last })
  }

  /** Ends the texts of a choice, or all. @returns frames that tell what was held back of them. */
  end(choice: number | null, head: Record<string, unknown>): HeldFrame[] {
    return this.#inspection.end(choice === null ? '' : `${choice}:`).map((held) => this.#frame(held, head))
  }

  #frame(held: HeldText, head: Record<string, unknown>): HeldFrame {
    const index = Number.parseInt(held.key, 10)
    const place = this.#places.get(held.key) ?? ['delta', 'content']
    const choice = { index, ...nested(place, heldText(held)), finish_reason: null }
    const bytes = encodeFrame(null, { ...head, choices: [choice] })
    return { bytes, released: held.released, withheld: held.withheld }
  }
}

/** Names and ids come whole, in the first fragment, and so do annotations. */
const isStreamed = (path: Path): boolean =>
  path[2] === 'text' || (path[2] === 'delta' && path[3] !== 'annotations' && path[path.length - 1] !== 'name')

/** In the order in which those of one chunk are told. */
const PARTS = ['reasoning', 'text', 'call'] as const
type Part = (typeof PARTS)[number]

/** The parts that a chunk says something of, by choice. */
function partsIn(strings: readonly FrameString[], { choices }: ChunkPlaces): Map<number, Set<Part>> {
  const found = new Map<number, Set<Part>>()
  for (const { path, start, end } of strings) {
    const [root, position] = path
    if (root !== 'choices' || typeof position !== 'number' || path[2] !== 'delta' || start === end) continue
    if (path[3] === 'annotations') continue
    const choice = choices[position] ?? position
    found.set(choice, (found.get(choice) ?? new Set()).add(partOf(path)))
  }
  return found
}

/** What a text is a part of, in the words of those who tell it in blocks. @param path in a chunk or in a choice. */
function partOf(path: Path): Part {
  const place = path[0] === 'choices' ? path.slice(2) : path
  const [, member] = place
  if (member === 'tool_calls' || member === 'function_call') return 'call'
  if (place.length === 1 || member === 'refusal') return 'text'
  return member === 'content' && !place.includes('thinking') ? 'text' : 'reasoning'
}

/** What a text of an answer is. Tools of free form are called with a text, others with JSON. */
export function chunkTextKind(path: Path): TextKind {
  const name = String(path[path.length - 1])
  return { kind: ARGUMENTS.has(name) ? 'tool_arguments' : 'response', json: name === 'arguments' }
}

/** The path within its choice, elements by the index that they name. */
function resolved(path: Path, indexes: ReadonlyMap<string, number>): Path {
  return path.slice(2).map((part, at) => {
    if (typeof part !== 'number') return part
    return indexes.get(pathKey(path.slice(0, at + 3))) ?? part
  })
}

/** A text where it belongs, with no more around it than that takes. */
function nested(place: Path, text: string): Record<string, unknown> {
  let value: unknown = text
  for (const part of [...place].reverse()) {
    value = typeof part === 'number' ? [withIndex(part, value)] : { [part]: value }
  }
  return value as Record<string, unknown>
}

const withIndex = (index: number, value: unknown): unknown =>
  typeof value === 'object' && value !== null ? { index, ...value } : value

/** The path of an element whose `index` ended, as `ChunkPlaces.indexes` names it. */
export const elementKey = (path: Path): string => pathKey(path.slice(0, -1))
