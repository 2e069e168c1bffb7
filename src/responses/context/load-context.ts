import { type CatalogModel, loadCatalog } from '../../gateway/catalog/catalog.ts'
import { checkLimits } from '../../governance/governed-call.ts'
import type { Principal } from '../../governance/principal.ts'
import { renewRights } from '../../governance/renew-rights.ts'
import { ApiError } from '../../lib/api-error.ts'
import type { ResponseSettings } from '../../wire/responses.ts'
import type { ResponseDeps } from '../object/response-deps.ts'
import type { StoredRequest } from '../object/response-head.ts'
import type { ResponseState } from '../object/response-state.ts'
import { releaseConversation } from '../responses.store.ts'
import type { ContextItem, Owner } from '../types.ts'
import { loadContext, type ResponseContext } from './context.ts'
import { fitContext } from './context-limit.ts'
import { tokenEstimate } from './context-tokens.ts'
import type { ResponseRequest } from './request.ts'

/**
 * Loads what a request continues. A conversation in which a response has ended but is not written yet is written first;
 * one in which a response still generates is not waited for (design: Responses).
 * @throws ApiError as `loadContext`, and `conversation_locked`.
 */
export async function loadUnlockedContext(
  deps: ResponseDeps,
  owner: Owner,
  request: ResponseRequest,
): Promise<ResponseContext> {
  const context = await loadContext(deps, owner, request)
  if (context.writer === null) return context
  const state = await deps.responseStream(context.writer).settle(owner)
  if (state === 'running') throw conversationLocked()
  // A beginning that arrived after it was rolled back locks for nobody.
  if (state === 'absent') {
    await releaseConversation(deps.database, owner, context.conversationId, context.writer)
  }
  const settled = await loadContext(deps, owner, request)
  if (settled.writer !== null) throw conversationLocked()
  return settled
}

/** A conversation has one writer at a time (design: Responses). */
export const conversationLocked = () =>
  new ApiError(
    'invalid_request',
    'Another response is being made in this conversation. Try again when it has ended.',
    { code: 'conversation_locked' },
  )

/** A context as far as the model takes it. */
export async function fittingItems(
  deps: ResponseDeps,
  principal: Principal,
  settings: ResponseSettings,
  context: Pick<ResponseContext, 'history' | 'input'>,
): Promise<ContextItem[]> {
  const items = [...context.history, ...context.input]
  const model = settings.truncation === 'auto' ? await modelNamed(deps, principal, settings.model) : null
  if (!model) return items
  const limits = { contextWindow: model.contextWindow, maxOutput: model.maxOutputTokens }
  return fitContext(items, settings, limits, tokenEstimate(model.routes[0]?.upstreamModel ?? model.id))
}

/** A model may be newer than what this isolate has read of the catalogue: the ledger knows the epoch of now. */
async function modelNamed(
  deps: ResponseDeps,
  principal: Principal,
  id: string,
): Promise<CatalogModel | null> {
  const { models, epoch } = await loadCatalog(deps)
  const known = models.get(id)
  if (known) return known
  const rights = { principal, catalogueEpoch: epoch, learned: null }
  const verdict = await checkLimits(deps, rights)
  if (verdict === null || verdict instanceof ApiError) return null
  const { catalogueEpoch } = await renewRights(deps, rights, verdict)
  return (await loadCatalog(deps, catalogueEpoch ?? undefined)).models.get(id) ?? null
}

/**
 * Loads the context of a response once more, for a further turn. A response that is not stored locks nothing: what others
 * add to its conversation meanwhile is not in its context.
 * @throws what the stores throw that are away.
 */
export async function loadContextAgain(
  deps: ResponseDeps,
  state: ResponseState,
  { settings, historyIds }: StoredRequest,
  principal: Principal,
): Promise<ContextItem[]> {
  const context = await loadContext(deps, state.known.owner, { settings, items: [] })
  const known = new Set(historyIds)
  const history = context.history.filter(({ id }) => known.has(id))
  const input: ContextItem[] = []
  for await (const item of state.inputItems()) input.push(item)
  return fittingItems(deps, principal, settings, { history, input })
}
