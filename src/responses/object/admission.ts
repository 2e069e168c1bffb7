import { unsentOutcome } from '../../gateway/calls/call-outcome.ts'
import { type AdmittedTurn, admitTurn } from '../../gateway/model-turn.ts'
import { SESSION_HEADERS } from '../../gateway/routes/conversation-key.ts'
import type { CallPolicy } from '../../governance/dlp/policy/call-policy.ts'
import { settle } from '../../governance/governed-call.ts'
import { notFound } from '../../lib/api-error.ts'
import type { OwnedBytes } from '../../lib/bytes/owned-bytes.ts'
import type { ResponseSettings } from '../../wire/responses.ts'
import type { ResponseContext } from '../context/context.ts'
import {
  conversationLocked,
  fittingItems,
  loadContextAgain,
  loadUnlockedContext,
} from '../context/load-context.ts'
import { loadRequest } from '../context/load-request.ts'
import type { ResponseRequest } from '../context/request.ts'
import { newEmitter } from '../emitter/emission.ts'
import type { ResponseEmitter } from '../emitter/emitter.ts'
import { type EngineRun, type ReadyTurn, ResponseEngine } from '../engine/engine.ts'
import { type ToolRules, toolRules } from '../engine/tool-rules.ts'
import { type OwnedTurnRequest, type TurnBasis, turnRequest } from '../engine/turn-request.ts'
import type { EventLog } from '../log/event-log.ts'
import { beginResponse } from '../responses.store.ts'
import type { ContextItem, StartRequest } from '../types.ts'
import type { ResponseDeps } from './response-deps.ts'
import { ownerOf, type ResponseHead, type StoredRequest } from './response-head.ts'
import type { ResponseState } from './response-state.ts'

/** A response of which the first two events are told. Its model is asked when the engine runs. */
export interface AdmittedResponse {
  settings: ResponseSettings
  engine: ResponseEngine
  emitter: ResponseEmitter
}

/** `recorded`: the ledger has the call of the request, or the record of its refusal. */
export type ResponseAdmission =
  | ({ kind: 'admitted' } & AdmittedResponse)
  | { kind: 'refused'; error: unknown; recorded: boolean }

/** Bytes of a context that is held for as long as the response generates; a larger one is loaded again if need be. */
const MOST_HELD_BYTES = 1024 * 1024

/**
 * Admits a request and begins its response: reads it, loads what it continues, has its first turn admitted, stores its
 * input, writes its row and locks its conversation, and tells that it has begun. Nobody pays for an answer that cannot be
 * given: the model is asked after all of it.
 * @param state of the object, which knows of the response from here on. What was begun is to be rolled back on a refusal.
 */
export async function admitResponse(
  deps: ResponseDeps,
  state: ResponseState,
  start: StartRequest,
  body: ReadableStream<Uint8Array>,
  log: () => EventLog,
): Promise<ResponseAdmission> {
  const held: OwnedBytes[] = []
  try {
    const loaded = await loadRequest(deps, body, start.principal.organizationId)
    held.push(loaded.place)
    const request = await readyRequest(deps, start, loaded.request)
    const first = firstTurnRequest(deps, start, request)
    held.push(first.body)
    const turn = await admitTurn(deps, first.request)
    if (turn.kind === 'refused') return refused(held, turn.error, true)
    try {
      await recordBeginning(deps, state, request, turn)
      const run = engineRun(deps, state, request, { turn, held }, log)
      run.emitter.begin()
      const engine = new ResponseEngine(deps, run)
      return { kind: 'admitted', settings: request.settings, engine, emitter: run.emitter }
    } catch (error) {
      await settle(deps, turn.call, unsentOutcome(turn.call, deps.clock(), error))
      return refused(held, error, true)
    }
  } catch (error) {
    return refused(held, error, false)
  }
}

function refused(held: readonly OwnedBytes[], error: unknown, recorded: boolean): ResponseAdmission {
  for (const bytes of held) bytes.release()
  return { kind: 'refused', error, recorded }
}

/** A request with everything that it is answered from. */
interface ReadyRequest extends TurnBasis {
  settings: ResponseSettings
  request: StoredRequest
  tools: ToolRules
  context: ResponseContext
  /** What the first turn is told: the context as far as it fits. */
  items: ContextItem[]
  /** Whether the items are too large to be held while the response generates: they are moved into the body of the turn. */
  moves: boolean
}

