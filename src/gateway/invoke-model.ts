/**
 * The one door to a model: outline -> catalogue and access -> inspection of the request -> reservation -> dispatch ->
 * inspection and metering of the answer -> settlement. No other module reaches a provider.
 */
import type { InspectionCounts } from '../governance/audit-record.ts'
import type { Usage } from '../governance/credits.ts'
import { dlpBlocked } from '../governance/dlp/actions.ts'
import type { CallPolicy } from '../governance/dlp/call-policy.ts'
import type { Inspection } from '../governance/dlp/inspection.ts'
import type { LedgerOf } from '../governance/ledger/ledger.ts'
import { mayUse } from '../governance/model-access.ts'
import type { Principal } from '../governance/principal.ts'
import { ApiError } from '../lib/api-error.ts'
import { applyEdits } from '../lib/byte-edits.ts'
import { counted } from '../lib/counted.ts'
import { redact } from '../lib/log.ts'
import { Affinity, type AffinityDeps } from './affinity.ts'
import { dispatch, longestDispatch } from './attempts.ts'
import { policyFor } from './call-policies.ts'
import { type CallRecord, openingOf } from './call-record.ts'
import type { AnswerDeps, DispatchedCall } from './candidate-call.ts'
import { type Candidate, someCandidate } from './candidates.ts'
import { type CatalogDeps, type CatalogModel, loadCatalog } from './catalog/catalog.ts'
import { answerTokenCount } from './count-tokens.ts'
import { boundsOf, type CallBounds } from './metering.ts'
import type { OpenedCall } from './opened-call.ts'
import { OPERATIONS, type Operation } from './operations.ts'
import { outsideOf, requestEdits } from './protocols/request-edits.ts'
import { inspectRequest, type RequestInspection } from './protocols/request-inspection.ts'
import type { RequestOutline } from './protocols/request-outline.ts'
import { Settlement } from './settlement.ts'
import { defaultCompletionTokens } from './translation/requests/completions-to-chat.ts'

export type ModelDeps = CatalogDeps & AnswerDeps & AffinityDeps & { ledgerOf: LedgerOf }

export interface ModelCall {
  operation: Operation
  body: Uint8Array
  /** The caller's headers. */
  headers: Headers
  /** Fires when the caller leaves. */
  signal: AbortSignal
  principal: Principal
  /** As confirmed with the rate limits. */
  catalogueEpoch: number
  record: CallRecord
  /**
   * Awaited when the call is allowed and paid for, and some candidate can be told it, before it is sent to anybody. What
   * it throws ends the call, which then costs nothing.
   */
  onAdmitted?: () => void | Promise<void>
  /** Called when the ledger has opened the call, before anything else is done; it must not throw. */
  onOpened?: (opened: OpenedCall) => void
  /** Called once for a call that the ledger opened, with what it is charged for; it must not throw. */
  onSettled?: (usage: Usage | null) => void
}

/** An answer for the caller: the upstream's own, with the permitted edits. */
export interface ModelAnswer {
  status: number
  headers: Headers
  body: Uint8Array | ReadableStream<Uint8Array>
  /** Of a translated call: who gave the signatures of its thinking (`signatureOrigin`). */
  origin?: string
}

/**
 * Makes one governed model call.
 * @throws ApiError for everything that ends before an answer: an invalid body, a model that is unknown or not allowed,
 * no credits, an upstream without an answer. After the first byte failures are told in the stream.
 */
export async function invokeModel(deps: ModelDeps, call: ModelCall): Promise<ModelAnswer> {
  const { protocol } = OPERATIONS[call.operation]
  const outline = protocol.outline(call.body)
  // Until the catalogue knows it, this is any text of the caller, a key pasted into the wrong place as well.
  call.record.modelId = redact(outline.model)
  const model = await admittedModel(deps, call, outline.model)
  const candidates = someCandidate(model, call.operation)
  const policy = await policyFor(deps, call.principal, model.id)
  const inspection = policy.requestInspection()
  const { edits: textEdits, changedThinking } = inspected(call, policy, () => {
    const inspected = inspectRequest(outline, protocol, inspection)
    for (const direction of inspected.uninspectable) {
      if (policy.blocksUninspectable(direction)) throw dlpBlocked('content that cannot be inspected')
    }
    return inspected
  })
  const bounds = boundsOf(
    { ...outline, maximumOutput: maximumOutput(outline, call, candidates, model) },
    model,
  )
  const settlement = new Settlement(deps, {
    record: call.record,
    organizationId: call.principal.organizationId,
    model,
    bounds,
    requestBytes: outline.body.length,
    policy: () => ({ policyVersion: policy.version, findings: policy.findings() }),
    onSettled: call.onSettled,
  })
  const affinity = affinityOf(deps, call, { outline, candidates, modelId: model.id })
  await open(deps, call, { outline, bounds, candidates, settlement })
  const requestFor = ({ upstreamModel, translation }: Candidate) => {
    // A translation names what it sends; only texts are edited before it.
    const edits = translation
      ? []
      : requestEdits(outline, protocol, { upstreamModel, capabilities: model.capabilities, changedThinking })
    const edited = applyEdits(outline.body, [...edits, ...outsideOf(edits, textEdits)])
    // One body leaves, however many attempts it takes: the sink counts what the last attempt sends.
    settlement.request = countsOf(inspection, edited)
    return edited
  }
  const dispatched: DispatchedCall = { ...call, protocol, outline, model, settlement, requestFor, policy }
  try {
    if (candidates.length === 0) return await answerTokenCount(deps, dispatched)
    return await dispatch(deps, dispatched, candidates, affinity)
  } catch (error) {
    // What could not be said in an upstream's protocol never left.
    if (settlement.attempts.length === 0) settlement.request = null
    settlement.fail(error)
    throw error
  }
}

