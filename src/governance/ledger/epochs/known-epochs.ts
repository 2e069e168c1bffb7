/** Revocation epochs that were read from Postgres; null for one that was not read, or is of no organization. */
export interface LearnedEpochs {
  organization: number | null
  catalogue: number | null
}

/** How long an epoch is believed after Postgres confirmed it. */
const BELIEVED_MS = 60_000

/** An epoch, and when it was last confirmed (milliseconds since the epoch; 0: never). */
export type KnownEpoch = {
  epoch: number
  confirmedAt: number
}

export interface StoredEpochs {
  organization: KnownEpoch
  catalogue: KnownEpoch
}

/** What an account begins with. @param at when Postgres told it. */
export const epochsAt = ({ organization, catalogue }: LearnedEpochs, at: number): StoredEpochs => ({
  organization: { epoch: organization ?? 0, confirmedAt: organization === null ? 0 : at },
  catalogue: { epoch: catalogue ?? 0, confirmedAt: catalogue === null ? 0 : at },
})

/**
 * What a ledger knows of the epochs of its organization's rights and of the catalogue. A value is only ever raised,
 * because slow readers of an old one race with those that tell a new one; one that nobody confirmed for a minute is
 * unknown, and then replaced by whatever is confirmed next, also by a lower one (Postgres was restored).
 *
 * The catalogue is changed behind other ledgers' backs, so its epoch counts only while this ledger is registered to be
 * told of changes (`CatalogueRegistration`).
 */
export class KnownEpochs {
  #known: StoredEpochs
  #registeredUntil = 0

  constructor(stored: StoredEpochs) {
    this.#known = stored
  }

  /** What has to survive a restart. */
  get stored(): StoredEpochs {
    return this.#known
  }

  organization(now: number): number | null {
    return believed(this.#known.organization, now)
  }

  catalogue(now: number): number | null {
    return now < this.#registeredUntil ? believed(this.#known.catalogue, now) : null
  }

  /** Told of every change of the catalogue until then. @param announced the newest epoch that was announced so far. */
  registered(until: number, announced: number | null): void {
    this.#registeredUntil = until
    const { epoch, confirmedAt } = this.#known.catalogue
    if (announced !== null && announced > epoch) {
      this.#known = { ...this.#known, catalogue: { epoch: announced, confirmedAt } }
    }
  }

  /** Takes over epochs that Postgres told. @param at when it was asked. @returns whether one was changed. */
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

const believed = ({ epoch, confirmedAt }: KnownEpoch, now: number): number | null =>
  confirmedAt > 0 && now < confirmedAt + BELIEVED_MS ? epoch : null

function confirmed(known: KnownEpoch, epoch: number, at: number): KnownEpoch {
  if (epoch < known.epoch && believed(known, at) !== null) return known
  return { epoch, confirmedAt: Math.max(at, known.confirmedAt) }
}
