/** Some 6 MB, also when Postgres is away for hours. */
const MOST_IDS = 50_000

/** Ids of the newest records, so that what is repeated is known. */
export class RecentIds {
  readonly #ids = new Set<string>()

  has(id: string): boolean {
    return this.#ids.has(id)
  }

  add(id: string): void {
    this.#ids.add(id)
    if (this.#ids.size <= MOST_IDS) return
    for (const oldest of this.#ids) {
      this.#ids.delete(oldest)
      return
    }
  }
}
