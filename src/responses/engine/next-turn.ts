import { type CallIdentity, openingOf, type Refused, refusalOutcome } from '../../calls/governed-call.ts'
import { type AdmittedTurn, admitTurn } from '../../gateway/model-turn.ts'
import type { Principal } from '../../identity/principal.ts'
import type { Usage } from '../../ledger/audit-record.ts'
import { ApiError } from '../../lib/api-error.ts'
import type { OwnedBytes } from '../../lib/bytes/owned-bytes.ts'
import { errorText, logEvent } from '../../lib/log.ts'
import type { CompactionPlan } from '../compaction/compaction-plan.ts'
import { neededCompaction } from '../compaction/context-compaction.ts'
import { type SummaryPart, summaryRequest } from '../compaction/summary-request.ts'
import { fromLatestCompaction } from '../context/kept-items.ts'
import { reloadContext } from '../context/load-context.ts'
import { turnRequest, withHosted } from '../context/model-request.ts'
import { sealOpener } from '../items/sealed-content.ts'
import { currentPrincipal } from '../model/current-principal.ts'
import { creditsLeft } from '../model/response-head.ts'
import type { ContextItem, Owner } from '../model/types.ts'
import type { ResponseDeps } from '../response-deps.ts'
import type { EngineRun } from './engine.ts'
import { nextTurnSettings } from './turn-decision.ts'

/** An admitted turn that is not sent yet, and the bytes that are released when it was sent. */
export interface ReadyTurn {
  turn: AdmittedTurn
  buffers: readonly OwnedBytes[]
  /** The compaction that this call begins, in place of the turn; null for a turn. */
  plan: CompactionPlan | null
}

/** The state after the earlier turns. */
interface PastTurns {
  /** The items that each of them added to the context. */
  turns: ReadonlyArray<readonly ContextItem[]>
  /** Usage of the turns (`turnUsage`). */
  usage: Usage | null
  /** The principal that the ledger confirmed for the last turn; null after a restart. */
  principal: Principal | null
}

/**
 * Admits a further turn under the caller's current rights. A refusal is recorded in the ledger.
 * @throws ApiError for a refusal, the error of a store that is not available, and the reason of the signal.
 */
export async function admitNextTurn(
  deps: ResponseDeps,
  run: EngineRun,
  identity: CallIdentity,
  past: PastTurns,
  signal: AbortSignal,
): Promise<ReadyTurn> {
  return orRecorded(deps, run, identity, admit(deps, run, identity, past, signal))
}

/** @throws for a refusal. One that governance did not decide is recorded. */
async function orRecorded(
  deps: ResponseDeps,
  { owner }: EngineRun,
  identity: CallIdentity,
  admitting: Promise<ReadyTurn | Refused>,
): Promise<ReadyTurn> {
  const admission = await admitting.catch(async (error) => {
    await recordRefusal(deps, owner, identity, error)
    throw error
  })
  if ('error' in admission) throw admission.error
  return admission
}

async function admit(
  deps: ResponseDeps,
  { owner, state, request, tools, context }: EngineRun,
  identity: CallIdentity,
  { turns, usage, principal: known }: PastTurns,
  signal: AbortSignal,
): Promise<ReadyTurn | Refused> {
  const principal = await currentPrincipal(deps, owner, request, known)
  const modelSettings = withHosted(request.settings, tools.hosted)
  const before = context ?? (await reloadContext(deps, state, request, modelSettings, principal))
  const items = fromLatestCompaction([...before, ...turns.flat()], sealOpener(deps, owner))
  const lastTurn = turns.at(-1) ?? []
  const settings = nextTurnSettings(request.settings, usage)
  // A context that its compaction left too long cannot be compacted further.
  const plan = lastTurn.some(({ type }) => type === 'compaction')
    ? null
    : await neededCompaction(deps, principal, withHosted(settings, tools.hosted), { items, lastTurn }, false)
  signal.throwIfAborted()
  const call = laterCall(identity, principal, creditsLeft(request, state.known))
  const next = plan
    ? summaryRequest(deps, owner, call, request, plan, { index: 0, summary: null })
    : turnRequest(deps, owner, call, { ...request, settings }, tools, items)
  return admitted(deps, next, plan)
}

/** The first call counts for the limits of requests. Headers are not stored, since they may have secrets: it alone has them. */
const laterCall = (identity: CallIdentity, principal: Principal, left: number | undefined) => ({
  identity,
  principal,
  headers: new Headers(),
  counted: false,
  creditsLeft: left,
})

/** Admits the call of a further part of a compaction, as `admitNextTurn` does. */
export async function admitNextPart(
  deps: ResponseDeps,
  run: EngineRun,
  identity: CallIdentity,
  plan: CompactionPlan,
  part: SummaryPart,
  known: Principal | null,
): Promise<ReadyTurn> {
  const { owner, request, state } = run
  const admitting = async () => {
    const principal = await currentPrincipal(deps, owner, request, known)
    const call = laterCall(identity, principal, creditsLeft(request, state.known))
    return admitted(deps, summaryRequest(deps, owner, call, request, plan, part), plan)
  }
  return orRecorded(deps, run, identity, admitting())
}

async function admitted(
  deps: ResponseDeps,
  { request, body }: ReturnType<typeof turnRequest>,
  plan: CompactionPlan | null,
): Promise<ReadyTurn | Refused> {
  const turn = await admitTurn(deps, request)
  if (turn.kind === 'admitted') return { turn, buffers: [body], plan }
  body.release()
  return turn
}

/** Records a turn that failed before governance decided about it. The HTTP request has a record of its own. */
async function recordRefusal(
  deps: ResponseDeps,
  owner: Owner,
  identity: CallIdentity,
  error: unknown,
): Promise<void> {
  if (!(error instanceof ApiError)) return
  const opening = openingOf(identity, owner, null)
  await deps
    .ledgerOf(opening.organizationId, opening.shard)
    .record(opening, refusalOutcome(opening, deps.clock(), error))
    .catch((failure) => logEvent('error', 'audit_failed', { error: errorText(failure) }))
}
