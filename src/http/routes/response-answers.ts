import type { Deps } from '../../deps.ts'
import type { CallPolicy } from '../../governance/dlp/policy/call-policy.ts'
import { policyFor } from '../../governance/dlp/policy/policy-for-call.ts'
import { type CallerRights, checkLimits, type Stale } from '../../governance/governed-call.ts'
import { renewRights } from '../../governance/renew-rights.ts'
import { modelTarget } from '../../governance/target.ts'
import { ApiError, invalidRequest } from '../../lib/api-error.ts'
import { errorText, logEvent } from '../../lib/log.ts'
import { withIncluded } from '../../responses/items/included-members.ts'
import { type ItemRendering, renderList } from '../../responses/items/item-list.ts'
import { redactedResponse } from '../../responses/items/redaction.ts'
import type { ItemPage } from '../../responses/store/items.store.ts'
import type { Owner, ProviderRefusal } from '../../responses/types.ts'
import type { Includes } from '../../wire/response-queries.ts'
import type { ResponseObject } from '../../wire/responses.ts'
import type { AppContext } from '../context.ts'

// Shared by the routes of responses and of conversations: owner, policies in force, and rendering.

/** The caller as an owner. */
export function ownerOf(context: AppContext): Owner {
  const { organizationId, userId } = context.var.rights.principal
  return { organizationId, userId }
}

/** The current policies for the output of a model. @param modelId empty where it is not known. */
export const currentPolicy = (context: AppContext, modelId: string) =>
  policyFor(context.var.deps, context.var.rights.principal, modelTarget(modelId))

/**
 * Renews the caller's rights after a response was generated, in which time they and the policies may have changed. If they
 * cannot be read, the old ones apply: the response was generated under them.
 */
export async function refreshRights(context: AppContext): Promise<void> {
  const { deps, rights } = context.var
  try {
    const verdict = await checkLimits(deps, { ...rights, catalogueEpoch: null })
    // A response that was charged is returned, whatever the limits are now.
    if (verdict?.kind !== 'stale') return
    context.set('rights', await renewedRights(deps, rights, verdict))
  } catch (error) {
    logEvent('warn', 'rights_not_renewed', { reason: errorText(error) })
  }
}

/** A caller that has lost its access still gets its response, under the current policies. */
async function renewedRights(deps: Deps, rights: CallerRights, stale: Stale): Promise<CallerRights> {
  try {
    return await renewRights(deps, rights, stale)
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    const epoch = stale.organization ?? rights.principal.epoch
    return { ...rights, principal: { ...rights.principal, epoch } }
  }
}

/**
 * A response as its owner may read it under the current policies.
 * @param includes null for a response that has what its own request includes.
 */
export async function redactForOwner(
  context: AppContext,
  response: ResponseObject,
  includes: Includes | null,
): Promise<ResponseObject> {
  const read = redactedResponse(await currentPolicy(context, response.model), response)
  return includes === null
    ? read
    : { ...read, output: read.output.map((item) => withIncluded(item, includes)) }
}

/**
 * The current policies for items of several models, each loaded once.
 * @param models by item id.
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

/** @throws ApiError invalid_request when `after` is not an item of the list. */
export function foundPage(page: ItemPage | 'unknown_item'): ItemPage {
  if (page !== 'unknown_item') return page
  throw invalidRequest('after: is not the id of an item of this list', 'invalid_query')
}

/** Answers with a page of items. @param policyOf the policies for an item. */
export async function itemListAnswer(
  context: AppContext,
  page: ItemPage,
  includes: Includes,
  policyOf: ItemRendering['policyOf'],
): Promise<Response> {
  const { contentStore } = context.var.deps
  return jsonBytes(context, await renderList(page, { contentStore, policyOf, includes }))
}

/** A provider's refusal of a request, with its status and in the envelope of the surface (interface: Errors). */
export function refusalAnswer(
  context: AppContext,
  { status, message, code, retryAfterSeconds }: ProviderRefusal,
): Response {
  if (retryAfterSeconds !== null) context.header('retry-after', String(retryAfterSeconds))
  // As on chat completions, so that no caller takes it for an error about its own API key.
  context.header('x-headgate-error-source', 'provider')
  return context.json({ error: { message, type: refusalType(status), code } }, status as 400)
}

function refusalType(status: number): string {
  if (status === 403) return 'permission_error'
  if (status === 429) return 'rate_limit_error'
  return status >= 500 ? 'server_error' : 'invalid_request_error'
}

/** Answers with serialized JSON. */
export const jsonBytes = (context: AppContext, bytes: Uint8Array | ReadableStream<Uint8Array>): Response =>
  context.newResponse(bytes as never, 200, { 'content-type': 'application/json' })
