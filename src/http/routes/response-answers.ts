import { policyFor } from '../../gateway/call-policies.ts'
import type { CallPolicy } from '../../governance/dlp/call-policy.ts'
import { confirmRights, type EpochEvidence, organizationEpochKey } from '../../governance/epochs.ts'
import { invalidRequest } from '../../lib/api-error.ts'
import { errorText, logEvent } from '../../lib/log.ts'
import { type ListedItems, renderList, type Telling } from '../../responses/item-list.ts'
import type { ItemPage } from '../../responses/items/store.ts'
import { redactedResponse, withoutSealed } from '../../responses/redaction.ts'
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

/**
 * Brings the caller's rights up to date after a time in which they and the policies may have changed, for the answer to
 * a call that was admitted. Where nobody can be asked they stay what they were: what was made meanwhile was made under
 * them.
 */
export async function renewRights(context: AppContext): Promise<void> {
  const { deps, principal, presentedKey } = context.var
  try {
    const evidence = await epochEvidence(context)
    const identification = await confirmRights(deps, presentedKey, principal, evidence)
    // Who may not call any more is told what became of its call, under the policies of now.
    const epoch = evidence.epochs.organization ?? principal.epoch
    const current = identification.kind === 'known' ? identification.principal : { ...principal, epoch }
    context.set('principal', current)
  } catch (error) {
    logEvent('warn', 'rights_not_renewed', { reason: errorText(error) })
  }
}

async function epochEvidence({ var: { deps, principal } }: AppContext): Promise<EpochEvidence> {
  try {
    const organization = await deps.redis.get<number>(organizationEpochKey(principal.organizationId))
    return { epochs: { organization, catalogue: null }, degraded: false }
  } catch {
    return { epochs: { organization: null, catalogue: null }, degraded: true }
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
