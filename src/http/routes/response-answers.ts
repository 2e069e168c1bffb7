import { policyFor } from '../../gateway/call-policies.ts'
import { invalidRequest } from '../../lib/api-error.ts'
import { type ListedItems, toldList } from '../../responses/item-list.ts'
import { readableResponse, withoutSealedReasoning } from '../../responses/reading.ts'
import type { Owner } from '../../responses/types.ts'
import type { Includes } from '../../wire/response-queries.ts'
import type { ResponseObject } from '../../wire/responses.ts'
import type { AppContext } from '../context.ts'

// What the routes of responses and of conversations have in common: whose things they read, and how they are told.

/** The caller, as the owner of what it made. */
export function ownerOf(context: AppContext): Owner {
  const { organizationId, userId } = context.var.principal
  return { organizationId, userId }
}

/** The policies in force now for what a model made. @param modelId empty where it is not known. */
export const currentPolicy = (context: AppContext, modelId: string) =>
  policyFor(context.var.deps, context.var.principal, modelId)

/** A response as its owner may read it now. */
export async function readable(
  context: AppContext,
  response: ResponseObject,
  { encryptedContent }: Includes,
): Promise<ResponseObject> {
  const read = readableResponse(await currentPolicy(context, response.model), response)
  return encryptedContent ? read : { ...read, output: read.output.map(withoutSealedReasoning) }
}

/** Answers a page of items. @param modelId of the policies that hold for them. */
export async function itemListAnswer(
  context: AppContext,
  page: ListedItems | 'unknown_item',
  { encryptedContent }: Includes,
  modelId: string,
): Promise<Response> {
  if (page === 'unknown_item')
    throw invalidRequest('after: is not the id of an item of this list', 'invalid_query')
  const policy = await currentPolicy(context, modelId)
  return jsonBytes(context, await toldList(page, { policy, encryptedContent }))
}

/** Answers JSON that is text already. */
export const jsonBytes = (context: AppContext, bytes: Uint8Array | ReadableStream<Uint8Array>): Response =>
  context.newResponse(bytes as never, 200, { 'content-type': 'application/json' })
