import { type Clock, systemClock } from '../clock.ts'

/**
 * Part of the free budget that a holder above its share cannot take, unless it has one body and the others hold no more
 * than that.
 */
const KEPT_FOR_OTHERS = 1 / 8
/** A body that has been arriving for longer comes from a slow sender: it can lose its place to a smaller holder. */
const SLOW_AFTER_MS = 5_000

/** A body whose bytes are still arriving. */
interface Arriving {
  since: number
  bytes: () => number
  evict: () => void
}

interface Holder {
  bytes: number
  bodies: number
  arriving: Set<Arriving>
}

/**
 * Limits the bytes of request and response bodies that this isolate holds at once. An isolate has 128 MB for all its
 * requests, and exceeding that cancels all of them, so what does not fit is refused before it is stored.
 *
 * Each holder is entitled to an equal share of the limit. More is lent to it: a holder below its share takes room back from
 * bodies of slow senders, so that any number of holders that send slowly cannot keep the others out.
 */
export class ByteBudget {
  #held = 0
  readonly #holders = new Map<string, Holder>()
  readonly #limit: () => number
  readonly #clock: Clock

  /** @param limit in bytes; read at each use, since the configuration arrives with the first request. */
  constructor(limit: () => number, clock: Clock = systemClock) {
    this.#limit = limit
    this.#clock = clock
  }

  /**
   * Opens the share of a body.
   * @param name of its holder. @param evicted called when a body that is arriving has lost its place, which is released
   * then; null for one that is here already.
   */
  open(name: string, evicted: (() => void) | null = null): BudgetShare {
    const holder = this.#holders.get(name) ?? { bytes: 0, bodies: 0, arriving: new Set() }
    this.#holders.set(name, holder)
    holder.bodies++
    let taken = 0
    let isOpen = true
    const close = () => {
      if (!isOpen) return
      isOpen = false
      holder.arriving.delete(arriving)
      holder.bytes -= taken
      this.#held -= taken
      holder.bodies--
      if (holder.bodies === 0) this.#holders.delete(name)
    }
    const arriving: Arriving = {
      since: this.#clock(),
      bytes: () => taken,
      evict: () => {
        close()
        evicted?.()
      },
    }
    if (evicted) holder.arriving.add(arriving)
    return {
      take: (bytes) => {
        if (!isOpen || !this.#makeRoom(holder, bytes)) return false
        taken += bytes
        holder.bytes += bytes
        this.#held += bytes
        return true
      },
      arrived: () => void holder.arriving.delete(arriving),
      close,
    }
  }

  #makeRoom(holder: Holder, bytes: number): boolean {
    const limit = this.#limit()
    const wanted = holder.bytes + bytes
    const free = () => limit - (this.#held - holder.bytes)
    const isAlone = holder.bodies === 1 && free() >= limit * (1 - KEPT_FOR_OTHERS)
    if (wanted <= free() * (isAlone ? 1 : 1 - KEPT_FOR_OTHERS)) return true
    const share = limit / Math.max(2, this.#holders.size)
    if (wanted > share) return false
    while (wanted > free()) {
      const slow = this.#largestSlowBody(share)
      if (!slow) return false
      slow.evict()
    }
    return true
  }

  /** The largest slow body among holders above their share. */
  #largestSlowBody(share: number): Arriving | undefined {
    const latest = this.#clock() - SLOW_AFTER_MS
    return [...this.#holders.values()]
      .filter(({ bytes }) => bytes > share)
      .flatMap(({ arriving }) => [...arriving])
      .filter(({ since, bytes }) => since <= latest && bytes() > 0)
      .sort((left, right) => right.bytes() - left.bytes())[0]
  }
}

/** The bytes of one body. */
export interface BudgetShare {
  /** Takes `bytes` out of the budget. @returns false, and takes nothing, when they do not fit. */
  take: (bytes: number) => boolean
  /** The body is complete: it keeps its place until it is released. */
  arrived: () => void
  /** Releases all of them. Idempotent. */
  close: () => void
}