/** A legacy completion in translation asks for a maximum of its own; elsewhere an upstream may generate all it can. */
function maximumOutput(
  outline: RequestOutline,
  call: ModelCall,
  candidates: readonly Candidate[],
  model: CatalogModel,
): number | null {
  const { translationLimitsOutput } = OPERATIONS[call.operation]
  const limited = translationLimitsOutput && candidates.every(({ translation }) => translation)
  return outline.maximumOutput ?? (limited ? defaultCompletionTokens(model.capabilities) : null)
}

/** A call that is blocked has no place in the ledger yet: its record says what was found. */
function inspected(call: ModelCall, policy: CallPolicy, inspect: () => RequestInspection): RequestInspection {
  try {
    return inspect()
  } catch (error) {
    call.record.dlp = { policyVersion: policy.version, findings: policy.findings() }
    throw error
  }
}

function countsOf(inspection: Inspection, edited: { released: number; withheld: number }): InspectionCounts {
  return { ...inspection.counts, released: edited.released, withheld: edited.withheld }
}

async function admittedModel(deps: ModelDeps, call: ModelCall, modelId: string): Promise<CatalogModel> {
  const model = (await loadCatalog(deps, call.catalogueEpoch)).get(modelId)
  if (!model) {
    const message = `The model ${printable(modelId)} does not exist. GET /v1/models lists the models you may use.`
    throw new ApiError(OPERATIONS[call.operation].unknownModel, message, {
      code: 'model_not_found',
    })
  }
  call.record.modelId = model.id
  if (!mayUse(call.principal, modelId)) {
    const message = `Your organization has not granted you access to the model ${modelId}.`
    throw new ApiError('forbidden', message, { code: 'model_access_denied' })
  }
  return model
}

/** Asked while the ledger opens the call. Counting tokens uses no prompt cache. */
function affinityOf(
  deps: ModelDeps,
  call: ModelCall,
  { outline, candidates, modelId }: Pick<Opening, 'outline' | 'candidates'> & { modelId: string },
): Affinity | null {
  if (!OPERATIONS[call.operation].generates) return null
  const { organizationId } = call.principal
  return Affinity.begin(deps, candidates, { organizationId, modelId, headers: call.headers, outline })
}

/** Model ids come from callers: told back short, without control characters and without what looks like a key. */
const printable = (text: string) => redact(text.slice(0, 100).replace(/\p{Cc}/gu, ''))

interface Opening {
  outline: RequestOutline
  bounds: CallBounds
  candidates: readonly Candidate[]
  settlement: Settlement
}

/**
 * Opens the call in the ledger. A call that is never closed is settled there for its input, which is all that is known.
 * @throws ApiError rate_limited when the credits do not cover what the call can cost.
 */
async function open(deps: ModelDeps, call: ModelCall, opening: Opening): Promise<void> {
  const { outline, bounds, candidates, settlement } = opening
  const { generates, outputLimit } = OPERATIONS[call.operation]
  const { usage, cost } = settlement.inputUse()
  // Waited for from here on: whatever happens to the request, what was opened is closed.
  deps.waitUntil(settlement.done)
  const result = await deps
    .ledgerOf(call.principal.organizationId)
    .open({
      opening: openingOf(call.record, call.principal.organizationId),
      reserve: generates ? bounds.reserve : 0,
      estimate: usage && generates ? { provider: candidates[0]?.provider.name ?? '', usage, cost } : null,
      leaseMilliseconds: leaseFor(deps, outline, candidates),
    })
    .catch((error: unknown) => {
      settlement.abandon()
      throw error
    })
  if (result.admitted) {
    call.record.opened = true
    call.onOpened?.(settlement.opened(candidates[0]?.provider.name ?? null))
    return
  }
  settlement.abandon()
  throw new ApiError(
    'rate_limited',
    `Not enough credits: this call can cost up to ${counted(result.required, 'micro-credit')}, and ${counted(Math.max(0, result.available), 'micro-credit')} can be spent. ` +
      `Lower ${outputLimit} or add credits.`,
    { retryAfterSeconds: NO_CREDITS_RETRY_SECONDS, shouldRetry: false },
  )
}

/** Every candidate may use its whole time before the first event. */
function leaseFor(deps: ModelDeps, outline: RequestOutline, candidates: readonly Candidate[]): number {
  const { configuration } = deps
  return longestDispatch(configuration, outline.stream, candidates.length) + configuration.LEDGER_LEASE_MS
}

/** Credits come back when a running call settles or somebody adds some: not within a client's own retries. */
const NO_CREDITS_RETRY_SECONDS = 60
