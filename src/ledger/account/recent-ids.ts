/** Maximum number of ids. They take some 6 MB, also when Postgres is away for hours. */
const MOST_IDS = 50_000

/** Ids of the newest records, by which a repeated call is recognized. */
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
