import type { Usage } from '../../governance/credits.ts'
import type { Json } from './json.ts'

/**
 * One generation as it happens, whatever protocol it came in. Decoders make these from an upstream's stream or whole
 * answer, encoders render them in the caller's protocol. What a protocol cannot express is dropped there, never faked.
 */
export type ModelEvent =
  | { type: 'start'; id: string; model: string; createdSeconds: number | null; usage: Usage | null }
  | { type: 'text'; choice: number; text: string }
  | { type: 'refusal'; choice: number; text: string }
  /** Readable reasoning. */
  | { type: 'reasoning'; choice: number; text: string }
  /** Proof of origin of the reasoning before it, which ends with it. It means something to one family only. */
  | { type: 'reasoning_signature'; choice: number; signature: string }
  /** Reasoning that only its own family can open. */
  | { type: 'redacted_reasoning'; choice: number; data: string }
  /** `call` counts the tool calls of a choice from 0. */
  | { type: 'tool_call'; choice: number; call: number; id: string; name: string }
  | { type: 'tool_arguments'; choice: number; call: number; json: string }
  /** A source, in the words of the messages protocol, of the last `length` characters of text before it. */
  | { type: 'citation'; choice: number; citation: Record<string, unknown>; length: number }
  /** `stopSequence` and `explanation` (of a refusal) where the upstream tells them. */
  | {
      type: 'stop'
      choice: number
      reason: StopReason
      stopSequence: string | null
      explanation: string | null
    }
  /** All that was used so far: a later one replaces an earlier one. */
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

/** Changes the events of one answer on their way to the caller. */
export interface EventFilter {
  /** @returns what takes the place of the event. */
  events(event: ModelEvent): ModelEvent[]
}

/** Renders events in a caller's protocol. */
export interface EventEncoder {
  frames(event: ModelEvent): Uint8Array[]
  /** All events of a call as one answer. */
  answer(events: readonly ModelEvent[]): Record<string, unknown>
}

/** What an encoder makes of each event: one function for each type of event, over the encoder's state. */
export type EventHandlers<State> = {
  [Type in ModelEvent['type']]: (state: State, event: Extract<ModelEvent, { type: Type }>) => Json[]
}

export const handleEvent = <State>(handlers: EventHandlers<State>, state: State, event: ModelEvent): Json[] =>
  (handlers[event.type] as (state: State, event: ModelEvent) => Json[])(state, event)
