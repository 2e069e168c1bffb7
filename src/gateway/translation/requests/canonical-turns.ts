import { invalidRequest } from '../../../lib/api-error.ts'
import { isPresent, objectOf, textOf } from '../../protocols/json.ts'
import { toolInput } from '../tool-input.ts'
import { CallIds } from './call-ids.ts'
import type {
  CallPart,
  CanonicalPart,
  CanonicalTurn,
  MediaPart,
  ResultPart,
  TextPart,
} from './canonical-request.ts'
import { ASSISTANT_BEGAN } from './messages-turns.ts'

/** The ids that all wires accept that are written from canonical requests. */
const usableId = (id: string): boolean => /^[a-zA-Z0-9_-]{1,64}$/.test(id)

/** Text of the user after an assistant's text that the model is not to continue. */
const CONTINUE = '(Continue from where you left off.)'

/** Collects a canonical conversation. */
export class CanonicalTurns {
  readonly ids = new CallIds(usableId)
  readonly #system: TextPart[][] = []
  readonly #turns: CanonicalTurn[] = []
  /** Calls by their assigned id, in their order. */
  readonly #calls = new Map<string, { name: string; order: number }>()

  get lastRole(): CanonicalTurn['role'] | undefined {
    return this.#turns[this.#turns.length - 1]?.role
  }

  /** Adds the texts of a system message. */
  addSystem(texts: TextPart[]): void {
    if (texts.length > 0) this.#system.push(texts)
  }

  /** Adds parts to the last turn where it has that role, else as a turn of its own. */
  add(role: CanonicalTurn['role'], parts: readonly CanonicalPart[]): void {
    if (parts.length === 0) return
    const last = this.#turns[this.#turns.length - 1]
    if (last?.role === role) for (const part of parts) last.parts.push(part)
    else this.#turns.push({ role, parts: [...parts] })
  }

  /** @returns the part of a call; it is not added yet. @param written its arguments, JSON as a rule. */
  call(callerId: string, name: string, written: string, signature: string | null): CallPart {
    const id = this.ids.call(callerId)
    this.#calls.set(id, { name, order: this.#calls.size })
    return { kind: 'call', id, name, input: toolInput(written), signature }
  }

  /** @returns the part of a result; it is not added yet. Undefined when no call of the last turn has this id. */
  result(
    callerId: string,
    content: Array<TextPart | MediaPart>,
    isError: boolean,
    cache: ResultPart['cache'],
  ): ResultPart | undefined {
    const id = this.ids.answer(callerId)
    if (id === undefined) return undefined
    const name = this.#calls.get(id)?.name ?? ''
    return { kind: 'result', id, name, content, isError, ...(cache && { cache }) }
  }

  /**
   * A conversation begins and ends with the user. One of system messages alone becomes the user's, because no model
   * answers anything else.
   * @param whenEmpty message of the error for a conversation without content. @throws ApiError invalid_request
   */
  finish(whenEmpty: string): { system: TextPart[]; turns: CanonicalTurn[] } {
    const turns = this.#turns
    if (turns.length === 0) {
      const last = this.#system.pop()
      if (!last) throw invalidRequest(whenEmpty)
      turns.push({ role: 'user', parts: last })
    }
    if (turns[0]?.role === 'assistant') turns.unshift(userTurn(ASSISTANT_BEGAN))
    if (this.lastRole === 'assistant') turns.push(userTurn(CONTINUE))
    for (const turn of turns) turn.parts = this.#resultsFirst(turn.parts)
    return { system: this.#system.flat(), turns }
  }

  /** Results stand first, one for each call and in the order of the calls. A second one of a call is part of the first. */
  #resultsFirst(parts: CanonicalPart[]): CanonicalPart[] {
    const results = new Map<string, ResultPart>()
    const others: CanonicalPart[] = []
    for (const part of parts) {
      const same = part.kind === 'result' ? results.get(part.id) : undefined
      if (part.kind !== 'result') others.push(part)
      else if (same) for (const content of part.content) same.content.push(content)
      else results.set(part.id, part)
    }
    const order = ({ id }: ResultPart) => this.#calls.get(id)?.order ?? 0
    return [...[...results.values()].sort((left, right) => order(left) - order(right)), ...others]
  }
}

const userTurn = (text: string): CanonicalTurn => ({ role: 'user', parts: [{ kind: 'text', text }] })

/** The part of a text; none for an empty one, which vendors refuse. */
export const textParts = (text: string, marker: unknown = undefined): TextPart[] =>
  text === '' ? [] : [{ kind: 'text', text, ...cacheOf(marker) }]

/** The mark of a `cache_control` member. */
export function cacheOf(marker: unknown): Pick<TextPart, 'cache'> {
  return isPresent(marker) ? { cache: { ttl: textOf(objectOf(marker).ttl) || undefined } } : {}
}
