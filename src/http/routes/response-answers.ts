import { policyFor } from '../../gateway/call-policies.ts'
import type { CallPolicy } from '../../governance/dlp/call-policy.ts'
import { invalidRequest } from '../../lib/api-error.ts'
import { type ListedItems, type Telling, toldList } from '../../responses/item-list.ts'
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

/**
 * The policies in force now for items that several models may have made, each read once.
 * @param models by the id of the item.
 */
export function policiesOf(context: AppContext, models: ReadonlyMap<string, string>) {
  const policies = new Map<string, Promise<CallPolicy>>()
  return (itemId: string): Promise<CallPolicy> => {
    const model = models.get(itemId) ?? ''
    const policy = policies.get(model) ?? currentPolicy(context, model)
    policies.set(model, policy)
    return policy
  }
}

/** Answers a page of items. @param policyOf the policies that hold for one of them. */
export async function itemListAnswer(
  context: AppContext,
  page: ListedItems | 'unknown_item',
  { encryptedContent }: Includes,
  policyOf: Telling['policyOf'],
): Promise<Response> {
  if (page === 'unknown_item')
    throw invalidRequest('after: is not the id of an item of this list', 'invalid_query')
  return jsonBytes(context, await toldList(page, { policyOf, encryptedContent }))
}

/** Answers JSON that is text already. */
export const jsonBytes = (context: AppContext, bytes: Uint8Array | ReadableStream<Uint8Array>): Response =>
  context.newResponse(bytes as never, 200, { 'content-type': 'application/json' })
