import { type CallIdentity, settle } from '../../calls/governed-call.ts'
import { unsentOutcome } from '../../gateway/call-outcome.ts'
import { loadModelCatalogue } from '../../gateway/catalogue/model-catalogue.ts'
import { type AdmittedTurn, admitTurn } from '../../gateway/model-turn.ts'
import { droppedHeaders } from '../../gateway/relay/answer-headers.ts'
import { alwaysDropped } from '../../gateway/translation/requests/member-rules.ts'
import { RESPONSES_MEMBERS } from '../../gateway/translation/requests/responses-members.ts'
import { compatibilityOf } from '../../identity/principal.ts'
import { invalidRequest, notFound } from '../../lib/api-error.ts'
import type { OwnedBytes } from '../../lib/bytes/owned-bytes.ts'
import type { Compatibility } from '../../wire/compatibility.ts'
import type { ResponseSettings } from '../../wire/responses.ts'
import type { CompactionPlan } from '../compaction/compaction-plan.ts'
import { compactedItems, endsWithTrigger, neededCompaction } from '../compaction/context-compaction.ts'
import { summaryRequest } from '../compaction/summary-request.ts'
import { loadStartContext, type PassedFiles } from '../context/connection-context.ts'
import { conversationLocked, releaseWriter } from '../context/conversation-lock.ts'
import { fittingItems } from '../context/load-context.ts'
import { loadRequest, type ResponseRequest } from '../context/load-request.ts'
import { turnRequest, withHosted } from '../context/model-request.ts'
import { newEmitter } from '../emitter/create-emitter.ts'
import { ResponseEngine, type RunningResponse } from '../engine/engine.ts'
import type { ReadyTurn } from '../engine/next-turn.ts'
import type { EventLog } from '../log/event-log.ts'
import { currentPrincipal } from '../model/current-principal.ts'
import type { ApprovedCall } from '../model/offered-tools.ts'
import type { Phase } from '../model/phases.ts'
import type { ResponseContext } from '../model/response-context.ts'
import { ownerOf, type ResponseHead, type StoredRequest } from '../model/response-head.ts'
import type {
  AgentRequest,
  ContextItem,
  Owner,
  RequestContent,
  StartRequest,
  StartTrace,
} from '../model/types.ts'
import type { ResponseDeps } from '../response-deps.ts'
import { beginResponse } from '../store/begin-response.store.ts'
import { fromPostgres } from '../store/postgres-away.ts'
import type { ResponseState } from '../store/response-state.ts'
import { approvedCalls, checkOffered, checkUnused } from '../tools/integrations/approvals.ts'
import { mcpEntries } from '../tools/integrations/mcp-entries.ts'
import { requestedTools, storedForm } from '../tools/integrations/requested-tools.ts'
import { type ToolRules, toolRules } from '../tools/tool-rules.ts'
import type { FinalWriter } from './final-writer.ts'
import type { ResponseAlarm } from './response-alarm.ts'

/** A response without an event so far. The model gets its request when the engine dispatches it or runs. */
export interface AdmittedResponse extends RunningResponse {
  settings: ResponseSettings
  /** The phase in which its engine runs first. */
  phase: Extract<Phase, 'generating' | 'compacting' | 'running_tools'>
  /** Bytes of the context that stay in memory when the first turn is sent. */
  heldBytes: number
}

type ResponseAdmission =
  | ({ kind: 'admitted'; trace: StartTrace; headers: Record<string, string> } & AdmittedResponse)
  | { kind: 'refused'; trace: StartTrace; error: unknown }
  | { kind: 'agent'; trace: StartTrace; agent: AgentRequest }

/** The parts of the object that an admission uses. */
interface AdmittedParts {
  state: ResponseState
  log: EventLog
  alarm: ResponseAlarm
  final: FinalWriter
  /** Where the bytes of the context that is in memory are counted. */
  context: { bytes: number }
}

/** Bytes of a context that is held while the response generates. A larger one is loaded again for a further turn. */
const MOST_HELD_BYTES = 1024 * 1024

/**
 * Admits a request and begins its response: loads the request and its context, has the first turn admitted, stores the
 * input, writes the row, and locks the conversation. All of it precedes the model call, so that no call is charged whose
 * answer could not be returned. A request for a run of an agent begins nothing, and is returned.
 * @param parts of the object. Its state is in memory until the turn is admitted. Unless the response is admitted, the caller
 * has to roll back what it has.
 */
