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

/** A clock whose waits no signal ends, unless one is given. Rollbacks use it as it is. */
export interface MachineClock extends DeployClock {
  /** @param signal ends the wait @throws DeployError once the signal is aborted */
  sleep(milliseconds: number, signal?: AbortSignal): Promise<void>
}

/** The clock of the machine. */
export const realClock: MachineClock = {
  now: () => Date.now(),
  sleep: async (milliseconds, signal) => {
    try {
      await wait(milliseconds, undefined, signal && { signal })
    } catch {
      throw new DeployError(INTERRUPTED)
    }
  },
}

/** The same time for forward steps. @param signal ends every wait */
export const interruptedBy = (signal: AbortSignal, clock: MachineClock): DeployClock => ({
  now: () => clock.now(),
  sleep: (milliseconds) => clock.sleep(milliseconds, signal),
})
