import type { AgentDeps } from '../../agents/agent-deps.ts'
import { NO_ACTOR } from '../../ledger/audit-record.ts'
import { audited, type ChangeScope, conflict, describeChange } from '../../ledger/changes/audited-change.ts'
import type { LedgerOf } from '../../ledger/contract.ts'
import { HOME_SHARD } from '../../ledger/shards/shards.ts'
import { notFound } from '../../lib/api-error.ts'
import { newId } from '../../lib/ids.ts'
import { logEvent } from '../../lib/log.ts'
import type { Page, PageRequest } from '../../wire/page-cursor.ts'
import { type Author, checkErasure } from '../member-rules.ts'
import { changeMember, readMember } from '../members.ts'
import { STEP_NAMES, STEPS, type StepName } from './erasure-steps.ts'
import {
  type ErasureRow,
  insertErasure,
  leaseErasure,
  selectDueErasures,
  selectErasure,
  selectErasures,
  selectOpenErasure,
  updateErasure,
} from './erasures.store.ts'

type ErasureDeps = AgentDeps & { ledgerOf: LedgerOf }

/** An attempt that died is repeated after this time. */
const LEASE_MS = 5 * 60_000
/** Time of one attempt, which ends well before its lease, and within the time that the runtime leaves to work after an answer. */
const ATTEMPT_MS = 20_000
/** Attempts of one erasure in one run of the job. */
const MOST_ATTEMPTS = 6
/** Erasures of one run of the job. */
const MOST_ERASURES = 20

/**
 * Disables a user, whose keys fail from the next call on, and begins to erase its data in the organization. A second request, also one at
 * the same time, finds the erasure of the first.
 * @param author the member that asks; null for the administration token.
 * @throws ApiError `not_found`; `forbidden` for a member that asks for itself; `unprocessable` for the last owner, and for a user that
 *   was enabled at the same time.
 */
export async function beginErasure(
  scope: ChangeScope,
  userId: string,
  author: Author | null,
): Promise<ErasureRow> {
  const open = await selectOpenErasure(scope, userId)
  if (open !== null) return open
  if (author !== null) checkErasure(author, userId)
  await changeMember(scope, userId, { disabled: true }, { leavesOwner: true })
  const id = newId('erasure')
  try {
    await recordBegun(scope, userId, id)
  } catch (error) {
    const other = await selectOpenErasure(scope, userId)
    if (other === null) throw error
    return other
  }
  return readErasure(scope, userId, id)
}

async function recordBegun(scope: ChangeScope, userId: string, id: string): Promise<void> {
  const intent = { action: 'user.erasure_begun', resource: `users/${userId}`, detail: { erasure: id } }
  await audited(scope, intent, async () => {
    const isBegun = await insertErasure(scope, {
      id,
      userId,
      requestedBy: scope.actor.userId ?? 'admin_token',
      step: STEP_NAMES[0] ?? 'done',
      createdAt: new Date(scope.clock()),
    })
    if (!isBegun) throw conflict('The user was enabled, or its erasure was begun, at the same time.')
  })
}

/** @throws ApiError `not_found` for an erasure of another user, too. */
export async function readErasure(scope: ChangeScope, userId: string, id: string): Promise<ErasureRow> {
  const row = await selectErasure(scope, userId, id)
  if (row === null) throw notFound('Erasure', id)
  return row
}

/**
 * The erasures of a user, who is a member no more after one.
 * @throws ApiError `not_found` for a user who neither is a member nor was erased.
 */
export async function listErasures(
  scope: ChangeScope,
  userId: string,
  page: PageRequest,
): Promise<Page<ErasureRow>> {
  const erasures = await selectErasures(scope, userId, page)
  if (erasures.rows.length === 0) await readMember(scope, userId)
  return erasures
}

/** Advances erasures that nothing advances: those of attempts that died, and of steps that failed, which then are behind all others. */
export async function advanceErasures(deps: ErasureDeps): Promise<void> {
  for (const id of await selectDueErasures(deps.database, deps.clock(), MOST_ERASURES)) {
    let isLeft = true
    for (let attempt = 0; isLeft && attempt < MOST_ATTEMPTS; attempt += 1)
      isLeft = await advanceErasure(deps, id)
  }
}

