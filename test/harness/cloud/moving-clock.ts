import { type MachineClock, refuseInterrupted } from '../../../scripts/deploy/deploy-clock.ts'

/** A clock that moves when it is waited for. */
export class MovingClock implements MachineClock {
  #now = Date.parse('2026-11-01T00:00:00Z')
  /** Milliseconds of each wait. */
  readonly waits: number[] = []

  /** Called at the end of each wait. */
  onSleep: (milliseconds: number) => void | Promise<void> = () => {}

  now(): number {
    return this.#now
  }

  async sleep(milliseconds: number, signal?: AbortSignal): Promise<void> {
    this.waits.push(milliseconds)
    this.#now += milliseconds
    await this.onSleep(milliseconds)
    if (signal !== undefined) refuseInterrupted(signal)
  }
}
