import type { GovernedCall } from '../../../src/calls/governed-call.ts'
import type { CallOpening, CallOutcome } from '../../../src/ledger/audit-record.ts'
import {
  type Admission,
  type CallProgress,
  type CallToAdmit,
  type LedgerClient,
  type LedgerOf,
  SETTLED_CALL,
} from '../../../src/ledger/contract.ts'

type Counted = Pick<CallToAdmit, 'epochs' | 'learned' | 'limits'>

/** Seconds that every window of this ledger asks to wait. */
export const RETRY_AFTER_SECONDS = 7

/**
 * A ledger in memory that decides as the contract says (`Ledger`): duplicates, then epochs, limits, credits. Its windows
 * count and never pass. The real one is tested in test/durable.
 */
export class MemoryLedger implements Pick<LedgerClient, 'admit' | 'check' | 'close' | 'extend' | 'record'> {
  /** Known epochs; null for unknown. */
  readonly epochs: { organization: number | null; catalogue: number | null } = {
    organization: 1,
    catalogue: 1,
  }
  /** Micro-credits. */
  available = Number.MAX_SAFE_INTEGER
  /** Makes every method fail, as an object that cannot be reached does. */
  away = false
  /** How often it was asked to admit, check or record. */
  asked = 0
  readonly opened: CallToAdmit[] = []
  readonly closed: Array<{ callId: string; outcome: CallOutcome }> = []
  readonly recorded: Array<{ opening: CallOpening; outcome: CallOutcome }> = []
  readonly extended: Array<{ callId: string; leaseMilliseconds: number; progress: CallProgress | null }> = []
  readonly #settled = new Set<string>()
  readonly #open = new Map<string, CallToAdmit>()
  readonly #counts = new Map<string, number>()

  readonly of: LedgerOf = () => this as unknown as LedgerClient

  async admit(call: CallToAdmit): Promise<Admission> {
    this.#reach()
    const { callId } = call.opening
    if (this.#settled.has(callId)) throw new RangeError(SETTLED_CALL)
    if (this.#isKnown(callId)) return { kind: 'admitted' }
    const refusal = this.#staleOf(call) ?? this.#limitedOf(call)
    if (refusal) return refusal
    if (call.reserve > this.available) {
      return { kind: 'no_credits', available: this.available, required: call.reserve }
    }
    this.#count(call)
    this.available -= call.reserve
    this.#open.set(callId, call)
    this.opened.push(call)
    return { kind: 'admitted' }
  }

  async check(call: Counted): Promise<Admission> {
    this.#reach()
    return this.#staleOf(call) ?? this.#limitedOf(call) ?? { kind: 'admitted' }
  }

  async record(opening: CallOpening, outcome: CallOutcome, counted?: Counted): Promise<Admission> {
    this.#reach()
    if (this.#isKnown(opening.callId)) return { kind: 'admitted' }
    const refusal = counted && (this.#staleOf(counted) ?? this.#limitedOf(counted))
    if (refusal) return refusal
    if (counted) this.#count(counted)
    this.recorded.push({ opening, outcome })
    return { kind: 'admitted' }
  }

  async close(callId: string, outcome: CallOutcome): Promise<void> {
    this.#reach()
    const call = this.#open.get(callId)
    if (!call) return
    this.#open.delete(callId)
    this.#settled.add(callId)
    this.available += call.reserve - outcome.cost
    this.closed.push({ callId, outcome })
  }

  async extend(
    callId: string,
    leaseMilliseconds: number,
    progress: CallProgress | null,
  ): Promise<{ open: boolean }> {
    this.#reach()
    this.extended.push({ callId, leaseMilliseconds, progress })
    return { open: this.#open.has(callId) }
  }

  /** Settles an open call as the alarm does when its lease runs out. */
  lapse(callId: string): void {
    this.#settled.add(callId)
    this.#open.delete(callId)
  }

  /** Holds a call open that a test does not have admitted. */
  hold(call: GovernedCall): void {
    const free = { leaseMilliseconds: 0, estimate: null, learned: null, limits: null }
    const epochs: CallToAdmit['epochs'] = { organization: 1, catalogue: null }
    this.#open.set(call.opening.callId, { ...call, ...free, epochs })
  }

  #isKnown(callId: string): boolean {
    const isClosed = this.closed.some((closed) => closed.callId === callId)
    return (
      isClosed || this.#open.has(callId) || this.recorded.some(({ opening }) => opening.callId === callId)
    )
  }

  #reach(): void {
    this.asked++
    if (this.away) throw new Error('the ledger cannot be reached')
  }

  /** An announced epoch raises the known one, and never lowers it. */
  #staleOf({ epochs, learned }: Counted): Admission | null {
    if (learned) {
      for (const scope of ['organization', 'catalogue'] as const) {
        const told = learned[scope]
        if (told !== null) this.epochs[scope] = Math.max(this.epochs[scope] ?? 0, told)
      }
    }
    const { organization, catalogue } = this.epochs
    const fits = epochs.catalogue === null || epochs.catalogue === catalogue
    return organization === epochs.organization && fits ? null : { kind: 'stale', organization, catalogue }
  }

  #limitedOf({ limits }: Counted): Admission | null {
    if (!limits) return null
    const counts = [
      { scope: 'organization', count: this.#counts.get('organization'), limit: limits.organizationPerMinute },
      { scope: 'user', count: this.#counts.get(limits.userId), limit: limits.userPerMinute },
    ] as const
    const full = counts.find(({ count = 0, limit }) => count >= limit)
    return full ? { kind: 'limited', scope: full.scope, retryAfterSeconds: RETRY_AFTER_SECONDS } : null
  }

  #count({ limits }: Counted): void {
    if (!limits) return
    for (const window of ['organization', limits.userId]) {
      this.#counts.set(window, (this.#counts.get(window) ?? 0) + 1)
    }
  }
}

/** The opening of a call that nothing depends on. */
export function someOpening(values: Partial<CallOpening> = {}): CallOpening {
  return {
    callId: 'call',
    requestId: 'request',
    organizationId: 'organization',
    at: 0,
    actor: { userId: 'user', keyId: 'key', administrator: null, ip: null },
    surface: 'chat',
    action: 'POST /v1/chat/completions',
    modelId: 'model',
    ...values,
  }
}
