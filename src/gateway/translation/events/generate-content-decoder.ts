import { randomBase62 } from '../../../lib/ids.ts'
import { blockedPrompt } from '../../protocols/generate-content-endings.ts'
import { isPresent, type Json, listOf, objectOf, textOf } from '../../protocols/json.ts'
import { correctedUsage } from '../../protocols/plausible-usage.ts'
import { usageOfGenerateContent } from '../../protocols/reported-usage.ts'
import type { EventDecoder, ModelEvent, StopReason } from '../model-events.ts'

/** Finish reasons (https://ai.google.dev/api/generate-content#FinishReason); those of filters count as refusals. */
const STOP_REASONS = new Map<string, StopReason>([
  ['STOP', 'end'],
  ['FINISH_REASON_UNSPECIFIED', 'end'],
  ['MAX_TOKENS', 'length'],
  // The model would go on in another request.
  ['CONTINUATION', 'length'],
])
const FILTERS = /^(SAFETY|RECITATION|BLOCKLIST|PROHIBITED_CONTENT|SPII|LANGUAGE|MODEL_ARMOR|IMAGE_.*)$/

/** An unknown reason counts as an ordinary end. */
const stopReasonOf = (reason: string): StopReason =>
  STOP_REASONS.get(reason) ?? (FILTERS.test(reason) ? 'refusal' : 'end')

/** Reads answers of generateContent, chunks or whole: a chunk is an answer with the next parts. */
export class GenerateContentDecoder implements EventDecoder {
  #started = false
  /** Calls so far, by candidate. */
  readonly #calls = new Map<number, number>()

  /** @param data a chunk. */
  frame(_event: string | null, data: Json): ModelEvent[] {
    return this.answer(data)
  }

  answer(body: Json): ModelEvent[] {
    const reported = usageOfGenerateContent(body.usageMetadata)
    const usage = reported && correctedUsage(reported).usage
    const started: ModelEvent[] = this.#started
      ? []
      : [
          {
            type: 'start',
            id: textOf(body.responseId),
            model: textOf(body.modelVersion),
            createdSeconds: null,
            usage,
          },
        ]
    this.#started = true
    const blocked = blockedPrompt(body)
    return [
      ...started,
      ...listOf(body.candidates).flatMap((candidate) => this.#candidate(candidate)),
      ...(blocked === null ? [] : [stopEvent(0, 'refusal', blocked)]),
      ...(usage ? [{ type: 'usage', usage } as const] : []),
    ]
  }

  #candidate(candidate: Json): ModelEvent[] {
    const choice = typeof candidate.index === 'number' ? candidate.index : 0
    const events = listOf(objectOf(candidate.content).parts).flatMap((part) => this.#part(part, choice))
    const finishReason = textOf(candidate.finishReason)
    if (finishReason === '') return events
    const given = stopReasonOf(finishReason)
    // A turn of calls ends like any other.
    const reason = given === 'end' && this.#calls.has(choice) ? 'tool_calls' : given
    const explanation = reason === 'refusal' ? textOf(candidate.finishMessage) || null : null
    return [...events, stopEvent(choice, reason, explanation)]
  }

  /** Parts of other kinds have no equivalent: code that the provider ran, and media. */
  #part(part: Json, choice: number): ModelEvent[] {
    const signature = textOf(part.thoughtSignature)
    if (isPresent(part.functionCall)) return this.#call(objectOf(part.functionCall), signature, choice)
    const text = textOf(part.text)
    const type = part.thought === true ? 'reasoning' : 'text'
    return [
      ...(text === '' ? [] : [{ type, choice, text } as const]),
      ...(signature === '' ? [] : [{ type: 'reasoning_signature', choice, signature } as const]),
    ]
  }

  #call({ id, name, args }: Json, signature: string, choice: number): ModelEvent[] {
    const call = this.#calls.get(choice) ?? 0
    this.#calls.set(choice, call + 1)
    return [
      {
        type: 'tool_call',
        choice,
        call,
        // Some models and platforms give none.
        id: textOf(id) || `call_${randomBase62(22)}`,
        name: textOf(name),
        ...(signature !== '' && { signature }),
      },
      { type: 'tool_arguments', choice, call, json: JSON.stringify(args ?? {}) },
    ]
  }
}

const stopEvent = (choice: number, reason: StopReason, explanation: string | null): ModelEvent => ({
  type: 'stop',
  choice,
  reason,
  stopSequence: null,
  explanation,
})
