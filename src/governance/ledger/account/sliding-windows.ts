import type { CallLimits, Refusal } from '../contract.ts'

const WINDOW_MS = 60_000
/** How long a shard relies on what it heard of the others. */
const OTHERS_BELIEVED_MS = 5_000

/** Name of the organization's own window; users' ids are not empty. */
const ORGANIZATION = ''

/**
 * Calls a minute of an organization and of its users, as @upstash/ratelimit computes them: windows of the clock's
 * minutes, the one before weighted by what is left of it. Only calls that are admitted are counted. Of an organization
 * whose ledger has several shards this is one shard's part: a user's window is here whole, the organization's with what
 * the other shards admitted as far as it is known, and else with an equal part of the limit.
 */
export class SlidingWindows {
  #start = 0
  #current = new Map<string, number>()
  #previous = new Map<string, number>()
  #others: { calls: number; heardAt: number } | null = null
  /** Calls that were counted in all, and how many of them were loaded after a restart. */
  admitted = 0
  loaded = 0

  /** Whose limit leaves no room for another call, the organization's first; null when there is room. */
  findFull(limits: CallLimits, now: number): Extract<Refusal, { kind: 'limited' }> | null {
    this.#moveTo(now)
    const scope = this.#isOrganizationFull(limits, now)
      ? 'organization'
      : this.#used(limits.userId, now) >= limits.userPerMinute
        ? 'user'
        : null
    if (scope === null) return null
    const retryAfterSeconds = Math.max(1, Math.ceil((this.#start + WINDOW_MS - now) / 1_000))
    return { kind: 'limited', scope, retryAfterSeconds }
  }

  /** Counts calls of a user, and of the organization. @param at when they were admitted; not before an earlier count. */
  count(userId: string, at: number, calls = 1): void {
    this.#moveTo(at)
    this.admitted += calls
    for (const name of [ORGANIZATION, userId]) {
      this.#current.set(name, (this.#current.get(name) ?? 0) + calls)
    }
  }

  /** Calls in the organization's window, as far as they were admitted here. */
  ofOrganization(now: number): number {
    this.#moveTo(now)
    return this.#used(ORGANIZATION, now)
  }

  /** Takes over how many calls the other shards have in the organization's window. @param at when that was asked for. */
  learnOthers(calls: number, at: number): void {
    this.#others = { calls: Math.max(0, calls), heardAt: at }
  }

  /** Whether it was heard lately what the other shards admitted. */
  knowsOthers(now: number): boolean {
    return this.#others !== null && now - this.#others.heardAt < OTHERS_BELIEVED_MS
  }

  #isOrganizationFull({ organizationPerMinute: limit, shards = 1 }: CallLimits, now: number): boolean {
    const used = this.#used(ORGANIZATION, now)
    if (shards <= 1) return used >= limit
    if (this.#others && this.knowsOthers(now)) return used + this.#others.calls >= limit
    return used >= Math.max(1, Math.floor(limit / shards))
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
