import { lacksIncluded } from '../../responses/items/included-members.ts'
import { isResponseId } from '../../responses/model/response-ids.ts'
import type { Owner, ResponseMethods } from '../../responses/model/types.ts'
import { type EndedResponse, storedResponse } from '../../responses/object/stored-response.ts'
import type { Includes } from '../../wire/response-queries.ts'
import type { ResponseObject } from '../../wire/responses.ts'
import type { AppContext } from '../context.ts'
import { unknownId } from '../validated-request.ts'
import { ownerOf, refreshRights } from './response-answers.ts'

/** A response that may exist, and may belong to the caller: its object and Postgres decide. */
export interface ResponseHandle {
  id: string
  owner: Owner
  object: ResponseMethods
}

/** @throws ApiError not_found for an id without a valid MAC: it must not start an object. */
export function handleOf(context: AppContext): ResponseHandle {
  const id = context.req.param('responseId') ?? ''
  const { deps } = context.var
  if (!isResponseId(deps.configuration.KEY_PEPPERS, id)) throw unknownId('Response', id)
  const owner = ownerOf(context)
  return { id, owner, object: deps.responseObject(owner.organizationId, id) }
}

/** The response from its object, or else from Postgres, never combined. @throws ApiError not_found */
export async function findResponse(
  context: AppContext,
  { id, owner, object }: ResponseHandle,
): Promise<ResponseObject> {
  const response =
    (await object.snapshot(owner)) ?? (await storedResponse(context.var.deps, owner, id))?.response
  if (!response) throw unknownId('Response', id)
  return response
}

/** `findResponse` for a response that has ended. @throws ApiError not_found */
export async function findEnded(
  context: AppContext,
  handle: ResponseHandle,
): Promise<Omit<EndedResponse, 'cost'>> {
  const found = await findIfEnded(context, handle)
  if (found === null) throw unknownId('Response', handle.id)
  return found
}

/** A response that has ended; null for one that has not, and for one that does not exist. */
export async function findIfEnded(
  context: AppContext,
  { id, owner, object }: ResponseHandle,
): Promise<Omit<EndedResponse, 'cost'> | null> {
  const numbers = (await object.state(owner))?.numbers
  const response = numbers ? await object.snapshot(owner) : null
  if (numbers && response) return { response, numbers }
  return storedResponse(context.var.deps, owner, id)
}

/**
 * `findResponse` with the members that a request includes.
 * @returns null without such a response.
 */
export async function findIncluding(
  context: AppContext,
  { id, owner, object }: ResponseHandle,
  includes: Includes,
): Promise<ResponseObject | null> {
  const held = await object.snapshot(owner)
  if (held && !held.output.some((item) => lacksIncluded(item, includes))) return held
  // The object has what the first request included; Postgres has all members, once the response has ended.
  return (await storedResponse(context.var.deps, owner, id))?.response ?? held
}

/** The response when it has ended. Renews the caller's rights, so that the current policies apply. */
export async function endedResponse(
  context: AppContext,
  { object, owner }: ResponseHandle,
): Promise<ResponseObject | null> {
  const response = await object.ended(owner)
  await refreshRights(context)
  return response
}
