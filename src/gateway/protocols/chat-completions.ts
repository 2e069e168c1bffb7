import type { Usage } from '../../governance/credits.ts'
import { applyEdits, type ByteEdit, joinBytes } from '../../lib/byte-edits.ts'
import { type JsonKind, type JsonPath, JsonSyntaxError, scanJson } from '../../lib/json-scan.ts'
import { encodeFrame, HEARTBEAT_COMMENT, type SseFrame } from '../../lib/sse.ts'
import { chatCompletionRequest, completionRequest } from '../../wire/model-requests.ts'
import { ChunkTexts, chunkTextKind, elementKey } from './chunk-texts.ts'
import { ChatMessagesCheck } from './message-checks.ts'
import {
  type AnswerContext,
  type AnswerReading,
  type FrameVerdict,
  leavesTextsUnchanged,
  type Protocol,
  type StreamReader,
  tellsInParts,
} from './protocol.ts'
import { MESSAGES_REQUEST_TEXTS } from './request-inspection.ts'
import { type OutlineRules, outlineRequest } from './request-outline.ts'
import type { FrameString, HeldFrame } from './streamed-texts.ts'
import { isText, isUnreadable } from './text-fields.ts'
import { usageOfChat } from './usage.ts'

const encoder = new TextEncoder()
const decoder = new TextDecoder()
const NULL = encoder.encode('null')
/** `choices`, a choice, `delta`, `tool_calls`, a call, `index`. */
const DEEPEST_INDEX = 6
const REMOVALS = ['metadata', 'litellm_metadata', 'proxy_server_request']

const chatRules: OutlineRules = {
  schema: chatCompletionRequest,
  messages: () => new ChatMessagesCheck(),
  removals: REMOVALS,
  texts: MESSAGES_REQUEST_TEXTS,
  maximumOutput: largerOutput,
  choices: (fields) => numberOf(fields.n) ?? 1,
}

const completionRules: OutlineRules = {
  schema: completionRequest,
  messages: null,
  removals: REMOVALS,
  texts: MESSAGES_REQUEST_TEXTS,
  required: 'prompt',
  // The default of 16 is OpenAI's; other servers generate up to the model's maximum.
  maximumOutput: (fields) => numberOf(fields.max_tokens),
  choices: (fields) => Math.max(numberOf(fields.n) ?? 1, numberOf(fields.best_of) ?? 1),
}

/** Upstreams differ in which of the two they follow, so the reservation covers the larger one. */
function largerOutput(fields: Record<string, unknown>): number | null {
  const limits = [numberOf(fields.max_completion_tokens), numberOf(fields.max_tokens)]
  const given = limits.filter((limit) => limit !== null)
  return given.length === 0 ? null : Math.max(...given)
}

const numberOf = (value: unknown): number | null => (typeof value === 'number' ? value : null)

/** Chat completions between equal protocols. */
export const chatCompletions: Protocol = {
  outline: (body) => outlineRequest(body, chatRules),
  requestTexts: MESSAGES_REQUEST_TEXTS,
  removals: REMOVALS,
  usageIsOptional: true,
  readAnswer,
  streamReader: (context) => new ChatStreamReader(context),
  dialect: {
    heartbeat: HEARTBEAT_COMMENT,
    failure(message) {
      const error = { message, type: 'server_error', code: 'stream_error' }
      return [encodeFrame('error', { error }), encodeFrame(null, DONE)]
    },
  },
}

/** Legacy completions: the same frames and usage around `text` instead of messages. */
export const completions: Protocol = {
  ...chatCompletions,
  outline: (body) => outlineRequest(body, completionRules),
}

function readAnswer(body: Uint8Array, context: AnswerContext): AnswerReading {
  const scan = new ChunkScan(body, context, false)
  scanJson(body, scan)
  context.inspection.endUnit(body.length)
  return { edits: scan.edits, usage: usageOfChat(scan.usageValue()), textBytes: scan.textBytes }
}

/** Reads an answer or a chunk: texts to the inspection, usage, errors, and the edits that are permitted. */
class ChunkScan {
  /** Deep enough for the indexes of tool calls, where somebody follows their texts. */
  readonly valueDepth: number
  readonly edits: ByteEdit[] = []
  error: { start: number; end: number } | null = null
  usage: { kind: JsonKind; memberStart: number; start: number; end: number } | null = null
  /** By position in this chunk: the index of each choice, and which of them are over. */
  readonly choices: number[] = []
  readonly finished = new Set<number>()
  textBytes = 0
  /** Texts that are shown to the inspection when all of the chunk is known; null when each is shown at once. */
  readonly strings: FrameString[] | null
  /** Indexes that tool calls name for themselves. */
  readonly indexes = new Map<string, number>()
  /** Moonshot tells usage within the choice: https://platform.moonshot.ai/docs/api/chat */
  #choiceUsage: { start: number; end: number } | null = null
  /** Where the member before `usage` ended, for the comma; and where the one after it begins. */
  #previousEnd = -1
  #usagePreviousEnd = -1
  #nextStart = -1
  readonly #bytes: Uint8Array
  readonly #context: AnswerContext
  readonly #partial: boolean
  /** Whether anything is looked for in texts. */
  readonly #active: boolean

