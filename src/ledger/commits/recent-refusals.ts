import { BoundedMap } from '../../lib/bounded-map.ts'
import type { AdmissionRefusal, CallLimits } from '../contract.ts'

const WINDOW_MS = 1_000
/** Refusals of one limit in a second that the ledger decides; further ones are repeated by this isolate. */
const MOST_LEDGER_REFUSALS = 20

type Limited = Extract<AdmissionRefusal, { kind: 'limited' }>

interface Recent {
  refusal: Limited
  /** When counting began, in milliseconds since the epoch. */
  since: number
  count: number
}

/**
 * Limits of one ledger that refused calls of this isolate in the last second, so that a flood above a limit does not load
 * the ledger. A caller that only repeats a call still reaches it, so a limit that was raised applies at once. The value
 * of the limit is part of the key, since a refusal by another value does not apply.
 */
export class RecentRefusals {
  readonly #recent = new BoundedMap<string, Recent>(1_000)

  find(limits: CallLimits, now: number): Limited | null {
    if (this.#recent.size === 0) return null
    for (const name of [nameOf('organization', limits), nameOf('user', limits)]) {
      const recent = this.#recent.get(name)
      if (recent && recent.count >= MOST_LEDGER_REFUSALS && now < recent.since + WINDOW_MS)
        return recent.refusal
    }
    return null
  }

  note(limits: CallLimits, refusal: Limited, now: number): void {
    const name = nameOf(refusal.scope, limits)
    const recent = this.#recent.get(name)
    if (recent && now < recent.since + WINDOW_MS) Object.assign(recent, { refusal, count: recent.count + 1 })
    else this.#recent.set(name, { refusal, since: now, count: 1 })
  }
}

const nameOf = (scope: Limited['scope'], { userId, organizationPerMinute, userPerMinute }: CallLimits) =>
  scope === 'organization' ? `organization ${organizationPerMinute}` : `user ${userId} ${userPerMinute}`
