/** What of the budget nobody takes with several bodies at once: others can always be served. */
const KEPT_FOR_OTHERS = 1 / 8

interface Holder {
  bytes: number
  bodies: number
}

/**
 * Bytes of bodies, of requests and of answers, that this isolate holds at once. An isolate has 128 MB for all its
 * requests, and passing it cancels them all, so what does not fit is refused before it is held.
 */
export class ByteBudget {
  #held = 0
  readonly #holders = new Map<string, Holder>()
  readonly #limit: () => number

  /** @param limit read at each use, since configuration arrives with the first request. */
  constructor(limit: () => number) {
    this.#limit = limit
  }

  /** Begins a body. @param name of who holds it. */
  open(name: string): BudgetShare {
    const holder = this.#holders.get(name) ?? { bytes: 0, bodies: 0 }
    this.#holders.set(name, holder)
    holder.bodies++
    let taken = 0
    return {
      take: (bytes) => {
        const most = this.#limit() * (holder.bodies > 1 ? 1 - KEPT_FOR_OTHERS : 1)
        if (this.#held + bytes > this.#limit() || holder.bytes + bytes > most) return false
        taken += bytes
        holder.bytes += bytes
        this.#held += bytes
        return true
      },
      close: () => {
        holder.bytes -= taken
        this.#held -= taken
        holder.bodies--
        if (holder.bodies === 0) this.#holders.delete(name)
      },
    }
  }
}

/** The bytes of one body. */
export interface BudgetShare {
  /** Takes `bytes` out of the budget. @returns false, and takes nothing, when they do not fit. */
  take: (bytes: number) => boolean
  /** Gives all of them back. To be called once. */
  close: () => void
}
