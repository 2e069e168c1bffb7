import { ApiError } from './api-error.ts'
import { BufferBudget, type BufferShare } from './buffer-budget.ts'
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
  #share: BufferShare | null
  #freed = false
  readonly #buffer: GrowingBuffer

  /**
   * @param maximum bytes that `add` is given in all.
   * @param limitBytes of all bodies of this isolate together.
   * @param holder whose body it is: nobody takes the room of others.
   */
  constructor(maximum: number, limitBytes: number, holder: string) {
    limit = limitBytes
    this.#share = budget.open(holder)
    this.#buffer = new GrowingBuffer(maximum)
  }

  /** @throws ApiError rate_limited when this isolate holds too many bytes already. */
  add(chunk: Uint8Array): void {
    if (!this.#share?.take(chunk.length)) throw tooBusy()
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
    const share = this.#share
    this.#share = null
    if (!share) return
    if (this.#freed) share.close()
    else this.#buffer.free(share.close)
  }
}

const tooBusy = () =>
  new ApiError('rate_limited', 'Too many large requests are in progress here. Try again in a moment.', {
    retryAfterSeconds: 1,
  })
