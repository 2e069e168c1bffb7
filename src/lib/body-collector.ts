import { ApiError } from './api-error.ts'
import { BufferBudget } from './buffer-budget.ts'
import { GrowingBuffer } from './growing-buffer.ts'

let limit = 0
/** One for the isolate, whatever runs in it: requests of the Worker, and objects. */
const budget = new BufferBudget(() => limit)

export interface HeldBody {
  bytes: Uint8Array
  /** Gives the bytes back to the isolate; large ones are gone then, unless they are held. To be called once. */
  release: () => void
}

/**
 * Gathers what arrives within the isolate's budget. Budget and buffer follow what has arrived, so that nobody takes
 * memory by a declaration.
 */
export class BodyCollector {
  #taken = 0
  #freed = false
  readonly #buffer: GrowingBuffer

  /** @param maximum bytes that `add` is given in all. @param limitBytes of all bodies of this isolate together. */
  constructor(maximum: number, limitBytes: number) {
    limit = limitBytes
    this.#buffer = new GrowingBuffer(maximum)
  }

  /** @throws ApiError rate_limited when this isolate holds too many bytes already. */
  add(chunk: Uint8Array): void {
    if (!budget.take(chunk.length)) throw tooBusy()
    this.#taken += chunk.length
    this.#buffer.append(chunk)
  }

  finish(): HeldBody {
    return { bytes: this.#buffer.bytes(), release: () => this.release() }
  }

  /** Frees the bytes, but not their place in the budget: what was made of them takes that, until `release`. */
  freeBytes(): void {
    this.#freed = true
    this.#buffer.free(() => {})
  }

  /** The budget is given back with the memory, which somebody may hold for longer. */
  release(): void {
    const taken = this.#taken
    this.#taken = 0
    if (this.#freed) budget.give(taken)
    else this.#buffer.free(() => budget.give(taken))
  }
}

const tooBusy = () =>
  new ApiError('rate_limited', 'Too many large requests are in progress here. Try again in a moment.', {
    retryAfterSeconds: 1,
  })
