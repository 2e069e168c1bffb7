import type { Inspection } from '../../dlp/inspection.ts'
import type { Usage } from '../../ledger/audit-record.ts'
import type { ByteEdit } from '../../lib/byte-edits.ts'
import type { JsonPath } from '../../lib/json-visitor.ts'
import type { Slices } from '../../lib/slices.ts'
import type { SseFrame } from '../../lib/sse.ts'
import type { Json } from './json.ts'
import type { RequestOutline } from './request-outline.ts'
import type { HeldFrame, TextKind } from './streamed-texts.ts'
import type { RequestMembers } from './text-fields.ts'

/** A wire format. Pure: it reads and edits bytes, without I/O. */
export interface Protocol {
  /** Reads and checks a request body, in slices. @throws ApiError invalid_request */
  outline(body: Uint8Array): Slices<RequestOutline>
  requestTexts: RequestTexts
  /** Top-level members that are not sent upstream (interface: Chat completions, Messages). */
  removals: readonly string[]
  /** Whether a stream has usage only if `stream_options` requests it. */
  usageIsOptional: boolean
  /**
   * Edits that only this protocol needs, in slices.
   * @param changedThinking blocks of thinking with edited text, as `<message>.<block>`.
   */
  ownEdits?(body: Uint8Array, changedThinking?: ReadonlySet<string>): Slices<ByteEdit[]>
  /** Reads a whole answer in slices. @throws JsonSyntaxError if it is not JSON. */
  readAnswer(body: Uint8Array, context: AnswerContext): Slices<AnswerReading>
  streamReader(context: AnswerContext): StreamReader
  dialect: Dialect
}

/** Direction and form of the texts of a request, by their path. */
export interface RequestTexts extends RequestMembers {
  messageTextKind(path: JsonPath, outline: RequestOutline): TextKind
  /** Key of the block of thinking that a text belongs to; null for other texts. */
  thinkingOf(path: JsonPath): string | null
  /** Key of the block whose signature a string is; the signature is emptied when the text of the block is edited. */
  signatureOf?(path: JsonPath): string | null
}

/** Frames that the gateway itself sends on a stream of this protocol. */
export interface Dialect {
  heartbeat: Uint8Array
  /**
   * Frames of a failure after the stream has begun (interface: Events).
   * @param isOverload whether the provider was overloaded, where the protocol has a type for it.
   */
  failure(message: string, isOverload?: boolean): Uint8Array[]
}

export interface AnswerContext {
  inspection: Inspection
  /** The model id to write in place of the upstream's; null leaves the upstream's. */
  modelId: string | null
  /** Whether the caller requested usage on its stream. */
  usageRequested: boolean
  /** The caller's protocol, where the answer is translated to it. */
  translatedTo?: 'chat_completions' | 'completions' | 'messages' | 'responses' | null
}

/** Whether the caller receives the signatures of thinking, and sends them back with it. */
export const keepsSignatures = ({ translatedTo }: AnswerContext): boolean =>
  !translatedTo || translatedTo === 'responses'

/** Whether the caller receives an answer as blocks, of which none continues after another has begun. */
export const sendsBlocks = ({ translatedTo }: AnswerContext): boolean =>
  translatedTo === 'messages' || translatedTo === 'responses'

/** Whether a caller of the same protocol receives every text as the upstream writes it. */
export const leavesTextsUnchanged = ({ inspection, modelId, translatedTo }: AnswerContext): boolean =>
  modelId === null && !translatedTo && inspection.engine.passive === true

export interface AnswerReading {
  edits: ByteEdit[]
  /** An error stands in place of the answer, under a status of success. */
  isError: boolean
  usage: Usage | null
  /** Bytes of generated text, for an estimate when the upstream reported nothing. */
  textBytes: number
}

/** Usage of a stream so far. */
export interface Meter {
  /** Usage as reported so far; `final` when nothing more can change it. */
  usage(): { usage: Usage; final: boolean } | null
  /** Bytes of generated text so far, for an estimate when the upstream reported nothing. */
  readonly textBytes: number
  /** Whether reasoning has come, in full or in summary. */
  readonly reasoned?: boolean
}

/** Reads one stream, frame by frame. */
export interface StreamReader extends Meter {
  /** Reads at once a frame that differs from the last in its text alone; null for any other, which `read` takes. */
  readAlike(frame: SseFrame): AlikeVerdict | null
  /** Reads a frame, in slices. @throws ApiError for one that must not pass. */
  read(frame: SseFrame): Slices<FrameVerdict>
  /** Whether the stream has ended as its protocol demands. */
  readonly ended: boolean
  /** The answer is complete; only its usage is still to come. */
  readonly usagePending: boolean
  /** Whether the rest of the stream needs no change, judging by the request and the frames so far. */
  readonly passesUnread: boolean
  /** Frames that complete the stream after the upstream has closed it, in slices; null when it was cut off. */
  closingFrames(): Slices<HeldFrame[] | null>
}

/** The verdict on a frame that differs from an earlier one in its texts alone. */
export interface AlikeVerdict {
  kind: 'forward'
  edits: ByteEdit[]
  started: boolean
}

export type FrameVerdict =
  /** `before` is sent ahead of the frame. */
  | (AlikeVerdict & { before?: HeldFrame[] })
  | { kind: 'drop' }
  /**
   * The upstream sent an error in its stream. `message` is edited. `forward` holds the edits of the upstream's own
   * frame, where a caller of the same protocol receives that frame. `body` is the error as the body of an answer, edited;
   * absent for a frame that is no error of the upstream.
   */
  | { kind: 'failure'; message: string; forward: ByteEdit[] | null; isOverload?: boolean; body?: Json }

export type CallerProtocol = 'chat_completions' | 'messages' | 'completions' | 'responses'

/** Every operation that translates can translate to `generate_content` and `converse`, which no caller speaks. */
export type UpstreamProtocol = 'chat_completions' | 'messages' | 'generate_content' | 'converse'
