import { policyFor } from '../gateway/call-policies.ts'
import { loadCatalog } from '../gateway/catalog/catalog.ts'
import { upstreamTools } from '../gateway/translation/requests/responses-tools.ts'
import type { CallPolicy } from '../governance/dlp/call-policy.ts'
import { ApiError, invalidRequest } from '../lib/api-error.ts'
import { BodyCollector } from '../lib/body-collector.ts'
import type { ResponseSettings } from '../wire/responses.ts'
import { loadContext, type ResponseContext } from './context.ts'
import { fitContext } from './context-limit.ts'
import { tokenEstimate } from './context-tokens.ts'
import type { LiveDeps } from './live-deps.ts'
import { openReasoning } from './reasoning-seal.ts'
import { type ResponseRequest, readResponseRequest } from './request.ts'
import { releaseConversation } from './store.ts'
import { type ToolRules, toolRules } from './tool-rules.ts'
import { turnBody } from './turn-body.ts'
import type { Admission, ContextItem, Owner } from './types.ts'

/** Interface, Limits. The Worker counts as well; this bounds what the object takes in. */
const MAXIMUM_BODY_BYTES = 52_428_800
const READ_BYTES = 64 * 1024

/** A request with everything that it is answered from. */
export interface AdmittedRequest extends ToolRules {
  settings: ResponseSettings
  /** What of the request is kept or repeated is kept and repeated as it allows. */
  policy: CallPolicy
  context: ResponseContext
  /** What the first turn is told: the context as far as it fits. */
  items: ContextItem[]
  turnBody: (settings: ResponseSettings, items: readonly ContextItem[], moves: boolean) => Uint8Array
}

/**
 * Loads what a request continues. A conversation in which a response has ended but is not written yet is
 * waited for, one in which a response still generates is not (design: Responses).
 * @throws ApiError for everything that is wrong with the request, and `conversation_locked`.
 */
export async function readAdmission(
  deps: LiveDeps,
  admission: Admission,
  owner: Owner,
  request: ResponseRequest,
): Promise<AdmittedRequest> {
  const { settings } = request
  const tools = upstreamTools(settings.tools)
  const policy = await policyFor(deps, admission.principal, settings.model)
  const context = await unlockedContext(deps, owner, request)
  const items = await fittingItems(deps, admission, settings, context)
  // Ids alone: what is loaded must not be held by what outlives it.
  const stored = new Set(context.history.map(({ id }) => id))
  const open = (text: string) => openReasoning(deps.configuration.VAULT_KEYS, owner, text)
  return {
    settings,
    policy,
    context,
    items,
    turnBody: (turnSettings, turnItems, moves) =>
      turnBody(turnSettings, turnItems, {
        moves,
        openReasoning: open,
        stored: turnItems.filter(({ id }) => stored.has(id)).length,
      }),
    ...toolRules(settings, tools),
  }
}

/**
 * Reads the body of a request. What is made of it takes its place in the isolate's budget.
 * @returns `release` gives that place back.
 * @throws ApiError invalid_request, and rate_limited when this isolate holds too many bytes already.
 */
export async function readRequest(
  { configuration }: { configuration: { BUFFER_LIMIT_BYTES: number } },
  body: ReadableStream<Uint8Array>,
  organizationId: string,
): Promise<{ request: ResponseRequest; release: () => void }> {
  const collector = new BodyCollector(MAXIMUM_BODY_BYTES, configuration.BUFFER_LIMIT_BYTES, organizationId)
  try {
    await eachPart(body, (part) => collector.add(part))
    const request = readResponseRequest(collector.finish().bytes)
    collector.freeBytes()
    return { request, release: () => collector.release() }
  } catch (error) {
    collector.release()
    throw error
  }
}

/** All parts are read into one space: left to itself the runtime makes a new one for each, which lies about for long. */
async function eachPart(body: ReadableStream<Uint8Array>, take: (part: Uint8Array) => void): Promise<void> {
  const reader = body.getReader({ mode: 'byob' })
  try {
    for (let space = new Uint8Array(READ_BYTES); ; ) {
      const { done, value } = await reader.read(space).catch(brokenOff)
      if (done) return
      take(value)
      space = new Uint8Array(value.buffer)
    }
  } catch (error) {
    reader.cancel(error).catch(() => {})
    throw error
  }
}

/** Of a body that is too large or no gzip, or whose sender left: what it is, the Worker knows and tells. */
function brokenOff(): never {
  throw invalidRequest('The body broke off.')
}

async function unlockedContext(
  deps: LiveDeps,
  owner: Owner,
  request: ResponseRequest,
): Promise<ResponseContext> {
  const context = await loadContext(deps, owner, request)
  if (context.writer === null) return context
  const state = await deps.responseStream(context.writer).settle(owner)
  if (state === 'running') throw conversationLocked()
  // A beginning that arrived after it was taken back locks for nobody.
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
  deps: LiveDeps,
  { catalogueEpoch }: Pick<Admission, 'catalogueEpoch'>,
  settings: ResponseSettings,
  context: Pick<ResponseContext, 'history' | 'input'>,
): Promise<ContextItem[]> {
  const items = [...context.history, ...context.input]
  const model = (await loadCatalog(deps, catalogueEpoch)).get(settings.model)
  if (!model || settings.truncation !== 'auto') return items
  const limits = { contextWindow: model.contextWindow, maxOutput: model.maxOutputTokens }
  return fitContext(items, settings, limits, tokenEstimate(model.routes[0]?.upstreamModel ?? model.id))
}
