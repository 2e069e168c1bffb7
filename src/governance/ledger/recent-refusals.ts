import { BoundedMap } from '../../lib/bounded-map.ts'
import type { CallLimits, Refusal } from './ledger.ts'

/** How long a refusal is repeated without asking again. */
const REPEATED_MS = 1_000

type Limited = Extract<Refusal, { kind: 'limited' }>

/**
 * Limits that refused a call a moment ago, of one ledger and isolate: a caller above its limit does not load the ledger.
 * By the value of the limit too, since what another limit refused is no refusal by this one.
 */
export class RecentRefusals {
  readonly #refusals = new BoundedMap<string, { refusal: Limited; until: number }>(1_000)

  find(limits: CallLimits, now: number): Limited | null {
    for (const name of [nameOf('organization', limits), nameOf('user', limits)]) {
      const known = this.#refusals.get(name)
      if (known && now < known.until) return known.refusal
    }
    return null
  }

  note(limits: CallLimits, refusal: Limited, now: number): void {
    this.#refusals.set(nameOf(refusal.scope, limits), { refusal, until: now + REPEATED_MS })
  }
}

const nameOf = (scope: Limited['scope'], { userId, organizationPerMinute, userPerMinute }: CallLimits) =>
  scope === 'organization' ? `organization ${organizationPerMinute}` : `user ${userId} ${userPerMinute}`
