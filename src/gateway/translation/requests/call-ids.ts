/**
 * Ids of tool calls for the other protocol. An id that is usable there stays as it is; others, and those
 * that were used before, are numbered. Upstreams number in the order of the conversation, so a longer conversation
 * gives its older calls the same ids again, and prompt caches hold.
 */
export class CallIds {
  readonly #usable: (id: string) => boolean
  readonly #assigned = new Set<string>()
  /** Calls of the current turn by the caller's id, and the number of them that are answered. */
  readonly #open = new Map<string, { assigned: string[]; answered: number }>()
  #count = 0

  constructor(usable: (id: string) => boolean) {
    this.#usable = usable
  }

  /** @returns the upstream's id of a call of the current turn. */
  call(id: string): string {
    let upstreamId = id
    while (!this.#usable(upstreamId) || this.#assigned.has(upstreamId)) upstreamId = `call_${++this.#count}`
    this.#assigned.add(upstreamId)
    const calls = this.#open.get(id)
    if (calls) calls.assigned.push(upstreamId)
    else this.#open.set(id, { assigned: [upstreamId], answered: 0 })
    return upstreamId
  }

  /**
   * @returns the upstream's id of the call that this result answers, or undefined when there is none. Calls of one id
   * are answered in their order; a result too many belongs to the last of them.
   */
  answer(id: string): string | undefined {
    const calls = this.#open.get(id)
    if (!calls) return undefined
    const position = Math.min(calls.answered++, calls.assigned.length - 1)
    return calls.assigned[position]
  }

  /** The caller's ids of calls that no result answers. */
  unanswered(): string[] {
    return [...this.#open]
      .filter(([, { assigned, answered }]) => answered < assigned.length)
      .map(([id]) => id)
  }

  /** Ends the current turn: later results cannot answer its calls. */
  nextTurn(): void {
    this.#open.clear()
  }
}

/** https://docs.anthropic.com/en/api/messages: `tool_use.id` must match this. */
export const usableOnMessages = (id: string): boolean => /^[a-zA-Z0-9_-]+$/.test(id)

/** OpenAI refuses longer ones; some models take them, all take these. */
const LONGEST_ON_CHAT = 40
export const usableOnChat = (id: string): boolean => id !== '' && id.length <= LONGEST_ON_CHAT
