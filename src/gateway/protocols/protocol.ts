import type { Usage } from '../../governance/credits.ts'
import type { Inspection } from '../../governance/dlp/inspection.ts'
import type { ByteEdit } from '../../lib/byte-edits.ts'
import type { JsonPath } from '../../lib/json-scan.ts'
import type { SseFrame } from '../../lib/sse.ts'
import type { RequestOutline } from './request-outline.ts'
import type { HeldFrame, TextKind } from './streamed-texts.ts'
import type { RequestMembers } from './text-fields.ts'

/** A wire format. Pure: it reads and edits bytes, it reaches nothing. */
export interface Protocol {
  /** Reads and checks a request body. @throws ApiError invalid_request */
  outline(body: Uint8Array): RequestOutline
  requestTexts: RequestTexts
  /** Top-level members that are not sent upstream (interface: Chat completions, Messages). */
  removals: readonly string[]
  /** Whether usage on a stream has to be asked for with `stream_options`. */
  usageIsOptional: boolean
  /**
   * Edits of this protocol alone, besides those that all have.
   * @param changedThinking blocks of thinking whose text is edited besides, as `<message>.<block>`.
   */
  ownEdits?(body: Uint8Array, changedThinking?: ReadonlySet<string>): ByteEdit[]
  /** Reads a whole answer. @throws JsonSyntaxError if it is not JSON. */
  readAnswer(body: Uint8Array, context: AnswerContext): AnswerReading
  streamReader(context: AnswerContext): StreamReader
  dialect: Dialect
}

/** What the texts of a request are, by their place in it. */
export interface RequestTexts extends RequestMembers {
  messageTextKind(path: JsonPath, outline: RequestOutline): TextKind
  /** Names the block of thinking that a text belongs to; null for other texts. */
  thinkingOf(path: JsonPath): string | null
  /** Names the block whose signature a string is, where it is to be emptied when its text is edited. */
  signatureOf?(path: JsonPath): string | null
}

/** What the gateway itself says on a stream of this protocol. */
export interface Dialect {
  heartbeat: Uint8Array
  /** Frames that tell a failure after the stream has begun (interface: Events). */
  failure(message: string): Uint8Array[]
}

export interface AnswerContext {
  inspection: Inspection
  /** The model id to write in place of the upstream's; null leaves the upstream's. */
  modelId: string | null
  /** Whether the caller asked for usage on its stream. */
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

/** Whether a caller of the same protocol gets every text as the upstream writes it. */
export const leavesTextsUnchanged = ({ inspection, modelId, translatedTo }: AnswerContext): boolean =>
  modelId === null && !translatedTo && inspection.engine.passive === true

export interface AnswerReading {
  edits: ByteEdit[]
  usage: Usage | null
  /** Bytes of generated text, for an estimate when the upstream reported nothing. */
  textBytes: number
}

/** What a stream has used so far. */
export interface Meter {
  /** Usage as reported so far; `final` when nothing more can change it. */
  usage(): { usage: Usage; final: boolean } | null
  /** Bytes of generated text so far, for an estimate when the upstream reported nothing. */
  readonly textBytes: number
}

/** Follows one stream, a frame at a time. */
export interface StreamReader extends Meter {
  read(frame: SseFrame): FrameVerdict
  /** True once the stream has ended as its protocol demands. */
  readonly ended: boolean
  /** All of the answer has come, and only its usage is yet to be told. */
  readonly usagePending: boolean
  /** Whether nothing of what follows has to be changed, as far as the request and the beginning show. */
  readonly passesUnread: boolean
  /** What is still owed to a caller when the upstream closed the stream: frames of a tolerated early end, or null when it was cut off. */
  closingFrames(): HeldFrame[] | null
}

export type FrameVerdict =
  /** `before` goes out ahead of the frame. */
  | { kind: 'forward'; edits: ByteEdit[]; started: boolean; before?: HeldFrame[] }
  | { kind: 'drop' }
  /**
   * The upstream told an error in its stream. `forward` when its own frame says it best to a caller of the same protocol:
   * the edits of that frame. The message has been edited.
   */
  | { kind: 'failure'; message: string; forward: ByteEdit[] | null }
