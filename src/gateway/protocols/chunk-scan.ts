import { inspectWhileScanning, WaitingTexts } from '../../dlp/waiting-texts.ts'
import type { ByteEdit } from '../../lib/byte-edits.ts'
import { scanJson } from '../../lib/json-scan.ts'
import type { JsonKind, JsonPath } from '../../lib/json-visitor.ts'
import type { Slices } from '../../lib/slices.ts'
import { chunkTextKind, elementKey } from './chunk-texts.ts'
import { jsonAt } from './frame-json.ts'
import { type ChangingString, changingString } from './frame-template.ts'
import type { AnswerContext } from './protocol.ts'
import { outsideOf, removalEdits } from './request-edits.ts'
import type { TopMember } from './request-outline.ts'
import type { FrameString } from './streamed-texts.ts'
import { isText, isUnreadable } from './text-fields.ts'

const encoder = new TextEncoder()
const NULL = encoder.encode('null')
const ERROR = '"error"'
/** `choices`, a choice, `delta`, `tool_calls`, a call, `index`. */
const DEEPEST_INDEX = 6

/** Members that all chunks of a stream repeat. */
const HEAD: ReadonlySet<string> = new Set(['id', 'object', 'created', 'model'])

/** Names under which servers stream reasoning. */
const REASONING: ReadonlySet<unknown> = new Set(['reasoning_content', 'reasoning', 'reasoning_details'])

/** Scans an answer or a chunk: passes texts to the inspection, finds usage and errors, collects edits. */
export class ChunkScan {
  /** Reaches the indexes of tool calls where texts are followed over chunks. */
  readonly valueDepth: number
  readonly edits: ByteEdit[] = []
  error: { start: number; end: number } | null = null
  /** The value is an error itself, as vLLM streams them: `{"object":"error","message":…}`. */
  isError = false
  /** Whether there is a member `choices`, of any kind: an answer has it, an error in place of one does not. */
  hasChoices = false
  usage: { kind: JsonKind; start: number; end: number } | null = null
  /** By position in this chunk: the index of each choice, and the choices that have ended. */
  readonly choices: number[] = []
  readonly finished = new Set<number>()
  textBytes = 0
  /** Whether the chunk has a text of reasoning. */
  reasons = false
  /** Texts that are inspected after the whole chunk has been scanned; null for a whole answer, and without a policy. */
  readonly strings: FrameString[] | null
  /** Strings of a chunk under no policy that its `FrameTemplate` leaves open. */
  readonly changing: ChangingString[] = []
  /** Copies of the members that all chunks of a stream repeat; only where texts are followed over chunks. */
  readonly head: Array<[name: string, json: Uint8Array]> = []
  /** The `index` members of tool calls, by the path of the call. */
  readonly indexes = new Map<string, number>()
  /** Moonshot reports usage within the choice: https://platform.moonshot.ai/docs/api/chat */
  #choiceUsage: { start: number; end: number } | null = null
  /** Groq has reported usage of streams under `x_groq`: https://console.groq.com/docs/api-reference */
  #groqUsage: { start: number; end: number } | null = null
  readonly #bytes: Uint8Array
  /** Texts of a whole answer. */
  readonly #waiting: WaitingTexts
  readonly #context: AnswerContext
  readonly #partial: boolean
  /** Whether a policy inspects texts. */
  readonly #active: boolean

  constructor(bytes: Uint8Array, context: AnswerContext, partial: boolean) {
    this.#bytes = bytes
    this.#waiting = new WaitingTexts(context.inspection, bytes)
    this.#context = context
    this.#partial = partial
    this.#active = !context.inspection.engine.passive
    this.strings = partial && this.#active ? [] : null
    this.valueDepth = this.strings ? DEEPEST_INDEX : 3
  }

