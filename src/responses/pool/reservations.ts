/** Time in which the start of a response has to follow its reservation. */
export const LAPSE_MS = 60_000

/** Room of an object that is reserved for responses whose starts are on their way. */
export class Reservations {
  readonly #reserved = new Map<string, { bytes: number; until: number }>()

  /** @param now milliseconds since the epoch. */
  add(responseId: string, bytes: number, now: number): void {
    this.#reserved.set(responseId, { bytes, until: now + LAPSE_MS })
  }

  /** Removes a reservation. @returns whether there was one. */
  take(responseId: string): boolean {
    return this.#reserved.delete(responseId)
  }

  current(now: number): { count: number; bytes: number } {
    let bytes = 0
    for (const [id, reserved] of this.#reserved) {
      if (reserved.until <= now) this.#reserved.delete(id)
      else bytes += reserved.bytes
    }
    return { count: this.#reserved.size, bytes }
  }
}