export async function admitResponse(
  deps: ResponseDeps,
  { state, log, alarm, final, context }: AdmittedParts,
  start: StartRequest,
  body: RequestContent,
): Promise<ResponseAdmission> {
  const buffers: OwnedBytes[] = []
  const { createdAt } = state.known
  let previousResponseId: string | null | undefined
  const refused = (error: unknown, trace: StartTrace): ResponseAdmission => {
    for (const bytes of buffers) bytes.release()
    return { kind: 'refused', error, trace: { ...trace, previousResponseId } }
  }
  try {
    const { organizationId } = start.principal
    const isMessage = start.connection !== undefined
    const form = { isMessage, takesAgents: !isMessage }
    const { request, reserved } = await loadRequest(deps, body, organizationId, form)
    buffers.push(reserved)
    if (request.agentText !== undefined) {
      reserved.release()
      const agent = { settings: request.settings, text: request.agentText }
      return { kind: 'agent', trace: { recorded: false }, agent }
    }
    previousResponseId = request.settings.previous_response_id
    const [loaded] = await fromPostgres(
      deps.database,
      Promise.all([loadFirstTurn(deps, start, createdAt, request), loadModelCatalogue(deps)]),
    )
    context.bytes = loaded.contextBytes
    const first = firstRequest(deps, start, loaded)
    buffers.push(first.body)
    const turn = await admitTurn(deps, first.request)
    const trace = { recorded: true, rateLimit: turn.rateLimit, previousResponseId }
    if (turn.kind === 'refused') return refused(turn.error, trace)
    try {
      const compatibility = start.compatibility ?? compatibilityOf(turn.planned.rights.principal)
      // Storing that takes longer than the limit continues after the refusal.
      const stored = final.counted(storeBeginning(deps, { state, alarm }, loaded, turn, compatibility))
      await fromPostgres(deps.database, stored)
      const headers = droppedHeaders(droppedOf(loaded, turn))
      const { plan } = loaded
      return {
        kind: 'admitted',
        trace,
        headers,
        ...(await firstEngine(deps, state, log, loaded, { turn, buffers, plan })),
      }
    } catch (error) {
      await settle(deps, turn.call, unsentOutcome(turn.call, deps.clock(), error))
      return refused(error, trace)
    }
  } catch (error) {
    return refused(error, { recorded: false })
  }
}

/** The identity of the calls of a response, whose records name it. */
const identityOf = ({ identity, responseId }: StartRequest): CallIdentity => ({ ...identity, responseId })

/** The request of the first model call: of the first turn, or of the compaction before it. */
function firstRequest(
  deps: ResponseDeps,
  start: StartRequest,
  { owner, tools, items, isLarge, plan, request }: FirstTurn,
) {
  const { principal, headers, creditLimit: creditsLeft } = start
  const identity = identityOf(start)
  const call = { identity, principal, headers: new Headers(headers), counted: true, creditsLeft }
  if (plan) return summaryRequest(deps, owner, call, request, plan, { index: 0, summary: null })
  return turnRequest(deps, owner, call, request, tools, items, isLarge)
}

/** Members that the model is not sent, by the translation for the route that is tried first. */
function droppedOf({ settings, plan }: FirstTurn, { planned }: AdmittedTurn): string[] {
  // The request of a compaction has settings of its own.
  const dropped = plan ? [] : (planned.firstRequest?.translated?.dropped ?? [])
  return [...new Set([...dropped, ...alwaysDropped(settings, RESPONSES_MEMBERS)])]
}

/** Members are picked one by one: the context has up to 50 MB, and must not be referenced while the response generates. */
async function firstEngine(
  deps: ResponseDeps,
  state: ResponseState,
  log: EventLog,
  { owner, settings, request, tools, items, isLarge, contextBytes, approved, generates }: FirstTurn,
  ready: ReadyTurn,
): Promise<AdmittedResponse> {
  const emitter = await newEmitter(deps, state.known, settings, tools, log, ready.turn.planned.policy)
  const context = isLarge ? null : items
  const run = { owner, state, log, request, tools, emitter, ready, context, approved, generates }
  const engine = new ResponseEngine(deps, run)
  const turn = ready.plan ? 'compacting' : 'generating'
  const phase = approved.length > 0 ? 'running_tools' : turn
  return { settings, engine, emitter, phase, heldBytes: isLarge ? 0 : contextBytes }
}

/** The inputs of the first turn. */
interface FirstTurn {
  owner: Owner
  settings: ResponseSettings
  request: StoredRequest
  tools: ToolRules
  context: ResponseContext
  /** The items of the context that fit the model. */
  items: ContextItem[]
  /** The compaction that precedes the turn; null for none. */
  plan: CompactionPlan | null
  /** Whether the items are too large to be held while the response generates: they are transferred into the request. */
  isLarge: boolean
  contextBytes: number
  /** Until when the object holds the context for the next response of its connection; null if it does not. */
  heldUntil: number | null
  files: PassedFiles | null
  /** The calls that the request approves, which precede the turn. */
  approved: readonly ApprovedCall[]
  generates: boolean
}

