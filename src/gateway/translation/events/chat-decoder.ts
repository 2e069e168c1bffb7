import { type Json, listOf, objectOf, textOf } from '../../protocols/json.ts'
import { correctedUsage } from '../../protocols/plausible-usage.ts'
import { usageOfChatBody } from '../../protocols/reported-usage.ts'
import type { EventDecoder, ModelEvent } from '../model-events.ts'
import { ChatToolCalls } from './chat-tool-calls.ts'
import { stopReasonOfChat } from './stop-reasons.ts'

type Part = 'delta' | 'message'

/** Reads chat completions, chunks or whole. */
export class ChatDecoder implements EventDecoder {
  #started = false
  readonly #calls = new Map<number, ChatToolCalls>()
  /** The latest piece of reasoning of each choice; null where pieces do not repeat. */
  readonly #reasoning: Map<number, string> | null

  /** @param repeatsReasoning whether a piece of reasoning that equals the one before it is the same piece. */
  constructor(repeatsReasoning = false) {
    this.#reasoning = repeatsReasoning ? new Map() : null
  }

  /** @param data a chunk. */
  frame(_event: string | null, data: Json): ModelEvent[] {
    return this.#events(data, 'delta')
  }

  answer(body: Json): ModelEvent[] {
    return this.#events(body, 'message')
  }

  #events(data: Json, part: Part): ModelEvent[] {
    const choices = listOf(data.choices)
    const reported = usageOfChatBody(data)
    const usage = reported && ({ type: 'usage', usage: correctedUsage(reported).usage } as const)
    // Azure's first chunk is about the prompt, and names neither answer nor model: the next one starts the answer.
    if (part === 'delta' && choices.length === 0 && textOf(data.id) === '' && !usage) return []
    const started = this.#started ? [] : [startOf(data)]
    this.#started = true
    const events = choices.flatMap((choice) => this.#choice(choice, part))
    return [...started, ...events, ...(usage ? [usage] : [])]
  }

  #choice(data: Json, part: Part): ModelEvent[] {
    const choice = typeof data.index === 'number' ? data.index : 0
    const message = objectOf(data[part])
    const content = contentOf(message.content)
    const reasoning = this.#unrepeated(choice, reasoningOf(message) + content.reasoning)
    return [
      ...textEvents('reasoning', choice, reasoning),
      ...textEvents('text', choice, content.text),
      ...textEvents('refusal', choice, textOf(message.refusal)),
      ...this.#toolCalls(choice, message, part),
      ...this.#stop(choice, textOf(data.finish_reason)),
    ]
  }

  #unrepeated(choice: number, reasoning: string): string {
    if (this.#reasoning === null || reasoning === '') return reasoning
    const isRepeated = this.#reasoning.get(choice) === reasoning
    this.#reasoning.set(choice, reasoning)
    return isRepeated ? '' : reasoning
  }

  #toolCalls(choice: number, message: Json, part: Part): ModelEvent[] {
    const list = listOf(message.tool_calls)
    // The older form: one call, without an id.
    if (message.function_call) list.push({ index: LEGACY_INDEX, function: message.function_call })
    if (list.length === 0) return []
    const calls = this.#calls.get(choice) ?? new ChatToolCalls(choice)
    this.#calls.set(choice, calls)
    return part === 'delta' ? calls.fragments(list) : calls.whole(list)
  }

  /** @param finishReason empty for none: some servers send an empty one with every chunk. */
  #stop(choice: number, finishReason: string): ModelEvent[] {
    if (finishReason === '') return []
    const calls = this.#calls.get(choice)
    const given = stopReasonOfChat(finishReason)
    // Several servers end a turn of tool calls with `stop`; callers run the calls only on `tool_calls`.
    const reason = given === 'end' && calls?.some ? 'tool_calls' : given
    return [
      ...(calls?.flush() ?? []),
      { type: 'stop', choice, reason, stopSequence: null, explanation: null },
    ]
  }
}

/** No vendor uses negative indexes. */
const LEGACY_INDEX = -1

function startOf(data: Json): ModelEvent {
  const created = typeof data.created === 'number' && data.created > 0 ? data.created : null
  return {
    type: 'start',
    id: textOf(data.id),
    model: textOf(data.model),
    createdSeconds: created,
    usage: null,
  }
}

const textEvents = (type: 'text' | 'refusal' | 'reasoning', choice: number, text: string): ModelEvent[] =>
  text === '' ? [] : [{ type, choice, text }]

/**
 * Readable reasoning has no standard member. DeepSeek and vLLM send `reasoning_content`, others `reasoning`, OpenRouter
 * also a list of details; servers that send several of them repeat the same text.
 */
function reasoningOf(message: Json): string {
  const text = textOf(message.reasoning_content) || textOf(message.reasoning)
  return text || joined(listOf(message.reasoning_details), (detail) => textOf(detail.text ?? detail.summary))
}

/** Content of an answer is text; Mistral and others send it as parts, reasoning among them. */
function contentOf(content: unknown): { text: string; reasoning: string } {
  if (typeof content === 'string') return { text: content, reasoning: '' }
  const parts = listOf(content)
  return {
    text: textOfParts(parts),
    reasoning: joined(parts, (part) => textOf(part.thinking) || textOfParts(listOf(part.thinking))),
  }
}

const textOfParts = (parts: Json[]) => joined(parts, (part) => textOf(part.text))
const joined = (list: Json[], text: (entry: Json) => string) => list.map(text).join('')
