/** Revocation epochs that were read from Postgres; null for one that was not read, or is of no organization. */
export interface LearnedEpochs {
  organization: number | null
  catalogue: number | null
}

/** How long an epoch is valid after Postgres confirmed it. */
const VALID_MS = 60_000

/** An epoch, and when it was last confirmed (milliseconds since the epoch; 0: never). */
export type KnownEpoch = {
  epoch: number
  confirmedAt: number
}

export interface StoredEpochs {
  organization: KnownEpoch
  catalogue: KnownEpoch
}

/** The initial epochs of an account. @param at when they were read from Postgres. */
export const epochsAt = ({ organization, catalogue }: LearnedEpochs, at: number): StoredEpochs => ({
  organization: { epoch: organization ?? 0, confirmedAt: organization === null ? 0 : at },
  catalogue: { epoch: catalogue ?? 0, confirmedAt: catalogue === null ? 0 : at },
})

/**
 * The revocation epochs of an organization's rights and of the catalogue, as its ledger has them. A valid epoch is only
 * raised, because a slow reader of an old one can come after a new one. An epoch that was not confirmed for a minute is
 * unknown, and is replaced by the next one that is confirmed, also by a lower one (Postgres was restored).
 *
 * Changes of the catalogue pass by this ledger, so its epoch is only valid while this ledger is registered for
 * announcements (`CatalogueRegistration`).
 */
export class KnownEpochs {
  #known: StoredEpochs
  #registeredUntil = 0

  constructor(stored: StoredEpochs) {
    this.#known = stored
  }

  get stored(): StoredEpochs {
    return this.#known
  }

  organization(now: number): number | null {
    return validEpoch(this.#known.organization, now)
  }

  catalogue(now: number): number | null {
    return now < this.#registeredUntil ? validEpoch(this.#known.catalogue, now) : null
  }

  /** Every change of the catalogue is announced here until then. @param announced the newest epoch announced so far. */
  registered(until: number, announced: number | null): void {
    this.#registeredUntil = until
    const { epoch, confirmedAt } = this.#known.catalogue
    if (announced !== null && announced > epoch) {
      this.#known = { ...this.#known, catalogue: { epoch: announced, confirmedAt } }
    }
  }

  /** Takes over epochs that were read from Postgres. @param at when the query was sent. @returns whether one has changed. */
  confirm({ organization, catalogue }: LearnedEpochs, at: number): boolean {
    const before = this.#known
    this.#known = {
      organization:
        organization === null ? before.organization : confirmed(before.organization, organization, at),
      catalogue: catalogue === null ? before.catalogue : confirmed(before.catalogue, catalogue, at),
    }
    return (
      this.#known.organization.epoch !== before.organization.epoch ||
      this.#known.catalogue.epoch !== before.catalogue.epoch
    )
  }
}

const validEpoch = ({ epoch, confirmedAt }: KnownEpoch, now: number): number | null =>
  confirmedAt > 0 && now < confirmedAt + VALID_MS ? epoch : null

function confirmed(known: KnownEpoch, epoch: number, at: number): KnownEpoch {
  if (epoch < known.epoch && validEpoch(known, at) !== null) return known
  return { epoch, confirmedAt: Math.max(at, known.confirmedAt) }
}
