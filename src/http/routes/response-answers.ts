import { type CallerRights, checkLimits, type Stale } from '../../calls/governed-call.ts'
import { policyFor } from '../../calls/policy-for-call.ts'
import { renewRights } from '../../calls/renew-rights.ts'
import { modelTarget } from '../../calls/target.ts'
import type { Deps } from '../../deps.ts'
import type { CallPolicy } from '../../dlp/policy/call-policy.ts'
import { ApiError, invalidRequest } from '../../lib/api-error.ts'
import { errorText, logEvent } from '../../lib/log.ts'
import { withIncluded } from '../../responses/items/included-members.ts'
import { type ItemRendering, renderList } from '../../responses/items/item-list.ts'
import { redactedResponse } from '../../responses/items/redaction.ts'
import type { ItemPage } from '../../responses/model/stored-items.ts'
import type { Owner, ProviderRefusal } from '../../responses/model/types.ts'
import { renderedResponse } from '../../responses/open-responses/rendered-response.ts'
import type { ItemOrigin } from '../../responses/store/read-responses.store.ts'
import { refusalType } from '../../wire/nested-error.ts'
import type { Includes } from '../../wire/response-queries.ts'
import type { ResponseObject } from '../../wire/responses.ts'
import { errorCompatibility, openResponsesError } from '../compatibility.ts'
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

/** Answers with a response, in its form. @param includes as `redactForOwner`. */
export async function responseAnswer(
  context: AppContext,
  response: ResponseObject,
  includes: Includes | null,
): Promise<Response> {
  return context.json(renderedResponse(await redactForOwner(context, response, includes)))
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
  const read = await redactedResponse(await currentPolicy(context, response.model), response)
  return includes === null
    ? read
    : { ...read, output: read.output.map((item) => withIncluded(item, includes)) }
}

/**
 * The current policies for items of several models, each loaded once, and the forms of the items.
 * @param origins by item id.
 */
export function renderingOf(
  context: AppContext,
  origins: ReadonlyMap<string, ItemOrigin>,
): Pick<ItemRendering, 'policyOf' | 'compatibilityOf'> {
  const policies = new Map<string, Promise<CallPolicy>>()
  return {
    policyOf(itemId) {
      const model = origins.get(itemId)?.model ?? ''
      const policy = policies.get(model) ?? currentPolicy(context, model)
      policies.set(model, policy)
      return policy
    },
    compatibilityOf: (itemId) => origins.get(itemId)?.compatibility ?? 'headgate',
  }
}

/** @throws ApiError invalid_request when `after` is not an item of the list. */
export function foundPage(page: ItemPage | 'unknown_item'): ItemPage {
  if (page !== 'unknown_item') return page
  throw invalidRequest('after: is not the id of an item of this list', 'invalid_query')
}

/** Answers with a page of items. */
export async function itemListAnswer(
  context: AppContext,
  page: ItemPage,
  includes: Includes,
  rendering: Pick<ItemRendering, 'policyOf' | 'compatibilityOf'>,
): Promise<Response> {
  const { contentStore } = context.var.deps
  return jsonBytes(context, await renderList(page, { contentStore, includes, ...rendering }))
}

/** A provider's refusal of a request, with its status and in the envelope of the surface (interface: Errors). */
export function refusalAnswer(
  context: AppContext,
  { status, message, code, retryAfterSeconds }: ProviderRefusal,
): Response {
  if (retryAfterSeconds !== null) context.header('retry-after', String(retryAfterSeconds))
  // Same header as on chat completions, so that no caller takes the error for one about its own API key.
  context.header('x-headgate-error-source', 'provider')
  const error =
    errorCompatibility(context) === 'open_responses'
      ? openResponsesError(status, message, code)
      : { message, type: refusalType(status), code }
  return context.json({ error }, status as 400)
}

/** Answers with serialized JSON. */
export const jsonBytes = (context: AppContext, bytes: Uint8Array | ReadableStream<Uint8Array>): Response =>
  context.newResponse(bytes as never, 200, { 'content-type': 'application/json' })