  string(path: JsonPath, start: number, end: number): void {
    if (this.#active && isUnreadable(path, this.#bytes, start, end))
      this.#context.inspection.uninspectable(chunkTextKind(path).kind)
    if (this.#partial && !this.#active) {
      const changing = changingString(path, path[0] === 'choices' && path[2] === 'delta', start, end)
      if (changing) this.changing.push(changing)
    }
    if (!isText(path, this.#bytes, start, end)) return
    if (path[2] === 'delta' && REASONING.has(path[3])) this.reasons ||= end > start
    const isLogprob = path[0] === 'choices' && path[2] === 'logprobs'
    // Log probabilities repeat the text, many times over where alternatives were requested.
    if (path[0] === 'choices' && !isLogprob) this.textBytes += end - start
    if (this.#active && isLogprob) return
    if (this.strings) {
      this.strings.push({ path: [...path], start, end })
      return
    }
    if (this.#active) this.#waiting.addText({ path, partial: false, ...chunkTextKind(path) }, start, end)
    else this.#context.inspection.count(end - start)
  }

  /** Scans it, and inspects all but `strings`, in slices. @throws JsonSyntaxError, ApiError `dlp_blocked`. */
  *read(): Slices<void> {
    const edits = yield* inspectWhileScanning(this.#bytes, this, this.#waiting)
    for (const edit of edits) this.edits.push(edit)
  }

  value(path: JsonPath, kind: JsonKind, start: number, end: number): void {
    if (path.length === 1) this.#member(String(path[0]), kind, start, end)
    else if (path[0] === 'x_groq') {
      if (path.length === 2 && path[1] === 'usage' && kind === 'object') this.#groqUsage = { start, end }
    } else if (path[0] === 'choices' && typeof path[1] === 'number') {
      if (path.length <= 3) this.#choice(path[1], path[2], kind, start, end)
      else if (path[path.length - 1] === 'index' && kind === 'number') {
        this.indexes.set(elementKey(path), Number(jsonAt(this.#bytes, { start, end })))
      }
    }
  }

  #choice(
    position: number,
    name: JsonPath[number] | undefined,
    kind: JsonKind,
    start: number,
    end: number,
  ): void {
    this.choices[position] ??= position
    if (name === 'index' && kind === 'number') {
      this.choices[position] = Number(jsonAt(this.#bytes, { start, end }))
    } else if (name === 'finish_reason' && kind === 'string' && end - start > '""'.length) {
      this.finished.add(position)
    } else if (name === 'usage' && kind === 'object') this.#choiceUsage = { start, end }
    // Logprobs repeat every token of the text, as text and as bytes, so they would reveal content that is held back or replaced.
    else if (name === 'logprobs' && kind === 'object' && this.#active) {
      this.edits.push({ start, end, replacement: NULL })
    }
  }

  #member(name: string, kind: JsonKind, start: number, end: number): void {
    if (this.strings && HEAD.has(name)) this.head.push([name, this.#bytes.slice(start, end)])
    if (name === 'choices') this.hasChoices = true
    else if (name === 'object' && kind === 'string' && end - start === ERROR.length) {
      this.isError = jsonAt(this.#bytes, { start, end }) === 'error'
    } else if (name === 'usage') this.usage = { kind, start, end }
    else if (name === 'error' && kind !== 'null') this.error = { start, end }
    else if (name === 'model' && this.#context.modelId !== null) {
      this.edits.push({ start, end, replacement: encoder.encode(JSON.stringify(this.#context.modelId)) })
    }
  }

  usageValue(): unknown {
    const place = this.usage?.kind === 'object' ? this.usage : (this.#groqUsage ?? this.#choiceUsage)
    return place && jsonAt(this.#bytes, place)
  }

  /** Cuts the `usage` member out of the chunk, with the texts inside it. */
  removeUsage(): void {
    const members: TopMember[] = []
    scanJson(this.#bytes, {
      value(path, kind, start, end, memberStart) {
        if (path.length === 1) members.push({ name: String(path[0]), kind, memberStart, start, end })
      },
    })
    const cuts = removalEdits(members, ({ name }) => name === 'usage')
    this.edits.splice(0, this.edits.length, ...cuts, ...outsideOf(cuts, [...this.edits]))
  }
}
