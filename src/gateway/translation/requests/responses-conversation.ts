import { invalidRequest } from '../../../lib/api-error.ts'
import { isPresent, type Json, listOf, textOf } from '../../protocols/json.ts'
import { refuseKind } from './member-rules.ts'
import { nameAt, objectsAt, optionalText, textAt } from './read-values.ts'
import { RESPONSES_ITEMS } from './responses-items.ts'
import { type Part, partsAt } from './responses-parts.ts'
import { customToolArguments, type ResponsesTools } from './responses-tools.ts'

/** A tool call with its output. */
export interface CallWithOutput {
  callId: string
  /** Name of the tool for the model. */
  name: string
  /** JSON, unless the model wrote something else. */
  arguments: string
  output: Part[]
}

/** Reasoning as it was sealed: a text with its signature, or data that only its own family can open. */
export interface Thought {
  text: string
  signature: string | undefined
  redacted: string | undefined
  origin: string | undefined
}

/** One part of an assistant's step; `item` distinguishes texts of different messages. */
export type AssistantPart =
  | { kind: 'text' | 'refusal'; text: string; item: number }
  | { kind: 'thought'; thought: Thought }
  | { kind: 'call'; call: CallWithOutput }

/** Calls are answered at the end of the step that makes them, wherever their outputs stood. */
export type ConversationStep =
  | { role: 'system'; texts: string[] }
  | { role: 'user'; parts: Part[] }
  | { role: 'assistant'; parts: AssistantPart[] }

/**
 * `instructions` and the items of `input` as steps: consecutive items of the assistant are one, and so are consecutive
 * instructions of system and developer. `RESPONSES_ITEMS` has the treatment of each kind of item.
 * @throws ApiError invalid_request naming the item without an equivalent, a call without an output, or the reverse.
 */
export function conversationOfResponses(request: Json, tools: ResponsesTools): ConversationStep[] {
  const builder = new StepBuilder(tools)
  const instructions = optionalText(request.instructions, 'instructions')
  if (instructions !== undefined) builder.addInstructions([instructions])
  if (typeof request.input === 'string') builder.addUser([{ kind: 'text', text: request.input }])
  else {
    for (const [item, { value, place }] of objectsAt(request.input, 'input').entries()) {
      builder.add(value, place, item)
    }
  }
  return builder.finish()
}

class StepBuilder {
  readonly #tools: ResponsesTools
  readonly #steps: ConversationStep[] = []
  /** Parts of the step that the next item of the assistant continues; null after any other item. */
  #assistantParts: AssistantPart[] | null = null
  /** Calls by their id, which some clients use more than once. Calls of one id are answered in their order. */
  readonly #calls = new Map<string, { calls: CallWithOutput[]; places: string[]; answers: number }>()
  readonly #outputs: Array<{ callId: string; parts: Part[]; place: string }> = []

  constructor(tools: ResponsesTools) {
    this.#tools = tools
  }

  add(item: Json, place: string, index: number): void {
    // Clients leave the type of a message out.
    const type =
      isPresent(item.type) || !isPresent(item.role) ? nameAt(item.type, `${place}.type`) : 'message'
    if (type === 'message') this.#message(item, place, index)
    else if (type === 'reasoning') this.#addPart({ kind: 'thought', thought: thoughtOf(item) })
    else if (type === 'function_call') {
      this.#call(item, textAt(item.arguments, `${place}.arguments`), place)
    } else if (type === 'custom_tool_call') {
      this.#call(item, customToolArguments(textAt(item.input, `${place}.input`)), place)
    } else if (type === 'function_call_output' || type === 'custom_tool_call_output') {
      this.#output(item, place)
    } else if (!Object.hasOwn(RESPONSES_ITEMS, type)) refuseKind(type, place, 'items')
  }

  addInstructions(texts: string[]): void {
    const given = texts.filter((text) => text.trim() !== '')
    if (given.length === 0) return
    this.#assistantParts = null
    const last = this.#steps[this.#steps.length - 1]
    if (last?.role === 'system') for (const text of given) last.texts.push(text)
    else this.#steps.push({ role: 'system', texts: given })
  }

