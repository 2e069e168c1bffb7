import type { Deps } from '../../deps.ts'
import type { CallPolicy } from '../../governance/dlp/policy/call-policy.ts'
import { policyFor } from '../../governance/dlp/policy/policy-for-call.ts'
import { type CallerRights, checkLimits, type Stale } from '../../governance/governed-call.ts'
import { renewRights } from '../../governance/renew-rights.ts'
import { modelTarget } from '../../governance/target.ts'
import { ApiError, invalidRequest } from '../../lib/api-error.ts'
import { errorText, logEvent } from '../../lib/log.ts'
import { type ListedItems, renderList, type Telling } from '../../responses/items/item-list.ts'
import type { ItemPage } from '../../responses/items/items.store.ts'
import { redactedResponse, withoutSealed } from '../../responses/items/redaction.ts'
import type { Owner } from '../../responses/types.ts'
import type { Includes } from '../../wire/response-queries.ts'
import type { ResponseObject } from '../../wire/responses.ts'
import type { AppContext } from '../context.ts'

// What the routes of responses and of conversations have in common: whose things they read, and how they are told.

/** The caller, as the owner of what it made. */
export function ownerOf(context: AppContext): Owner {
  const { organizationId, userId } = context.var.rights.principal
  return { organizationId, userId }
}

/** The policies in force now for what a model made. @param modelId empty where it is not known. */
export const currentPolicy = (context: AppContext, modelId: string) =>
  policyFor(context.var.deps, context.var.rights.principal, modelTarget(modelId))

/**
 * Brings the caller's rights up to date after a time in which they and the policies may have changed, for the answer to
 * a call that was admitted. Where they cannot be read they stay what they were: what was made meanwhile was made under
 * them.
 */
export async function refreshRights(context: AppContext): Promise<void> {
  const { deps, rights } = context.var
  try {
    const verdict = await checkLimits(deps, { ...rights, catalogueEpoch: null })
    // An answer that was paid for is given, whatever the limits say by now.
    if (verdict === null || verdict instanceof ApiError) return
    context.set('rights', await renewedRights(deps, rights, verdict))
  } catch (error) {
    logEvent('warn', 'rights_not_renewed', { reason: errorText(error) })
  }
}

/** Who may not call any more is told what became of its call, under the policies of now. */
async function renewedRights(deps: Deps, rights: CallerRights, stale: Stale): Promise<CallerRights> {
  try {
    return await renewRights(deps, rights, stale)
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    const epoch = stale.organization ?? rights.principal.epoch
    return { ...rights, principal: { ...rights.principal, epoch } }
  }
}

/** A response as its owner may read it now. */
export async function readable(
  context: AppContext,
  response: ResponseObject,
  { encryptedContent }: Includes,
): Promise<ResponseObject> {
  const read = redactedResponse(await currentPolicy(context, response.model), response)
  return encryptedContent ? read : { ...read, output: read.output.map(withoutSealed) }
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

/** @throws ApiError invalid_request for a page that was to follow an item which is not in its list. */
export function foundPage(page: ItemPage | 'unknown_item'): ItemPage {
  if (page !== 'unknown_item') return page
  throw invalidRequest('after: is not the id of an item of this list', 'invalid_query')
}

/** Answers a page of items. @param policyOf the policies that hold for one of them. */
export async function itemListAnswer(
  context: AppContext,
  page: ListedItems,
  { encryptedContent }: Includes,
  policyOf: Telling['policyOf'],
): Promise<Response> {
  return jsonBytes(context, await renderList(page, { policyOf, encryptedContent }))
}

/** Answers JSON that is text already. */
export const jsonBytes = (context: AppContext, bytes: Uint8Array | ReadableStream<Uint8Array>): Response =>
  context.newResponse(bytes as never, 200, { 'content-type': 'application/json' })
