import { addUsage } from '../governance/credits.ts'
import type { CallPolicy } from '../governance/dlp/call-policy.ts'
import { notFound } from '../lib/api-error.ts'
import { errorText, logEvent } from '../lib/log.ts'
import type { ResponseSettings } from '../wire/responses.ts'
import {
  type AdmittedRequest,
  conversationLocked,
  fittingItems,
  readAdmission,
  readRequest,
} from './admission.ts'
import { loadContext } from './context.ts'
import { responseEmitter, saidItemsOf } from './emission.ts'
import type { ResponseEmitter } from './emitter.ts'
import { type EngineOptions, ResponseEngine } from './engine.ts'
import type { EmittedEvent } from './event-writer.ts'
import type { KeptResponse } from './kept-response.ts'
import type { LiveDeps } from './live-deps.ts'
import { ownerOf, type ResponseHead } from './object-state.ts'
import { currentRights } from './rights.ts'
import { beginResponse as beginInPostgres } from './store.ts'
import type { Admission, ContextItem } from './types.ts'

/** A response of which the first two events are told, and whose model has been asked. */
export interface BegunResponse {
  settings: ResponseSettings
  engine: ResponseEngine
  emitter: ResponseEmitter
}

/**
 * Admits a request and begins its response: reads it, loads what it continues, has its first turn allowed and paid for,
 * keeps its input, writes its row and locks its conversation, and tells that it has begun.
 * @param kept of the object, which knows of the response from here on.
 * @throws ApiError for everything for which the request is refused. What was begun is to be taken back then.
 */
export async function beginResponse(
  deps: LiveDeps,
  kept: KeptResponse,
  admission: Admission,
  body: ReadableStream<Uint8Array>,
  emit: (event: EmittedEvent) => void,
): Promise<BegunResponse> {
  const { request, release } = await readRequest(deps, body, admission.principal.organizationId)
  let sent: Promise<void> | null = null
  try {
    const admitted = await readAdmission(deps, admission, ownerOf(admission), request)
    const emitter = responseEmitter(deps, kept.known, admitted, emit)
    const engine = new ResponseEngine(deps, engineOptions(deps, kept, admission, admitted, emitter))
    sent = engine.sent
    await engine.admitted
    return { settings: admitted.settings, engine, emitter }
  } finally {
    // What is sent still takes the place of what was read.
    if (sent) sent.then(release)
    else release()
  }
}

/** What outlives the beginning is made one by one: the context may be 50 MB, and nothing may hold it for long. */
function engineOptions(
  deps: LiveDeps,
  kept: KeptResponse,
  admission: Admission,
  admitted: AdmittedRequest,
  emitter: ResponseEmitter,
): EngineOptions {
  const { settings, items, turnBody } = admitted
  return {
    admission,
    settings,
    items,
    itemsAgain: itemsAgain(deps, kept, admission, settings, idsOf(admitted.context.history)),
    turnBody,
    saidItems: saidItemsOf(deps, ownerOf(admission), emitter, admitted),
    emitter,
    calls: keptCalls(kept, emitter),
    currentRights: rightsOf(deps, admission),
    onAdmitted: whenAdmitted(deps, kept, admitted, emitter),
  }
}

/** Written before anything that follows leaves the object: neither an upstream nor the ledger knows more than it. */
function keptCalls(kept: KeptResponse, emitter: ResponseEmitter): EngineOptions['calls'] {
  return {
    opened: (opened) => keep(() => kept.change({ openCall: { opened, after: emitter.lastSequence } })),
    settled: (used) =>
      keep(() => {
        const usage = kept.head?.usage ?? null
        kept.change({ openCall: null, usage: used ? addUsage(usage, used) : usage })
      }),
  }
}

function keep(change: () => void): void {
  try {
    change()
  } catch (error) {
    logEvent('error', 'call_not_kept', { error: errorText(error) })
  }
}

const rightsOf =
  (deps: LiveDeps, { principal }: Admission) =>
  () =>
    currentRights(deps, principal)

function whenAdmitted(
  deps: LiveDeps,
  kept: KeptResponse,
  admitted: AdmittedRequest,
  emitter: ResponseEmitter,
): EngineOptions['onAdmitted'] {
  return async () => {
    // Before the model is asked: nobody pays for an answer that cannot be given.
    await recordBeginning(deps, kept, admitted)
    emitter.begin()
  }
}

const idsOf = (items: readonly ContextItem[]): ReadonlySet<string> => new Set(items.map(({ id }) => id))

/** A response that is not stored locks nothing: what others add to its conversation meanwhile is not in its context. */
function itemsAgain(
  deps: LiveDeps,
  kept: KeptResponse,
  admission: Admission,
  settings: ResponseSettings,
  known: ReadonlySet<string>,
): EngineOptions['itemsAgain'] {
  return async () => {
    const context = await loadContext(deps, ownerOf(admission), { settings, items: [] })
    const history = context.history.filter(({ id }) => known.has(id))
    const input: ContextItem[] = []
    for await (const item of kept.inputItems()) input.push(item)
    return fittingItems(deps, admission, settings, { history, input })
  }
}

/** The row is written and the conversation is this response's alone, or the request is refused. */
async function recordBeginning(
  deps: LiveDeps,
  kept: KeptResponse,
  { context, settings, policy }: AdmittedRequest,
): Promise<void> {
  await kept.keepInput(kept.known.owner, context, policy)
  const head = begunHead(kept.known, settings, context, policy)
  kept.set(head)
  if (head.store) await writeBeginning(deps, head, context)
  kept.change({ phase: 'running' })
}

const begunHead = (
  head: ResponseHead,
  settings: ResponseSettings,
  { conversationId, previousResponseId }: AdmittedRequest['context'],
  policy: CallPolicy,
): ResponseHead => ({
  ...head,
  model: settings.model,
  store: settings.store !== false,
  conversationId,
  previousResponseId,
  policyVersion: policy.version,
  begun: settings.store !== false,
})

/** A response that has ended but is not written yet is no writer: it is written first. */
async function writeBeginning(
  deps: LiveDeps,
  { responseId, owner, keyId, model, createdAt, policyVersion }: ResponseHead,
  { conversationId, creates, position, forkOf, previousResponseId }: AdmittedRequest['context'],
): Promise<void> {
  const conversation = conversationId === null ? null : { id: conversationId, creates, position }
  const row = {
    id: responseId,
    keyId,
    model,
    createdAt,
    policyVersion,
    conversation,
    forkOf,
    previousResponseId,
  }
  let begun = await beginInPostgres(deps.database, owner, row)
  if (typeof begun === 'object') {
    const state = await deps.responseStream(begun.lockedBy).settle(owner)
    if (state === 'settled') begun = await beginInPostgres(deps.database, owner, row)
  }
  if (begun === 'not_found') throw notFound('Conversation', conversationId ?? '')
  if (begun !== 'begun') throw conversationLocked()
}