  constructor(bytes: Uint8Array, context: AnswerContext, partial: boolean) {
    this.#bytes = bytes
    this.#context = context
    this.#partial = partial
    this.#active = !context.inspection.engine.passive
    this.strings = partial && this.#active ? [] : null
    this.valueDepth = this.strings ? DEEPEST_INDEX : 3
  }

  string(path: JsonPath, start: number, end: number): void {
    if (this.#active && isUnreadable(path, this.#bytes, start, end))
      this.#context.inspection.uninspectable(chunkTextKind(path).kind)
    if (!isText(path, this.#bytes, start, end)) return
    const isLogprob = path[0] === 'choices' && path[2] === 'logprobs'
    // Log probabilities repeat the text, many times over when alternatives are asked for.
    if (path[0] === 'choices' && !isLogprob) this.textBytes += end - start
    if (this.#active && isLogprob) return
    if (this.strings) {
      this.strings.push({ path: [...path], start, end })
      return
    }
    const field = { path, partial: this.#partial, ...chunkTextKind(path) }
    const edit = this.#context.inspection.text(field, this.#bytes, start, end)
    if (edit) this.edits.push(edit)
  }

  value(path: JsonPath, kind: JsonKind, start: number, end: number, memberStart: number): void {
    if (path.length === 1) this.#member(String(path[0]), kind, start, end, memberStart)
    else if (path[0] === 'choices' && typeof path[1] === 'number') {
      if (path.length <= 3) this.#choice(path[1], path[2], kind, start, end)
      else if (path[path.length - 1] === 'index' && kind === 'number') {
        this.indexes.set(elementKey(path), Number(decoder.decode(this.#bytes.subarray(start, end))))
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
      this.choices[position] = Number(decoder.decode(this.#bytes.subarray(start, end)))
    } else if (name === 'finish_reason' && kind === 'string' && end - start > '""'.length) {
      this.finished.add(position)
    } else if (name === 'usage' && kind === 'object') this.#choiceUsage = { start, end }
    // They say every token of the text once more, as text and as bytes: what is held back or replaced there would stand here.
    else if (name === 'logprobs' && kind === 'object' && this.#active) {
      this.edits.push({ start, end, replacement: NULL })
    }
  }

  #member(name: string, kind: JsonKind, start: number, end: number, memberStart: number): void {
    if (this.usage && this.#nextStart < 0) this.#nextStart = memberStart
    if (name === 'usage') {
      this.usage = { kind, memberStart, start, end }
      this.#usagePreviousEnd = this.#previousEnd
    } else if (name === 'error' && kind !== 'null') this.error = { start, end }
    else if (name === 'model' && this.#context.modelId !== null) {
      this.edits.push({ start, end, replacement: encoder.encode(JSON.stringify(this.#context.modelId)) })
    }
    this.#previousEnd = end
  }

  usageValue(): unknown {
    const place = this.usage?.kind === 'object' ? this.usage : this.#choiceUsage
    return place && JSON.parse(decoder.decode(this.#bytes.subarray(place.start, place.end)))
  }

  /** Cuts the `usage` member out of the chunk. */
  removeUsage(): void {
    if (!this.usage) return
    const { memberStart, end } = this.usage
    // Texts inside of it go with it.
    const outside = this.edits.filter((edit) => edit.end <= memberStart || edit.start >= end)
    const last = this.#nextStart < 0
    const start = last && this.#usagePreviousEnd >= 0 ? this.#usagePreviousEnd : memberStart
    outside.push({ start, end: last ? end : this.#nextStart, replacement: null })
    this.edits.splice(0, this.edits.length, ...outside)
  }
}

class ChatStreamReader implements StreamReader {
  ended = false
  textBytes = 0
  /** Choices that have begun, and those of them that gave a finish reason. */
  readonly #begun = new Set<number>()
  readonly #finished = new Set<number>()
  #usage: Usage | null = null
  /** It was told with or after the last finish reason. */
  #usageIsLast = false
  /** A chunk had a member `usage`, or no choices: it does not show that the next ones are without usage. */
  #mayHaveUsage = false
  readonly #context: AnswerContext
  readonly #texts: ChunkTexts
  /** The last chunk, for what is told in its name; kept only where texts are followed. */
  #lastChunk: Uint8Array | null = null

  constructor(context: AnswerContext) {
    this.#context = context
    this.#texts = new ChunkTexts(context.inspection, tellsInParts(context))
  }

  read(frame: SseFrame): FrameVerdict {
    const { inspection } = this.#context
    if (frame.data === null) {
      inspection.endUnit(frame.bytes.length)
      // Comments of the upstream are its own heartbeats; ours run on our clock.
      return { kind: 'drop' }
    }
    if (isDone(frame.data)) {
      this.ended = true
      inspection.endUnit(frame.bytes.length)
      const before = this.#held(null)
      return { kind: 'forward', edits: exactDone(frame.data, frame.dataStart), started: false, before }
    }
    return this.#readChunk(frame, frame.data)
  }

  #readChunk(frame: SseFrame, data: Uint8Array): FrameVerdict {
    const scan = new ChunkScan(data, this.#context, true)
    const before: HeldFrame[] = []
    try {
      scanJson(data, scan)
      if (scan.strings) {
        before.push(...this.#texts.endedParts(scan.strings, scan, () => this.#head()))
        scan.edits.push(...this.#texts.edits(scan.strings, data, scan))
      }
    } catch (error) {
      this.#context.inspection.endUnit(frame.bytes.length)
      if (!(error instanceof JsonSyntaxError)) throw error
      return { kind: 'failure', message: 'The upstream sent an event that is not JSON.', forward: null }
    }
    this.#context.inspection.endUnit(frame.bytes.length)
    if (scan.strings) this.#lastChunk = data.slice()
    if (scan.error || frame.event === 'error') {
      return { kind: 'failure', message: errorMessage(data, scan), forward: null }
    }
    this.textBytes += scan.textBytes
    for (const [position, index] of scan.choices.entries()) {
      this.#begun.add(index)
      if (scan.finished.has(position)) this.#finished.add(index)
    }
    const usage = usageOfChat(scan.usageValue())
    if (usage) {
      this.#usage = usage
      this.#usageIsLast = this.#isComplete
    }
    for (const position of scan.finished) before.push(...this.#held(scan.choices[position] ?? position))
    return this.#editUsage(scan, frame, before)
  }

  /** Frames that tell what was held back of a choice's texts, or of all. */
  #held(choice: number | null): HeldFrame[] {
    return this.#lastChunk ? this.#texts.end(choice, this.#head()) : []
  }

  /** What chunks of this stream begin with. */
  #head(): Record<string, unknown> {
    const last = this.#lastChunk ? JSON.parse(decoder.decode(this.#lastChunk)) : {}
    const { id, object, created, model } = last as Record<string, unknown>
    return { id, object, created, model: this.#context.modelId ?? model }
  }

  /** Interface, chat completion object: usage is omitted from intermediate chunks, and sent only where asked for. */
  #editUsage(scan: ChunkScan, frame: SseFrame, before: HeldFrame[]): FrameVerdict {
    this.#mayHaveUsage ||= scan.usage !== null || scan.choices.length === 0
    if (scan.usage) {
      const unasked = scan.usage.kind === 'object' && !this.#context.usageRequested
      if (unasked && scan.choices.length === 0) return { kind: 'drop' }
      const intermediate = scan.choices.length > 0 && scan.finished.size === 0
      if (unasked || intermediate || scan.usage.kind === 'null') scan.removeUsage()
    }
    for (const edit of scan.edits) {
      edit.start += frame.dataStart
      edit.end += frame.dataStart
    }
    return { kind: 'forward', edits: scan.edits, started: true, before }
  }

  /** Some upstreams omit `[DONE]` after the finish reasons; clients wait for it. */
  closingFrames(): HeldFrame[] | null {
    if (this.ended) return []
    if (!this.#isComplete) return null
    this.#usageIsLast = true
    return [...this.#held(null), { bytes: encodeFrame(null, DONE), released: 0, withheld: 0 }]
  }

  /** Every choice that began gave its finish reason. */
  get #isComplete(): boolean {
    return this.#begun.size > 0 && this.#finished.size === this.#begun.size
  }

  /** Usage that was not asked for is cut out, as is the `usage: null` that some upstreams write into every chunk. */
  get passesUnread(): boolean {
    return leavesTextsUnchanged(this.#context) && this.#context.usageRequested && !this.#mayHaveUsage
  }

  get usagePending(): boolean {
    return this.#isComplete && !this.ended && !this.#usageIsLast
  }

  /** Figures that came while the model went on talking are not all of it. */
  usage(): { usage: Usage; final: boolean } | null {
    return this.#usage && { usage: this.#usage, final: this.ended || this.#usageIsLast }
  }
}

const DONE = '[DONE]'
const isDone = (data: Uint8Array) => data.length < 12 && decoder.decode(data).trim() === DONE

/** Official clients compare the payload exactly: spaces around it would keep them waiting. */
function exactDone(data: Uint8Array, start: number): ByteEdit[] {
  if (data.length === DONE.length) return []
  return [{ start, end: start + data.length, replacement: encoder.encode(DONE) }]
}

/** The upstream's own words for its error, as they may be told. */
function errorMessage(data: Uint8Array, scan: ChunkScan): string {
  const told = JSON.parse(decoder.decode(joinBytes(applyEdits(data, scan.edits).pieces))) as unknown
  const error = scan.error ? (told as { error: unknown }).error : told
  const message =
    typeof error === 'object' && error !== null ? (error as { message?: unknown }).message : error
  return typeof message === 'string' && message !== '' ? message : 'The upstream reported an error.'
}
