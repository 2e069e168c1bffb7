import { loadCatalog } from '../gateway/catalog/catalog.ts'
import { ApiError } from '../lib/api-error.ts'
import type { ResponseSettings } from '../wire/responses.ts'
import { loadContext, type ResponseContext } from './context.ts'
import { fitContext } from './context-limit.ts'
import { tokenEstimate } from './context-tokens.ts'
import type { ResponseRequest } from './request.ts'
import type { ResponseDeps } from './response-deps.ts'
import type { StoredRequest } from './response-head.ts'
import type { ResponseState } from './response-state.ts'
import { releaseConversation } from './store.ts'
import type { ContextItem, Owner } from './types.ts'

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
  settings: ResponseSettings,
  context: Pick<ResponseContext, 'history' | 'input'>,
): Promise<ContextItem[]> {
  const items = [...context.history, ...context.input]
  const model = (await loadCatalog(deps)).models.get(settings.model)
  if (!model || settings.truncation !== 'auto') return items
  const limits = { contextWindow: model.contextWindow, maxOutput: model.maxOutputTokens }
  return fitContext(items, settings, limits, tokenEstimate(model.routes[0]?.upstreamModel ?? model.id))
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
): Promise<ContextItem[]> {
  const context = await loadContext(deps, state.known.owner, { settings, items: [] })
  const known = new Set(historyIds)
  const history = context.history.filter(({ id }) => known.has(id))
  const input: ContextItem[] = []
  for await (const item of state.inputItems()) input.push(item)
  return fittingItems(deps, settings, { history, input })
}
