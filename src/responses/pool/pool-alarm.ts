/** An alarm that is too early by less stays: to set it again would cost a row. */
const EARLY_MS = 1_000

/** The one alarm of an object with many responses. Each time it is set costs a row. */
export class PoolAlarm {
  readonly #storage: DurableObjectStorage
  /** The time that is set at the latest; null if that is not known. */
  #time: number | null = null

  constructor(storage: DurableObjectStorage) {
    this.#storage = storage
  }

  get isSet(): boolean {
    return this.#time !== null
  }

  /** To be called after a restart: the alarm that an earlier instance has set. */
  expect(time: number | null): void {
    this.#time = time
  }

  /** Sets the alarm unless it is set for an earlier time. @param time milliseconds since the epoch. */
  async setBy(time: number): Promise<void> {
    if (this.#time !== null && this.#time <= time) return
    await this.set(time)
  }

  /** Sets the alarm in place of the earlier one, unless that is about the same. */
  async moveTo(time: number): Promise<void> {
    if (this.#time !== null && this.#time <= time && this.#time > time - EARLY_MS) return
    await this.set(time)
  }

  /** Sets the alarm in place of the earlier one. */
  async set(time: number): Promise<void> {
    this.#time = time
    try {
      await this.#storage.setAlarm(time)
    } catch (error) {
      // The next one that is requested must be set, whatever its time.
      if (this.#time === time) this.#time = null
      throw error
    }
  }

  /** To be called when the alarm has fired, or was deleted with all storage. */
  clear(): void {
    this.#time = null
  }
}
