/**
 * Ids of tool calls in the words of the other protocol. An id that is usable there stays as it is; others, and those
 * that were used before, are numbered. Upstreams number in the order of the conversation, so a longer conversation
 * gives its older calls the same ids again, and prompt caches hold.
 */
export class CallIds {
  readonly #usable: (id: string) => boolean
  readonly #told = new Set<string>()
  /** Of the turn at hand, by the caller's id: the calls, and how many of them are answered. */
  readonly #open = new Map<string, { told: string[]; answered: number }>()
  #count = 0

  constructor(usable: (id: string) => boolean) {
    this.#usable = usable
  }

  /** @returns the id to tell for a call of the turn at hand. */
  call(id: string): string {
    let told = id
    while (!this.#usable(told) || this.#told.has(told)) told = `call_${++this.#count}`
    this.#told.add(told)
    const calls = this.#open.get(id)
    if (calls) calls.told.push(told)
    else this.#open.set(id, { told: [told], answered: 0 })
    return told
  }

  /**
   * @returns the id that was told for the call that this result answers, or undefined when there is none. Calls of one
   * id are answered in their order; a result too many belongs to the last of them.
   */
  answer(id: string): string | undefined {
    const calls = this.#open.get(id)
    if (!calls) return undefined
    const position = Math.min(calls.answered++, calls.told.length - 1)
    return calls.told[position]
  }

  /** The caller's ids of calls that no result answers. */
  unanswered(): string[] {
    return [...this.#open].filter(([, { told, answered }]) => answered < told.length).map(([id]) => id)
  }

  /** Forgets the calls of the turn at hand: a result further on cannot answer them. */
  nextTurn(): void {
    this.#open.clear()
  }
}

/** https://docs.anthropic.com/en/api/messages: `tool_use.id` must match this. */
export const usableOnMessages = (id: string): boolean => /^[a-zA-Z0-9_-]+$/.test(id)

/** OpenAI refuses longer ones; some models take them, all take these. */
const LONGEST_ON_CHAT = 40
export const usableOnChat = (id: string): boolean => id !== '' && id.length <= LONGEST_ON_CHAT
