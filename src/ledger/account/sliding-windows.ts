import type { AdmissionRefusal, CallLimits } from '../contract.ts'

const WINDOW_MS = 60_000
/** Time for which a shard relies on the last counts of the others. */
const OTHERS_VALID_MS = 5_000

interface Window {
  scope: 'organization' | 'user'
  /** Calls a minute. */
  limit: number
  /** Calls; negative where more were counted than the limit now allows. */
  remaining: number
}

/** Name of the organization's own window; users' ids are not empty. */
const ORGANIZATION = ''

/**
 * Calls a minute of an organization and of its users, as @upstash/ratelimit computes them: windows are minutes of the
 * clock, and the one before is weighted by its share in the last 60 seconds. Only admitted calls are counted. In a ledger
 * with several shards, a user's window is complete in one of them. The organization's window includes the calls of the
 * other shards while those are known; otherwise this shard has an equal part of the limit.
 */
export class SlidingWindows {
  #start = 0
  #current = new Map<string, number>()
  #previous = new Map<string, number>()
  #others: { calls: number; learnedAt: number } | null = null
  /** Calls counted in all, and how many of them were loaded after a restart. */
  admitted = 0
  loaded = 0

  /** The limit that leaves no room for another call, the organization's first; null when there is room. */
  findFull(limits: CallLimits, now: number): Extract<AdmissionRefusal, { kind: 'limited' }> | null {
    const { scope, remaining } = this.tightest(limits, now)
    if (remaining > 0) return null
    const retryAfterSeconds = Math.max(1, Math.ceil((this.endsAt - now) / 1_000))
    return { kind: 'limited', scope, retryAfterSeconds }
  }

  /** The limit with the least room; the organization's where that has none. */
  tightest(limits: CallLimits, now: number): Window {
    this.#moveTo(now)
    const ofOrganization = this.#organizationRoom(limits, now)
    const ofUser = limits.userPerMinute - this.#used(limits.userId, now)
    return ofOrganization <= 0 || ofOrganization < ofUser
      ? { scope: 'organization', limit: limits.organizationPerMinute, remaining: ofOrganization }
      : { scope: 'user', limit: limits.userPerMinute, remaining: ofUser }
  }

  /** End of the current minute, in milliseconds since the epoch. */
  get endsAt(): number {
    return this.#start + WINDOW_MS
  }

  /** Counts calls of a user, and of the organization. @param at when they were admitted; not before an earlier count. */
  count(userId: string, at: number, calls = 1): void {
    this.#moveTo(at)
    this.admitted += calls
    for (const name of [ORGANIZATION, userId]) {
      this.#current.set(name, (this.#current.get(name) ?? 0) + calls)
    }
  }

  /** Calls in the organization's window that were admitted here. */
  ofOrganization(now: number): number {
    this.#moveTo(now)
    return this.#used(ORGANIZATION, now)
  }

  /** @param calls of the other shards in the organization's window. @param at when they were requested. */
  learnOthers(calls: number, at: number): void {
    this.#others = { calls: Math.max(0, calls), learnedAt: at }
  }

  /** Whether the calls of the other shards are known. */
  knowsOthers(now: number): boolean {
    return this.#others !== null && now - this.#others.learnedAt < OTHERS_VALID_MS
  }

  #organizationRoom({ organizationPerMinute: limit, shards = 1 }: CallLimits, now: number): number {
    const used = this.#used(ORGANIZATION, now)
    if (shards <= 1) return limit - used
    if (this.#others && this.knowsOthers(now)) return limit - used - this.#others.calls
    return Math.max(1, Math.floor(limit / shards)) - used
  }

  #used(name: string, now: number): number {
    const elapsed = Math.max(0, now - this.#start) / WINDOW_MS
    const before = Math.floor((1 - elapsed) * (this.#previous.get(name) ?? 0))
    return before + (this.#current.get(name) ?? 0)
  }

  /** A clock that moves backwards stays in the current window. */
  #moveTo(now: number): void {
    const start = now - (now % WINDOW_MS)
    if (start <= this.#start) return
    this.#previous = start === this.#start + WINDOW_MS ? this.#current : new Map()
    this.#current = new Map()
    this.#start = start
  }
}