async function loadFirstTurn(
  deps: ResponseDeps,
  start: StartRequest,
  createdAt: number,
  loaded: ResponseRequest,
): Promise<FirstTurn> {
  const { settings } = loaded
  const owner = ownerOf(start)
  const { off } = start.principal.tools
  const hosted = deps.hostedTools.filter(({ family }) => !off.includes(family))
  const { generates = true } = loaded
  const { context, historyIds, isWhole, files } = await loadStartContext(
    deps,
    owner,
    loaded,
    start.connection,
    { responseId: start.responseId, createdAt },
  )
  const compacted = compactedItems(deps, owner, context)
  const approved = approvedCalls(deps.configuration.KEY_PEPPERS, owner, { ...context, historyIds })
  await checkUnused(deps.database, owner, approved)
  const requested = await integrationTools(deps, start, settings, approved)
  const integrations = storedForm(requested)
  const tools = toolRules(settings, [...hosted, ...requested])
  checkOffered(approved, tools.hosted)
  const isTriggered = endsWithTrigger(context.input)
  if (approved.length > 0 && (isTriggered || !generates)) throw callsFirst()
  const modelSettings = withHosted(settings, tools.hosted)
  const plan = generates
    ? await neededCompaction(deps, start.principal, modelSettings, { items: compacted }, isTriggered)
    : null
  const items = await fittingItems(deps, start.principal, modelSettings, compacted)
  const bytes = items.reduce((sum, item) => sum + item.bytes.length, 0)
  const request: StoredRequest = {
    settings: isWhole ? { ...settings, conversation: null, previous_response_id: null } : settings,
    identity: identityOf(start),
    credential: start.principal.credential,
    hostedTools: hosted.map(({ definition }) => definition.name).filter(tools.hosted.has, tools.hosted),
    ...(integrations && { integrations }),
    historyIds,
    ...(start.creditLimit !== undefined && { creditLimit: start.creditLimit }),
  }
  const heldUntil = settings.store === false ? (start.connection?.until ?? null) : null
  const isLarge = bytes > MOST_HELD_BYTES
  const first = { owner, settings, request, tools, context, items, plan, isLarge, contextBytes: bytes }
  return { ...first, heldUntil, files, approved, generates }
}

/** Approved calls are made for the model, which continues with their results. */
const callsFirst = () =>
  invalidRequest('The request approves a call, and cannot be for a compaction or without the model.')

/** Tools by the current rights: those of the request may be some seconds old, and its admission comes later. */
async function integrationTools(
  deps: ResponseDeps,
  { principal }: StartRequest,
  settings: ResponseSettings,
  approved: readonly ApprovedCall[],
) {
  const entries = mcpEntries(settings.tools)
  if (entries.length === 0) return []
  const current = await currentPrincipal(deps, principal, principal, null)
  return requestedTools(deps, current, entries, approved)
}

/** Stores the input, writes the row and locks the conversation. @throws ApiError if the conversation is locked or gone. */
async function storeBeginning(
  deps: ResponseDeps,
  { state, alarm }: { state: ResponseState; alarm: ResponseAlarm },
  { owner, settings, request, context, heldUntil, files }: FirstTurn,
  { open, planned: { policy } }: AdmittedTurn,
  compatibility: Compatibility,
): Promise<void> {
  const store = settings.store !== false
  // From here on there is something to roll back. Not before, because each commit costs half as much as a bare call. A response
  // that nothing outside of its object has is stored with its input.
  const isLater = !store && files === null
  state.store(
    {
      model: settings.model,
      compatibility,
      store,
      heldUntil,
      conversationId: context.conversationId,
      previousResponseId: context.previousResponseId,
      policyVersion: policy.version,
      begun: store,
    },
    isLater,
  )
  deps.waitUntil(alarm.setCheck())
  // The ledger has confirmed that these policies are current.
  await state.storeInput(owner, context, policy)
  if (store) await writeRow(deps, state.known, context)
  if (state.known.turn) state.storeRequest(request)
  // Last, since the response before keeps its files until this one deletes them whatever happens.
  const passed = files && (await deps.responseObject(owner.organizationId, files.from).passFiles(owner))
  state.enter('dispatching', {
    ...(passed && { passedWorkspaceId: files.workspaceId }),
    progress: { ...state.known.progress, openCall: { open, after: 0 } },
  })
  // Before the model gets its request.
  state.save()
}

async function writeRow(
  deps: ResponseDeps,
  head: ResponseHead,
  { conversationId, creates, position, forkOf, previousResponseId }: ResponseContext,
): Promise<void> {
  const { responseId: id, owner, keyId, model, compatibility, createdAt, policyVersion } = head
  const conversation = conversationId === null ? null : { id: conversationId, creates, position }
  const made = { id, keyId, model, compatibility, createdAt, policyVersion }
  const row = { ...made, conversation, forkOf, previousResponseId }
  let begun = await beginResponse(deps.database, owner, row)
  if (typeof begun === 'object' && (await releaseWriter(deps, owner, begun.lockedBy, conversationId, head))) {
    begun = await beginResponse(deps.database, owner, row)
  }
  if (begun === 'not_found') throw notFound('Conversation', conversationId ?? '')
  if (begun !== 'begun') throw conversationLocked()
}