/**
 * Makes the next steps of an erasure, unless something else does. A step that fails is repeated by the next run of the job.
 * @returns whether there is more to do at once.
 */
export async function advanceErasure(deps: ErasureDeps, id: string): Promise<boolean> {
  const { database, clock } = deps
  const leased = await leaseErasure(database, id, clock(), clock() + LEASE_MS)
  if (leased === null) return false
  try {
    return await makeSteps(deps, leased)
  } catch (error) {
    // The text may hold what the person wrote: only the kind of the error is stored and logged.
    const failure = error instanceof Error ? error.name : 'Error'
    logEvent('error', 'erasure_failed', { erasure: id, step: leased.step, error: failure })
    await updateErasure(database, id, { failure, leasedUntil: new Date(clock()) })
    return false
  }
}

/** @param erasure it is moved on with each page, so that a failure is that of its step. */
async function makeSteps(deps: ErasureDeps, erasure: ErasureRow): Promise<boolean> {
  const { database, clock } = deps
  const until = clock() + ATTEMPT_MS
  const { id, organizationId, userId, createdAt } = erasure
  const scope = jobScope(deps, organizationId)
  const job = { deps, scope, owner: { organizationId, userId }, begunAt: createdAt.getTime() }
  while (isStep(erasure.step)) {
    if (clock() >= until) {
      await updateErasure(database, id, { leasedUntil: new Date(clock()) })
      return true
    }
    const erased = await STEPS[erasure.step](job, erasure.reached)
    if (erased.dueAt !== undefined) {
      await updateErasure(database, id, { leasedUntil: new Date(erased.dueAt) })
      return false
    }
    erasure.counts = sumOf(erasure.counts, erased.counts)
    erasure.reached = erased.next
    if (erased.next === null) erasure.step = STEP_NAMES[STEP_NAMES.indexOf(erasure.step) + 1] ?? 'done'
    const { step, reached, counts } = erasure
    await updateErasure(database, id, { step, reached, counts, failure: null })
  }
  // A step of another version of the Worker: that version goes on.
  if (erasure.step !== 'done') throw new UnknownStepError(erasure.step)
  await finish(deps, scope, { id, userId, counts: erasure.counts })
  return false
}

class UnknownStepError extends Error {
  override name = 'UnknownStepError'
}

const isStep = (step: string): step is StepName => STEP_NAMES.includes(step as StepName)

/** Records the end with its counts. An attempt that dies in between records it twice. */
async function finish(
  { database, clock, ledgerOf }: ErasureDeps,
  scope: ChangeScope,
  { id, userId, counts }: { id: string; userId: string; counts: Record<string, number> },
): Promise<void> {
  const intent = { action: 'user.erased', resource: `users/${userId}`, detail: { erasure: id, counts } }
  await ledgerOf(scope.organizationId, HOME_SHARD).recordChange(describeChange(scope, intent))
  await updateErasure(database, id, { finishedAt: new Date(clock()), leasedUntil: null, failure: null })
}

function sumOf(left: Record<string, number>, right: Record<string, number>): Record<string, number> {
  const sums = { ...left }
  for (const [name, count] of Object.entries(right)) sums[name] = (sums[name] ?? 0) + count
  return sums
}

/** The scope of the changes of a job: it acts for nobody who could be refused. */
function jobScope(deps: ErasureDeps, organizationId: string): ChangeScope {
  const { database, clock, ledgerOf, configuration } = deps
  return {
    database,
    organizationId,
    ledgerOf,
    clock,
    pepperRing: configuration.KEY_PEPPERS,
    vaultRing: configuration.VAULT_KEYS,
    egressAllow: configuration.EGRESS_ALLOW,
    requestId: newId('req'),
    actor: NO_ACTOR,
    propagationDelayed: () => {},
  }
}
