import { type AdmittedTurn, admitTurn } from '../../gateway/model-turn.ts'
import { type CallIdentity, openingOf, type Refused, refusalOutcome } from '../../governance/governed-call.ts'
import type { Principal } from '../../governance/principal.ts'
import type { Usage } from '../../governance/usage.ts'
import { ApiError } from '../../lib/api-error.ts'
import type { OwnedBytes } from '../../lib/bytes/owned-bytes.ts'
import { errorText, logEvent } from '../../lib/log.ts'
import { reloadContext } from '../context/load-context.ts'
import type { ResponseDeps } from '../object/response-deps.ts'
import type { ContextItem, Owner } from '../types.ts'
import { currentPrincipal } from './current-principal.ts'
import type { EngineRun } from './engine.ts'
import { turnRequest } from './model-request.ts'
import { nextTurnSettings } from './turn-decision.ts'

/** An admitted turn that is not sent yet, and the bytes that are released when it was sent. */
export interface ReadyTurn {
  turn: AdmittedTurn
  buffers: readonly OwnedBytes[]
}

/** What the turns before have left. */
export interface PastTurns {
  /** Items that they added to the context. */
  items: readonly ContextItem[]
  usage: Usage | null
  /** As the ledger confirmed it for the last turn; null after a restart. */
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
  const { owner } = run
  const admission = await admit(deps, run, identity, past, signal).catch(async (error) => {
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
  past: PastTurns,
  signal: AbortSignal,
): Promise<ReadyTurn | Refused> {
  const principal = await currentPrincipal(deps, owner, request, past.principal)
  const items = [...(context ?? (await reloadContext(deps, state, request, principal))), ...past.items]
  signal.throwIfAborted()
  const settings = nextTurnSettings(request.settings, past.usage)
  const call = { identity, principal, counted: false }
  const next = turnRequest(deps, owner, call, { ...request, settings }, tools, items)
  const turn = await admitTurn(deps, next.request)
  if (turn.kind === 'admitted') return { turn, buffers: [next.body] }
  next.body.release()
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
