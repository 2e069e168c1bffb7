import type { HeldText, Inspection } from '../../dlp/inspection.ts'
import type { ByteEdit } from '../../lib/byte-edits.ts'
import type { Slices } from '../../lib/slices.ts'
import { type AnswerContext, sendsBlocks } from './protocol.ts'
import { type FrameString, type HeldFrame, heldFrame, inspectPiece, type TextKind } from './streamed-texts.ts'

/**
 * Texts of a chat completion stream, each followed over its chunks by the indexes of its choice and tool call.
 * Positions within a chunk do not identify them.
 */

type Path = ReadonlyArray<string | number>

/** Choices and indexes of a chunk. */
interface ChunkPlaces {
  /** The index of each choice, by position in the chunk. */
  choices: readonly number[]
  /** Positions of choices that end with it. */
  finished: ReadonlySet<number>
  /** The `index` members of elements, by the path of the element. */
  indexes: ReadonlyMap<string, number>
}

/** Members of a chunk that all chunks of its stream repeat, as JSON. */
export type ChunkHead = ReadonlyArray<readonly [name: string, json: Uint8Array]>

const decoder = new TextDecoder()
const ARGUMENTS = new Set(['arguments', 'input'])
const pathKey = (path: Path) => JSON.stringify(path)

export class ChunkTexts {
  readonly #inspection: Inspection
  /** Whether the caller receives an answer as consecutive blocks. */
  readonly inBlocks: boolean
  readonly #modelId: string | null
  /** The current part of an answer that is sent in blocks, by choice. */
  readonly #parts = new Map<number, Part>()
  /** Parts that end within the current chunk, as `<choice>:<part>`. */
  readonly #closing = new Set<string>()
  /** The path of a text within its choice, by key. */
  readonly #places = new Map<string, Path>()

  constructor(context: AnswerContext) {
    this.#inspection = context.inspection
    this.inBlocks = sendsBlocks(context)
    this.#modelId = context.modelId
  }

  /**
   * Ends, in slices, the part of the answer that another part follows: its held-back text could not be added to its block later.
   * Only for callers that receive blocks (`inBlocks`); called before `edits`.
   * @param head of the chunk before.
   * @returns frames with the held-back text.
   */
  *endedParts(strings: readonly FrameString[], places: ChunkPlaces, head: ChunkHead): Slices<HeldFrame[]> {
    this.#closing.clear()
    const frames: HeldFrame[] = []
    for (const [choice, parts] of partsIn(strings, places)) {
      const current = this.#parts.get(choice)
      const last = PARTS.findLast((part) => parts.has(part)) ?? 'text'
      this.#parts.set(choice, last)
      for (const part of parts) if (part !== last) this.#closing.add(`${choice}:${part}`)
      // Fragments of arguments name their call, so they may come at any time.
      if (current !== undefined && current !== 'call' && !parts.has(current))
        frames.push(...(yield* this.#endPart(choice, current, head)))
    }
    return frames
  }

  *#endPart(choice: number, part: Part, head: ChunkHead): Slices<HeldFrame[]> {
    const keys = [...this.#places].filter(
      ([key, place]) => key.startsWith(`${choice}:`) && partOf(place) === part,
    )
    const frames: HeldFrame[] = []
    for (const [key] of keys) {
      for (const held of yield* this.#inspection.end(key)) frames.push(this.#frame(held, head))
    }
    return frames
  }

  /** Inspects the strings of a chunk, in slices. */
  *edits(strings: readonly FrameString[], source: Uint8Array, places: ChunkPlaces): Slices<ByteEdit[]> {
    const edits: ByteEdit[] = []
    for (const string of strings) {
      const edit = yield* this.#edit(string, source, places)
      if (edit) edits.push(edit)
    }
    return edits
  }

  *#edit(string: FrameString, source: Uint8Array, places: ChunkPlaces): Slices<ByteEdit | null> {
    const [root, position, member] = string.path
    const streamed = root === 'choices' && typeof position === 'number' && isStreamed(string.path)
    if (!streamed) {
      const field = { path: string.path, partial: false, ...chunkTextKind(string.path) }
      if (member === 'logprobs') return null
      return yield* this.#inspection.textInSlices(field, source, string.start, string.end)
    }
    const place = resolved(string.path, places.indexes)
    const choice = places.choices[position] ?? position
    const key = `${choice}:${pathKey(place)}`
    this.#places.set(key, place)
    const last = places.finished.has(position) || this.#closing.has(`${choice}:${partOf(place)}`)
    const text = { key, ...chunkTextKind(string.path), last }
    return yield* inspectPiece(this.#inspection, string, source, text)
  }

  /** Ends the texts of a choice, or all texts, in slices. @returns frames with the text that was held back. */
  *end(choice: number | null, head: ChunkHead): Slices<HeldFrame[]> {
    const ended = yield* this.#inspection.end(choice === null ? '' : `${choice}:`)
    return ended.map((held) => this.#frame(held, head))
  }

  #frame(held: HeldText, head: ChunkHead): HeldFrame {
    const index = Number.parseInt(held.key, 10)
    const place = this.#places.get(held.key) ?? ['delta', 'content']
    const members = Object.fromEntries(head.map(([name, json]) => [name, JSON.parse(decoder.decode(json))]))
    if (this.#modelId !== null) members.model = this.#modelId
    return heldFrame(null, held, (text) => {
      const choice = { index, ...nested(place, text), finish_reason: null }
      return { ...members, choices: [choice] }
    })
  }
}

/** Names and ids come whole, in the first fragment, and so do annotations. */
const isStreamed = (path: Path): boolean =>
  path[2] === 'text' || (path[2] === 'delta' && path[3] !== 'annotations' && path[path.length - 1] !== 'name')

/** Parts of one chunk in the order in which they are sent. */
const PARTS = ['reasoning', 'text', 'call'] as const
type Part = (typeof PARTS)[number]

/** The parts that have text in a chunk, by choice. */
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

/** The part of the answer that a text belongs to. @param path in a chunk or in a choice. */
function partOf(path: Path): Part {
  const place = path[0] === 'choices' ? path.slice(2) : path
  const [, member] = place
  if (member === 'tool_calls' || member === 'function_call') return 'call'
  if (place.length === 1 || member === 'refusal') return 'text'
  return member === 'content' && !place.includes('thinking') ? 'text' : 'reasoning'
}

/** Direction and form of a text. Custom tools take a text as `input`, functions take JSON as `arguments`. */
export function chunkTextKind(path: Path): TextKind {
  const name = String(path[path.length - 1])
  return { kind: ARGUMENTS.has(name) ? 'tool_arguments' : 'response', json: name === 'arguments' }
}

/** The path within its choice, with elements by their `index` members. */
function resolved(path: Path, indexes: ReadonlyMap<string, number>): Path {
  return path.slice(2).map((part, at) => {
    if (typeof part !== 'number') return part
    return indexes.get(pathKey(path.slice(0, at + 3))) ?? part
  })
}

/** A text at its path, in the fewest objects and lists that the path needs. */
function nested(place: Path, text: string): Record<string, unknown> {
  let value: unknown = text
  for (const part of [...place].reverse()) {
    value = typeof part === 'number' ? [withIndex(part, value)] : { [part]: value }
  }
  return value as Record<string, unknown>
}

const withIndex = (index: number, value: unknown): unknown =>
  typeof value === 'object' && value !== null ? { index, ...value } : value

/** Key in `ChunkPlaces.indexes` of the element whose `index` has this path. */
export const elementKey = (path: Path): string => pathKey(path.slice(0, -1))