  addUser(parts: Part[]): void {
    this.#assistantParts = null
    this.#steps.push({ role: 'user', parts })
  }

  /** @throws ApiError for calls and outputs that do not belong together. */
  finish(): ConversationStep[] {
    for (const { callId, parts, place } of this.#outputs) {
      const same = this.#calls.get(callId)
      // An output too many is more of the last one's.
      const call = same?.calls[Math.min(same.answers++, same.calls.length - 1)]
      if (!call) {
        throw invalidRequest(
          `${place}.call_id: No tool call found for function call output with call_id ${quoted(callId)}.`,
        )
      }
      for (const part of parts) call.output.push(part)
    }
    for (const [callId, { calls, places, answers }] of this.#calls) {
      if (answers >= calls.length) continue
      throw invalidRequest(
        `${places[answers]}.call_id: No tool output found for function call ${quoted(callId)}.`,
      )
    }
    return this.#steps
  }

  #addPart(part: AssistantPart): void {
    if (!this.#assistantParts) {
      this.#assistantParts = []
      this.#steps.push({ role: 'assistant', parts: this.#assistantParts })
    }
    this.#assistantParts.push(part)
  }

  #message(item: Json, place: string, index: number): void {
    const { role } = item
    // A message of the assistant that only called has no content with some clients.
    const content = role === 'assistant' ? (item.content ?? []) : item.content
    const parts = partsAt(content, `${place}.content`)
    if (role === 'user') this.addUser(parts)
    else if (role === 'assistant') {
      for (const [position, part] of parts.entries()) {
        const { kind, text } = writtenPart(part, `${place}.content[${position}]`, "the assistant's parts")
        this.#addPart({ kind, text, item: index })
      }
    } else if (role === 'system' || role === 'developer') {
      const texts = parts.map((part, position) =>
        writtenPart(part, `${place}.content[${position}]`, 'parts of instructions'),
      )
      this.addInstructions(texts.map(({ text }) => text))
    } else {
      throw invalidRequest(`${place}.role: Input should be 'user', 'assistant', 'system' or 'developer'.`)
    }
  }

  #call(item: Json, written: string, place: string): void {
    const callId = nameAt(item.call_id, `${place}.call_id`)
    const namespace = optionalText(item.namespace, `${place}.namespace`) ?? null
    const name = this.#tools.nameOf(namespace, nameAt(item.name, `${place}.name`))
    const call: CallWithOutput = { callId, name, arguments: written, output: [] }
    const same = this.#calls.get(callId)
    if (same) {
      same.calls.push(call)
      same.places.push(place)
    } else this.#calls.set(callId, { calls: [call], places: [place], answers: 0 })
    this.#addPart({ kind: 'call', call })
  }

  #output(item: Json, place: string): void {
    const callId = nameAt(item.call_id, `${place}.call_id`)
    this.#outputs.push({ callId, parts: partsAt(item.output, `${place}.output`), place })
    // The assistant's next item was generated with this output, so it begins a new step.
    this.#assistantParts = null
  }
}

/** @throws ApiError for media where there can be none. */
function writtenPart(
  part: Part,
  place: string,
  what: string,
): Extract<Part, { kind: 'text' } | { kind: 'refusal' }> {
  if (part.kind === 'text' || part.kind === 'refusal') return part
  return refuseKind(`input_${part.kind}`, place, what)
}

const quoted = (id: string): string => JSON.stringify(id.slice(0, 80))

const textOrNone = (value: unknown): string | undefined => textOf(value) || undefined

/** Members of another type than the gateway sent count as absent: reasoning is optional. */
const thoughtOf = (item: Json): Thought => ({
  text: listOf(item.content)
    .map((part) => textOf(part.text))
    .join(''),
  signature: textOrNone(item.signature),
  redacted: textOrNone(item.redacted),
  origin: textOrNone(item.origin),
})
