import { entryOf, isPresent, type Json, listOf, objectOf, textOf } from '../../protocols/json.ts'
import { correctedUsage } from '../../protocols/plausible-usage.ts'
import { usageOfConverse } from '../../protocols/reported-usage.ts'
import type { EventDecoder, ModelEvent, StopReason } from '../model-events.ts'

/** Stop reasons (https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseResponse.html). */
const STOP_REASONS: Readonly<Record<string, StopReason>> = {
  end_turn: 'end',
  tool_use: 'tool_calls',
  max_tokens: 'length',
  stop_sequence: 'stop_sequence',
  model_context_window_exceeded: 'context_window',
  guardrail_intervened: 'refusal',
  content_filtered: 'refusal',
}

/** A block that has not ended. */
interface Block {
  /** The number of its call, null for a block that is none. */
  call: number | null
  /** Whether the call has no arguments yet. */
  isEmpty: boolean
  /** Held back to the end of the block, because a later one replaces an earlier one. */
  signature: string
}

/** Reads answers of Converse, events or whole. They have neither an id nor the name of the model. */
export class ConverseDecoder implements EventDecoder {
  #started = false
  #calls = 0
  readonly #blocks = new Map<number, Block>()

  frame(event: string | null, data: Json): ModelEvent[] {
    const started = this.#start()
    const index = Number(data.contentBlockIndex ?? 0)
    switch (event) {
      case 'contentBlockStart':
        return [...started, ...this.#begin(index, objectOf(data.start))]
      case 'contentBlockDelta':
        return [...started, ...this.#delta(index, objectOf(data.delta))]
      case 'contentBlockStop':
        return [...started, ...this.#finish(index)]
      case 'messageStop':
        return [...started, ...this.#finishAll(), this.#stop(data.stopReason)]
      case 'metadata':
        return [...started, ...usageEvents(data.usage)]
      // Later events are not known.
      default:
        return started
    }
  }

  answer(body: Json): ModelEvent[] {
    const blocks = listOf(objectOf(objectOf(body.output).message).content)
    const { stopReason, usage } = body
    return [
      ...this.#start(),
      ...blocks.flatMap((block, index) => this.#whole(index, block)),
      this.#stop(stopReason),
      ...usageEvents(usage),
    ]
  }

  #start(): ModelEvent[] {
    if (this.#started) return []
    this.#started = true
    return [{ type: 'start', id: '', model: '', createdSeconds: null, usage: null }]
  }

  /** A whole block as the deltas that it would have streamed. Media and blocks of later kinds have no equivalent. */
  #whole(index: number, block: Json): ModelEvent[] {
    if (isPresent(block.toolUse)) {
      const { input, ...start } = objectOf(block.toolUse)
      const json = JSON.stringify(input ?? {})
      const begun = this.#begin(index, { toolUse: start })
      return [...begun, ...this.#delta(index, { toolUse: { input: json } }), ...this.#finish(index)]
    }
    const { text, signature } = objectOf(objectOf(block.reasoningContent).reasoningText)
    const { redactedContent } = objectOf(block.reasoningContent)
    const cited = listOf(objectOf(block.citationsContent).content).map((part) => ({ text: part.text }))
    const deltas: Json[] = [
      { text: block.text },
      ...cited,
      { reasoningContent: { text, signature, redactedContent } },
    ]
    return [...deltas.flatMap((delta) => this.#delta(index, delta)), ...this.#finish(index)]
  }

  #begin(index: number, { toolUse }: Json): ModelEvent[] {
    const finished = this.#finish(index)
    if (!isPresent(toolUse)) return finished
    const { toolUseId, name } = objectOf(toolUse)
    const call = this.#calls++
    this.#blocks.set(index, { call, isEmpty: true, signature: '' })
    return [...finished, { type: 'tool_call', choice: 0, call, id: textOf(toolUseId), name: textOf(name) }]
  }

  /** Blocks other than calls begin with a delta. */
  #delta(index: number, { text, toolUse, reasoningContent }: Json): ModelEvent[] {
    const block = this.#blocks.get(index) ?? { call: null, isEmpty: true, signature: '' }
    this.#blocks.set(index, block)
    const events: ModelEvent[] = []
    if (textOf(text) !== '') events.push({ type: 'text', choice: 0, text: textOf(text) })
    const reasoning = objectOf(reasoningContent)
    const readable = textOf(reasoning.text)
    const redacted = textOf(reasoning.redactedContent)
    if (readable !== '') events.push({ type: 'reasoning', choice: 0, text: readable })
    if (redacted !== '') events.push({ type: 'redacted_reasoning', choice: 0, data: redacted })
    block.signature = textOf(reasoning.signature) || block.signature
    const json = textOf(objectOf(toolUse).input)
    if (block.call !== null && json !== '') {
      block.isEmpty = false
      events.push({ type: 'tool_arguments', choice: 0, call: block.call, json })
    }
    return events
  }

  /** Emits what was held back to the end of a block. A call without arguments has none of them on a stream. */
  #finish(index: number): ModelEvent[] {
    const block = this.#blocks.get(index)
    if (!block) return []
    this.#blocks.delete(index)
    const { call, isEmpty, signature } = block
    if (call !== null) return isEmpty ? [{ type: 'tool_arguments', choice: 0, call, json: '{}' }] : []
    return signature === '' ? [] : [{ type: 'reasoning_signature', choice: 0, signature }]
  }

  #finishAll(): ModelEvent[] {
    return [...this.#blocks.keys()].flatMap((index) => this.#finish(index))
  }

  /** An unknown reason counts as an ordinary end. */
  #stop(stopReason: unknown): ModelEvent {
    const given = entryOf(STOP_REASONS, textOf(stopReason)) ?? 'end'
    // Some models end a turn of calls like any other.
    const reason = given === 'end' && this.#calls > 0 ? 'tool_calls' : given
    return { type: 'stop', choice: 0, reason, stopSequence: null, explanation: null }
  }
}

function usageEvents(value: unknown): ModelEvent[] {
  const usage = usageOfConverse(value)
  return usage ? [{ type: 'usage', usage: correctedUsage(usage).usage }] : []
}
