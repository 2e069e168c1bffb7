/** What the platform reports about the sender of a request (https://developers.cloudflare.com/workers/runtime-apis/request/). */
interface Whereabouts {
  continent?: unknown
  /** Degrees as text. */
  longitude?: unknown
}

/** The region of a request about which nothing is known: the platform places the object near the caller. */
export const ANY_REGION = '0'

/**
 * Regions with their location hints (https://developers.cloudflare.com/durable-objects/reference/data-location/). A
 * character is a part of ids: it must not be given another meaning.
 */
const HINTS: Readonly<Record<string, DurableObjectLocationHint>> = {
  W: 'wnam',
  E: 'enam',
  S: 'sam',
  w: 'weur',
  e: 'eeur',
  A: 'apac',
  O: 'oc',
  F: 'afr',
  M: 'me',
}

/** Meridians between two regions of a continent, in degrees east. */
const MIDDLE_OF_NORTH_AMERICA = -100
const MIDDLE_OF_EUROPE = 15
const EDGE_OF_MIDDLE_EAST = 60

/** The region of a request. @param whereabouts `request.cf`; absent where the platform reports none. */
export function regionOf(whereabouts: object | undefined): string {
  const { continent, longitude: text }: Whereabouts = whereabouts ?? {}
  const longitude = Number(text ?? Number.NaN)
  if (continent === 'NA') return longitude < MIDDLE_OF_NORTH_AMERICA ? 'W' : 'E'
  if (continent === 'SA') return 'S'
  if (continent === 'EU') return longitude > MIDDLE_OF_EUROPE ? 'e' : 'w'
  if (continent === 'AS') return longitude < EDGE_OF_MIDDLE_EAST ? 'M' : 'A'
  if (continent === 'OC') return 'O'
  return continent === 'AF' ? 'F' : ANY_REGION
}

/** The location hint of a region; undefined for any other character. */
export const locationHint = (region: string): DurableObjectLocationHint | undefined => HINTS[region]
