import { costOf } from '../../calls/usage.ts'
import type { Charge, ChargeBasis } from './charges.ts'

/**
 * Containers in which a provider runs code are billed by time, at least five minutes, which no usage states: a call pays
 * for its own duration. https://platform.claude.com/docs/en/agents-and-tools/tool-use/code-execution-tool
 */
export const CONTAINER_MINUTES = 'container_minutes'
export const LEAST_CONTAINER_MINUTES = 5
/** Reserved. A call that lasts longer is charged in full. */
export const MOST_CONTAINER_MINUTES = 60

/** A charge with the time of its container, of a call that runs code. @param milliseconds duration of the call. */
export function withContainerTime({ prices }: ChargeBasis, charge: Charge, milliseconds: number): Charge {
  const { usage, cost } = charge
  const counted = usage?.units?.[CONTAINER_MINUTES]
  const minutes = Math.ceil(milliseconds / 60_000)
  if (!usage || counted === undefined || minutes <= counted) return charge
  const used = { ...usage, units: { ...usage.units, [CONTAINER_MINUTES]: minutes } }
  return { ...charge, usage: used, cost: cost + costOf(used, prices) - costOf(usage, prices) }
}
