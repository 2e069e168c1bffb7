/** Share of the budget that one holder with several bodies cannot take, so that others can be served. */
const KEPT_FOR_OTHERS = 1 / 8

interface Holder {
  bytes: number
  bodies: number
}

/**
 * Limits the bytes of request and response bodies that this isolate holds at once. An isolate has 128 MB for all its
 * requests, and exceeding that cancels all of them, so what does not fit is refused before it is stored.
 */
export class ByteBudget {
  #held = 0
  readonly #holders = new Map<string, Holder>()
  readonly #limit: () => number

  /** @param limit in bytes; read at each use, since the configuration arrives with the first request. */
  constructor(limit: () => number) {
    this.#limit = limit
  }

  /** Opens the share of a body. @param name of its holder. */
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
  /** Releases all of them. To be called once. */
  close: () => void
}
