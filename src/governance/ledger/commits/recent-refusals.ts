import { BoundedMap } from '../../../lib/bounded-map.ts'
import type { CallLimits, Refusal } from '../contract.ts'

const WINDOW_MS = 1_000
/** Refusals of one limit that the ledger is asked for in a second; after that they are repeated without it. */
const ASKED_FOR = 20

type Limited = Extract<Refusal, { kind: 'limited' }>

interface Recent {
  refusal: Limited
  /** Since when they are counted, in milliseconds since the epoch. */
  since: number
  count: number
}

/**
 * Limits that refused calls a moment ago, of one ledger and isolate: a flood above a limit does not load the ledger. A
 * caller that only comes again is asked for, so that a limit that was raised holds from its next call on. By the value
 * of the limit too, since what another limit refused is no refusal by this one.
 */
export class RecentRefusals {
  readonly #recent = new BoundedMap<string, Recent>(1_000)

  find(limits: CallLimits, now: number): Limited | null {
    for (const name of [nameOf('organization', limits), nameOf('user', limits)]) {
      const recent = this.#recent.get(name)
      if (recent && recent.count >= ASKED_FOR && now < recent.since + WINDOW_MS) return recent.refusal
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
