import { BoundedMap } from '../../lib/bounded-map.ts'
import { base62, type ResponsePlace } from '../model/response-ids.ts'
import type { ObjectRoom } from '../model/types.ts'
import { ANY_REGION } from './regions.ts'
import { slotAt } from './slots.ts'

/** Objects of a region and slot that share responses; the others are for responses that are likely to be alone there. */
const SHARED = 62 ** 2 / 2
/** Time for which an isolate remembers that objects are full. Then it tries the first one again. */
const MEMORY_MS = 30_000

interface Known {
  slot: string
  /** The lowest number that is not known to be full. */
  lowest: number
  until: number
}

/**
 * Where an isolate puts the next response of an organization and region: into the object with the lowest number that is not
 * full. Isolates share nothing; each learns from the answers of the objects.
 */
export class Places {
  readonly #known = new BoundedMap<string, Known>(1_000)

  /** @param now milliseconds since the epoch. @returns null when all objects of this slot are full. */
  shared(organizationId: string, region: string, now: number): ResponsePlace | null {
    const { slot, lowest } = this.#current(organizationId, region, now)
    return lowest < SHARED ? { region, slot, number: base62(lowest, 2) } : null
  }

  /** Notes the room that the object of a place has. */
  note(organizationId: string, place: ResponsePlace, room: ObjectRoom, now: number): void {
    if (room === 'enough') return
    const { region, number } = place
    const current = this.#current(organizationId, region, now)
    if (current.slot !== place.slot || number !== base62(current.lowest, 2)) return
    this.#known.set(nameOf(organizationId, region), { ...current, lowest: current.lowest + 1 })
  }

  #current(organizationId: string, region: string, now: number): Known {
    const name = nameOf(organizationId, region)
    const known = this.#known.get(name)
    const slot = slotAt(now)
    if (known && known.slot === slot && now < known.until) return known
    const fresh = { slot, lowest: 0, until: now + MEMORY_MS }
    this.#known.set(name, fresh)
    return fresh
  }
}

const nameOf = (organizationId: string, region: string): string => `${organizationId}/${region}`

/**
 * A place where a response is likely to be alone: one of 1,922 at random. For large requests, whose contexts would fill a
 * shared object, and for ids that are stored before their responses begin, which cannot move to another object.
 * @param now milliseconds since the epoch.
 */
export function lonePlace(now: number, region: string = ANY_REGION): ResponsePlace {
  const [random = 0] = crypto.getRandomValues(new Uint32Array(1))
  return { region, slot: slotAt(now), number: base62(SHARED + (random % SHARED), 2) }
}
