import { setTimeout as wait } from 'node:timers/promises'
import { DeployError } from './deploy-error.ts'

const INTERRUPTED = 'interrupted; run again to continue'

/** @throws DeployError if the deployment is interrupted. Before each step, because most of them notice no signal */
export function refuseInterrupted(signal: AbortSignal): void {
  if (signal.aborted) throw new DeployError(INTERRUPTED)
}

/** Time of a deployment. Tests move it, so that they wait for nothing. */
export interface DeployClock {
  /** Milliseconds since the Unix epoch. */
  now(): number
  /** @throws DeployError if the deployment is interrupted */
  sleep(milliseconds: number): Promise<void>
}

/** The clock of the machine. @param signal interrupts a deployment that waits */
export const realClock = (signal: AbortSignal): DeployClock => ({
  now: () => Date.now(),
  sleep: async (milliseconds) => {
    try {
      await wait(milliseconds, undefined, { signal })
    } catch {
      throw new DeployError(INTERRUPTED)
    }
  },
})