async function readyRequest(
  deps: ResponseDeps,
  start: StartRequest,
  loaded: ResponseRequest,
): Promise<ReadyRequest> {
  const { settings } = loaded
  const owner = ownerOf(start)
  const tools = toolRules(settings, deps.hostedTools?.(settings) ?? [])
  const context = await loadUnlockedContext(deps, owner, loaded)
  const items = await fittingItems(deps, start.principal, settings, context)
  const bytes = items.reduce((sum, item) => sum + item.bytes.length, 0)
  const request: StoredRequest = {
    settings,
    identity: start.identity,
    credential: start.principal.credential,
    // What routes a conversation; others may hold what is nobody's to store.
    headers: start.headers.filter(([name]) => SESSION_HEADERS.includes(name)),
    functionCallsComplete: start.functionCallsComplete,
    historyIds: context.history.map(({ id }) => id),
  }
  return { settings, owner, request, tools, context, items, moves: bytes > MOST_HELD_BYTES }
}

function firstTurnRequest(
  deps: ResponseDeps,
  { identity, principal, headers }: StartRequest,
  ready: ReadyRequest,
): OwnedTurnRequest {
  const call = { identity, principal, counted: true }
  const basis = { ...ready, request: { ...ready.request, headers } }
  return turnRequest(deps, basis, call, ready.settings, ready.items, ready.moves)
}

/** The input is stored, the row is written, and the conversation is this response's alone. @throws ApiError otherwise */
async function recordBeginning(
  deps: ResponseDeps,
  state: ResponseState,
  { owner, settings, context }: ReadyRequest,
  { open, planned }: AdmittedTurn,
): Promise<void> {
  // The policies that the ledger knows to be current: what of the request is stored or repeated is redacted under them.
  const { policy } = planned
  await state.storeInput(owner, context, policy)
  const begun = begunMembers(settings, context, policy)
  state.change(begun)
  if (begun.begun) await writeBeginning(deps, state.known, context)
  state.enter('generating', { progress: { ...state.known.progress, openCall: { open, after: 0 } } })
}

const begunMembers = (
  settings: ResponseSettings,
  { conversationId, previousResponseId }: ResponseContext,
  policy: CallPolicy,
) => ({
  model: settings.model,
  store: settings.store !== false,
  conversationId,
  previousResponseId,
  policyVersion: policy.version,
  begun: settings.store !== false,
})

/** A response that has ended but is not written yet is no writer: it is written first. */
async function writeBeginning(
  deps: ResponseDeps,
  { responseId, owner, keyId, model, createdAt, policyVersion }: ResponseHead,
  { conversationId, creates, position, forkOf, previousResponseId }: ResponseContext,
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
  let begun = await beginResponse(deps.database, owner, row)
  if (typeof begun === 'object') {
    const other = await deps.responseStream(begun.lockedBy).settle(owner)
    if (other === 'settled') begun = await beginResponse(deps.database, owner, row)
  }
  if (begun === 'not_found') throw notFound('Conversation', conversationId ?? '')
  if (begun !== 'begun') throw conversationLocked()
}

/** What outlives the admission is picked one by one: the context may be 50 MB, and nothing may hold it for long. */
function engineRun(
  deps: ResponseDeps,
  state: ResponseState,
  { settings, owner, request, tools, context, items, moves }: ReadyRequest,
  ready: ReadyTurn,
  log: () => EventLog,
): EngineRun {
  const emission = { settings, tools, emit: eventSink(log) }
  const { policy } = ready.turn.planned
  return {
    ...laterTurns(deps, state, request, log),
    owner,
    tools,
    emitter: newEmitter(deps, state.known, emission, policy, context.conversationId),
    ready,
    context: moves ? null : items,
  }
}

/** Events go to the log of the object as it is by then: one that failed is replaced. */
export const eventSink = (log: () => EventLog) => (event: Parameters<EventLog['append']>[0]) =>
  log().append(event)

/** What the engine takes for turns after the first. */
export const laterTurns = (
  deps: ResponseDeps,
  state: ResponseState,
  request: StoredRequest,
  log: () => EventLog,
): Pick<EngineRun, 'state' | 'request' | 'loadContext' | 'flushEvents'> => ({
  state,
  request,
  loadContext: (principal) => loadContextAgain(deps, state, request, principal),
  flushEvents: () => log().flush(),
})
