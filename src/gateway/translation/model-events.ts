import type { Usage } from '../../ledger/audit-record.ts'
import type { Json } from '../protocols/json.ts'

/**
 * A generation as a sequence of events, independent of protocols. Decoders read them from an upstream's stream or whole
 * answer, encoders render them in the caller's protocol. Encoders drop what their protocol cannot express.
 */
export type ModelEvent =
  | { type: 'start'; id: string; model: string; createdSeconds: number | null; usage: Usage | null }
  | { type: 'text'; choice: number; text: string }
  | { type: 'refusal'; choice: number; text: string }
  /** Readable reasoning. */
  | { type: 'reasoning'; choice: number; text: string }
  /** Proof of origin of the reasoning before it, which it ends. Only one family of models can verify it. */
  | { type: 'reasoning_signature'; choice: number; signature: string }
  /** Reasoning that only its own family can open. */
  | { type: 'redacted_reasoning'; choice: number; data: string }
  /**
   * `call` counts the tool calls of a choice from 0. `signature` proves the reasoning before it, for callers whose protocol
   * has a place for it on the call (`CallSignatures`).
   */
  | { type: 'tool_call'; choice: number; call: number; id: string; name: string; signature?: string }
  | { type: 'tool_arguments'; choice: number; call: number; json: string }
  /** A source, as in the messages protocol, of the last `length` characters of text before it. */
  | { type: 'citation'; choice: number; citation: Record<string, unknown>; length: number }
  /** `stopSequence` and `explanation` (of a refusal) are null where the upstream sends none. */
  | {
      type: 'stop'
      choice: number
      reason: StopReason
      stopSequence: string | null
      explanation: string | null
    }
  /** Usage so far: a later event replaces an earlier one. */
  | { type: 'usage'; usage: Usage }
  | { type: 'end' }

/** Why a generation ended. */
export type StopReason = 'end' | 'stop_sequence' | 'length' | 'context_window' | 'tool_calls' | 'refusal'

/** Reads an upstream's answer as events, but for `end`: several upstreams close their stream without one. */
export interface EventDecoder {
  /** @param event the frame's event name, null in chat completions. @param data its parsed payload. */
  frame(event: string | null, data: Record<string, unknown>): ModelEvent[]
  /** A whole answer as the events it would have streamed. */
  answer(body: Record<string, unknown>): ModelEvent[]
}

/** Changes the events of one answer before they are encoded. */
export interface EventFilter {
  /** @returns the events that replace the given one. */
  events(event: ModelEvent): ModelEvent[]
}

/** Renders events in a caller's protocol. */
export interface EventEncoder {
  frames(event: ModelEvent): Uint8Array[]
  /** All events of a call as one answer. */
  answer(events: readonly ModelEvent[]): Record<string, unknown>
}

/** Converts each event: one function for each type of event, over the encoder's state. */
export type EventHandlers<State> = {
  [Type in ModelEvent['type']]: (state: State, event: Extract<ModelEvent, { type: Type }>) => Json[]
}

export const handleEvent = <State>(handlers: EventHandlers<State>, state: State, event: ModelEvent): Json[] =>
  (handlers[event.type] as (state: State, event: ModelEvent) => Json[])(state, event)
