import { base62, base62Value, type ResponsePlace } from '../model/response-ids.ts'

/** Time in which an object takes responses. */
const SLOT_MS = 10 * 60_000
/** Slots with different names: they repeat after 26.7 days. */
const SLOTS = 62 ** 2

/** The name of the slot of a time. @param now milliseconds since the epoch. */
export const slotAt = (now: number): string => base62(Math.floor(now / SLOT_MS) % SLOTS, 2)

/**
 * The end of a slot: of the one of this name that began last, or begins soonest if clocks differ by less than a slot.
 * @param now milliseconds since the epoch.
 */
export function slotEnd(slot: string, now: number): number {
  const next = Math.floor(now / SLOT_MS) + 1
  const back = (((next - base62Value(slot)) % SLOTS) + SLOTS) % SLOTS
  return (next - back + 1) * SLOT_MS
}

/**
 * The name of the object of a place. The organization is the caller's, never one that an id says: a foreign id leads to an
 * object of the caller's own organization, which has no such response.
 *
 * The slot is in the name as the id has it, so that an id names the same object for ever. A name is used again after 26.7 days.
 * Its object has deleted itself long before; if not, since a write is still pending, it takes further responses: rows are
 * numbered in the object, and ids are random.
 */
export const poolName = (organizationId: string, { region, slot, number }: ResponsePlace): string =>
  `${organizationId}/${region}/${slot}/${number}`
