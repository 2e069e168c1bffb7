import { ApiError } from '../../lib/api-error.ts'
import type { Clock } from '../../lib/clock.ts'
import type { KeyRing } from '../../lib/crypto.ts'
import { newResponseId, type ResponsePlace } from '../model/response-ids.ts'
import type { ObjectRoom, Owner, RequestContent, ResponseMethods } from '../model/types.ts'
import { lonePlace, Places } from './places.ts'

interface PlaceDeps {
  clock: Clock
  /** The object of a response. Check the id's MAC before, so that a guessed id wakes no object. */
  responseObject: (organizationId: string, responseId: string) => ResponseMethods
  configuration: { KEY_PEPPERS: KeyRing; RESPONSE_OBJECTS: 'own' | 'shared' }
}

/** The sender of a request for a response, and its body. */
interface PlacedRequest {
  owner: Owner
  /** `regionOf` the request. */
  region: string
  body: RequestContent
  /** The declared length of a body that is a stream; null if it is not known. */
  declaredBytes: number | null
}

/** A body over this size has an object that it is likely to have alone. */
const SHARED_BYTES = 1024 * 1024
/** Objects that are asked one after the other: an isolate that has just started may find many that are full. */
const MOST_FULL = 20

const places = new Places()

/**
 * Starts a response in an object with room for it, under an id that names the object.
 * @param longest bytes of a body whose length is not known.
 * @param start starts it in one object; called again, with another id, while objects are full.
 * @returns the result with the id. @throws ApiError internal when no object has room, and what `start` throws.
 */
export async function startResponse<Result extends { room?: ObjectRoom | undefined }>(
  deps: PlaceDeps,
  { owner, region, body, declaredBytes }: PlacedRequest,
  longest: number,
  start: (responseId: string, object: ResponseMethods, bodyBytes: number | undefined) => Promise<Result>,
): Promise<Result & { responseId: string }> {
  const { KEY_PEPPERS: ring, RESPONSE_OBJECTS } = deps.configuration
  const { organizationId } = owner
  const bodyBytes = body instanceof Uint8Array ? undefined : (declaredBytes ?? longest)
  for (let tries = 0; tries < MOST_FULL; tries++) {
    const isLarge = (bodyBytes ?? 0) > SHARED_BYTES
    const place = RESPONSE_OBJECTS === 'own' ? null : placeFor(organizationId, region, isLarge, deps.clock())
    const responseId = newResponseId(ring, place)
    const object = deps.responseObject(organizationId, responseId)
    if (place === null) return { ...(await start(responseId, object, bodyBytes)), responseId }
    const hasRoom = bodyBytes === undefined || (await object.reserve(owner, bodyBytes))
    const result = hasRoom ? await start(responseId, object, bodyBytes) : null
    const room = result === null ? 'none' : (result.room ?? 'enough')
    places.note(organizationId, place, room, deps.clock())
    // A stream cannot be sent to another object.
    if (result && (room !== 'none' || bodyBytes !== undefined)) return { ...result, responseId }
  }
  throw new ApiError('internal', 'The gateway is busy. Try again in a moment.', { retryAfterSeconds: 1 })
}

function placeFor(organizationId: string, region: string, isLarge: boolean, now: number): ResponsePlace {
  const shared = isLarge ? null : places.shared(organizationId, region, now)
  return shared ?? lonePlace(now, region)
}

/** An id that is stored before its response begins, and cannot be replaced when its object is full. */
export const storedResponseId = ({ clock, configuration }: Omit<PlaceDeps, 'responseObject'>): string =>
  newResponseId(
    configuration.KEY_PEPPERS,
    configuration.RESPONSE_OBJECTS === 'own' ? null : lonePlace(clock()),
  )
