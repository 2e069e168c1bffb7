import type { CallLimits, Refusal } from './ledger.ts'

const WINDOW_MS = 60_000

/** Name of the organization's own window; users' ids are not empty. */
const ORGANIZATION = ''

/**
 * Calls a minute of an organization and of its users, as @upstash/ratelimit computes them: windows of the clock's
 * minutes, the one before weighted by what is left of it. Only calls that are admitted are counted.
 */
export class SlidingWindows {
  #start = 0
  #current = new Map<string, number>()
  #previous = new Map<string, number>()

  /** Whose limit leaves no room for another call, the organization's first; null when there is room. */
  findFull(limits: CallLimits, now: number): Extract<Refusal, { kind: 'limited' }> | null {
    this.#moveTo(now)
    const isFull = (name: string, perMinute: number) => this.#used(name, now) >= perMinute
    const scope = isFull(ORGANIZATION, limits.organizationPerMinute)
      ? 'organization'
      : isFull(limits.userId, limits.userPerMinute)
        ? 'user'
        : null
    if (scope === null) return null
    const retryAfterSeconds = Math.max(1, Math.ceil((this.#start + WINDOW_MS - now) / 1_000))
    return { kind: 'limited', scope, retryAfterSeconds }
  }

  /** Counts calls of a user, and of the organization. @param at when they were admitted; not before an earlier count. */
  count(userId: string, at: number, calls = 1): void {
    this.#moveTo(at)
    for (const name of [ORGANIZATION, userId]) {
      this.#current.set(name, (this.#current.get(name) ?? 0) + calls)
    }
  }

  #used(name: string, now: number): number {
    const elapsed = Math.max(0, now - this.#start) / WINDOW_MS
    const before = Math.floor((1 - elapsed) * (this.#previous.get(name) ?? 0))
    return before + (this.#current.get(name) ?? 0)
  }

  /** A clock that goes back stays in the window that was begun. */
  #moveTo(now: number): void {
    const start = now - (now % WINDOW_MS)
    if (start <= this.#start) return
    this.#previous = start === this.#start + WINDOW_MS ? this.#current : new Map()
    this.#current = new Map()
    this.#start = start
  }
}
