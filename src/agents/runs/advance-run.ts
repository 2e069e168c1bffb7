import { MAX_CREDITS } from '../../calls/governed-call.ts'
import { ApiError } from '../../lib/api-error.ts'
import { newId } from '../../lib/ids.ts'
import { errorText, logEvent } from '../../lib/log.ts'
import { apiErrorOf } from '../../responses/model/error-data.ts'
import type { StartResult } from '../../responses/model/types.ts'
import { storedResponseId } from '../../responses/pool/start-response.ts'
import type { AgentDeps } from '../agent-deps.ts'
import {
  type FoundRun,
  finishCancelled,
  leaseRun,
  leaseToken,
  type RunRevision,
  releaseRun,
  selectRunState,
  storeChange,
} from './progress.store.ts'
import { announceRun, publishRun } from './publish-run.ts'
import { announceVerdict } from './publish-verdict.ts'
import { currentAttempt, currentStep, type LeasedRun, type RunState, spentCredits } from './run.ts'
import { type EndedStep, stepOutcome } from './step-output.ts'
import { findAttemptResponse, startStepResponse, stopResponse, waitForResponse } from './step-response.ts'
import { changeAfter, type StepOutcome } from './transitions.ts'

/** A lease is longer than the work under it: what must still be stored then gets this time. */
const LEASE_MARGIN_MS = 30_000
/** After the end of a lease, so that a watchdog finds it free. */
const WATCHDOG_MARGIN_MS = 5_000
/** Time between two checks of a response that a delivery may still begin after its lease. */
const STOP_RETRY_MS = 2_000
const SHORTEST_WAIT_MS = 2_000
const LONGEST_WAIT_MS = 300_000

/** QStash's data about a delivery, which is not signed. */
interface RunDelivery {
  /** The id that all deliveries of a message share; null if it is not known. */
  messageId: string | null
  /** Whether QStash got no answer to an earlier delivery of the message: that one is over. */
  isRepeated: boolean
}

/**
 * Advances a run by one delivery: begins the response of its current step or finds it, waits for its end for at most
 * RUN_DELIVERY_MS, and stores what follows. A message of an earlier revision does nothing. A message of a run that
 * another delivery holds is repeated after that lease. So messages may be repeated, late and out of order. A repeated
 * delivery takes over the lease of an earlier one of its message, which has probably died with its process.
 * @throws what a service that is away throws: the delivery has to be repeated.
 */
export async function advanceRun(
  deps: AgentDeps,
  revision: RunRevision,
  { messageId, isRepeated }: RunDelivery,
): Promise<void> {
  const now = deps.clock()
  const token = leaseToken(messageId)
  const leasedUntil = now + deps.configuration.RUN_DELIVERY_MS + LEASE_MARGIN_MS
  try {
    const takesOver = isRepeated ? messageId : null
    const leasing = await leaseRun(deps.database, revision, { now, leasedUntil, token, takesOver })
    if (leasing.kind === 'refused') return await withoutLease(deps, revision, leasing.run)
    const { run } = leasing
    await publishWatchdog(deps, revision, leasedUntil - now + WATCHDOG_MARGIN_MS, token)
    const outcome = await workOnStep(deps, run, now + deps.configuration.RUN_DELIVERY_MS)
    await storeOutcome(deps, run, outcome)
  } catch (error) {
    // The lease is released after a failure too: the statement may have been executed.
    await releaseRun(deps.database, revision, token).catch((failure) =>
      logEvent('warn', 'run_not_released', { run_id: revision.runId, error: errorText(failure) }),
    )
    throw error
  }
}

/** The message that advances the run if this delivery dies. Without it, the sweep does so later. */
async function publishWatchdog(
  deps: AgentDeps,
  revision: RunRevision,
  delay: number,
  token: string,
): Promise<void> {
  await publishRun(deps, revision, { delay, again: token }).catch((error) =>
    logEvent('warn', 'watchdog_not_published', { run_id: revision.runId, error: errorText(error) }),
  )
}

async function storeOutcome(deps: AgentDeps, run: LeasedRun, outcome: StepOutcome): Promise<void> {
  const now = deps.clock()
  const change = changeAfter(run, outcome, now)
  const isJudged = change.ended?.status === 'completed' && currentStep(run).objective !== null
  const next = await storeChange(deps.database, run, change, {
    now,
    responseId: change.next ? storedResponseId(deps) : undefined,
    judgeResponseId: isJudged ? storedResponseId(deps) : undefined,
  })
  if (!next) return leaveRun(deps, run)
  const { organizationId, runId } = next
  await Promise.all([
    change.dueAt !== null && announceRun(deps, next, change.dueAt - now),
    isJudged && announceVerdict(deps, { organizationId, runId, number: run.step }),
  ])
}

/**
 * Leaves a run that was cancelled, or advanced by another delivery. The work that ends a cancelled run waits for this
 * lease.
 */
async function leaveRun(
  deps: AgentDeps,
  { id: runId, organizationId, rev, leaseToken }: LeasedRun,
): Promise<void> {
  await releaseRun(deps.database, { organizationId, runId, rev }, leaseToken)
  // If this lease had run out before the response began, no other delivery has found and charged that response.
  const run = await selectRunState(deps.database, { organizationId, runId })
  if (run?.status === 'cancelled') await finishEndedRun(deps, { organizationId, runId, rev: run.rev }, run)
}

/** @param until when this delivery ends, in milliseconds since the epoch. */
async function workOnStep(deps: AgentDeps, run: LeasedRun, until: number): Promise<StepOutcome> {
  const found = await findAttemptResponse(deps, run)
  if (found !== null && found !== 'running') return endedOutcome(deps, run, found)
  const late = await timeOut(deps, run)
  if (late) return late
  if (found === null) {
    const refused = await begin(deps, run)
    if (refused) return refused
  }
  const { deadlineAt } = currentAttempt(run)
  const limit = Math.min(until, deadlineAt.getTime(), run.deadlineAt.getTime()) - deps.clock()
  const mayHaveEnded = await waitForResponse(deps, run, limit)
  const ended = await findAttemptResponse(deps, run)
  if (ended !== null && ended !== 'running') return endedOutcome(deps, run, ended)
  // At once only after a whole wait: messages that find the same without one would follow each other without a pause.
  const delay = ended === null || mayHaveEnded ? SHORTEST_WAIT_MS : 0
  return (await timeOut(deps, run)) ?? { kind: 'pending', delay }
}

const endedOutcome = (deps: AgentDeps, run: RunState, ended: EndedStep): StepOutcome =>
  stepOutcome(currentStep(run), ended, deps.hostedTools)

/** The outcome of a step or run whose time is over: its response is ended first. Null while there is time. */
async function timeOut(deps: AgentDeps, run: LeasedRun): Promise<StepOutcome | null> {
  const now = deps.clock()
  const runIsOver = now >= run.deadlineAt.getTime()
  if (!runIsOver && now < currentAttempt(run).deadlineAt.getTime()) return null
  const stopped = await stopResponse(deps, run)
  const { cost, hadEffects } = stopped ? chargesOf(deps, run, stopped) : { cost: 0, hadEffects: false }
  if (runIsOver) return { kind: 'run_timed_out', cost, hadEffects }
  return { kind: 'failed', error: STEP_TIMEOUT, cost, hadEffects, mayRepeat: false }
}

const STEP_TIMEOUT = { code: 'step_timeout', message: 'The step took longer than its definition allows.' }
const NO_CREDITS = { code: MAX_CREDITS, message: 'The credit limit of the run is reached.' }

function chargesOf(deps: AgentDeps, run: RunState, ended: EndedStep): { cost: number; hadEffects: boolean } {
  const outcome = endedOutcome(deps, run, ended)
  return { cost: ended.cost, hadEffects: outcome.kind !== 'pending' && outcome.hadEffects }
}

/** Begins the response of the current attempt. @returns the outcome if it cannot be begun now, or at all. */
async function begin(deps: AgentDeps, run: LeasedRun): Promise<StepOutcome | null> {
  const { max_credits: most } = run.definition.limits
  if (most !== undefined && spentCredits(run) >= most) return refusal(NO_CREDITS)
  try {
    return refusedOutcome(run, await startStepResponse(deps, run), deps.clock())
  } catch (error) {
    if (error instanceof ApiError && (error.kind === 'unauthorized' || error.kind === 'invalid_request')) {
      return refusal({ code: error.code ?? error.kind, message: error.message })
    }
    throw error
  }
}

const refusal = (error: { code: string; message: string }): StepOutcome => ({
  kind: 'failed',
  error,
  cost: 0,
  hadEffects: false,
  mayRepeat: false,
})

/** The outcome of a start that was refused; null for one that was not. */
function refusedOutcome(run: LeasedRun, result: StartResult, now: number): StepOutcome | null {
  if (result.error === null) {
    if (!('refusal' in result)) return null
    const { code, message } = result.refusal
    return { ...refusal({ code, message }), mayRepeat: true } as StepOutcome
  }
  const error = apiErrorOf(result.error)
  if (isTransient(error)) return { kind: 'pending', delay: waitOf(run, error, now) }
  const code = error.code ?? (error.limit === 'credits' ? 'insufficient_credits' : error.kind)
  return refusal({ code, message: error.message })
}

/** Refusals that pass: limits of calls, a conversation in use, a service that is away, and a start that is still admitted. */
export const isTransient = ({ kind, code, limit }: ApiError): boolean =>
  code === 'conversation_locked' || kind === 'internal' || (kind === 'rate_limited' && limit !== 'credits')

/** The wait grows with the age of the attempt: a service that is away for long gets few requests. */
function waitOf(run: LeasedRun, { retryAfterSeconds = 0 }: ApiError, now: number): number {
  const age = now - currentAttempt(run).createdAt.getTime()
  return Math.min(LONGEST_WAIT_MS, Math.max(SHORTEST_WAIT_MS, retryAfterSeconds * 1_000, age / 4))
}

/** Handles a message that cannot lease its run. */
async function withoutLease(deps: AgentDeps, revision: RunRevision, run: FoundRun | null): Promise<void> {
  if (!run || run.rev < revision.rev) return
  if (run.rev > revision.rev) {
    // The delivery that stored the later revision may have died, or not known that it did.
    if (run.unpublishedDueAt === null) return
    return announceRun(deps, { ...revision, rev: run.rev }, run.unpublishedDueAt - deps.clock())
  }
  if (run.status === 'cancelled') return finishEndedRun(deps, revision, run)
  if (run.status !== 'in_progress') return
  // The delivery that holds it may be dead, and its watchdog may not have been published. The message is repeated once
  // for each lease.
  const { leasedUntil } = run
  const left = leasedUntil === null ? 0 : Math.max(0, leasedUntil - deps.clock())
  await publishRun(deps, revision, { delay: left + WATCHDOG_MARGIN_MS, again: `held-${leasedUntil}` })
}

/** Ends the response of a cancelled run. */
async function finishEndedRun(deps: AgentDeps, revision: RunRevision, run: FoundRun): Promise<void> {
  const stopped = await stopResponse(deps, run)
  const now = deps.clock()
  // A delivery that held the run may be about to begin the response.
  if (!stopped && run.leasedUntil !== null && run.leasedUntil > now) {
    return publishRun(deps, revision, { delay: STOP_RETRY_MS, again: newId('stop') })
  }
  const charges = stopped ? chargesOf(deps, run, stopped) : { cost: 0, hadEffects: false }
  await finishCancelled(deps.database, revision, run, charges)
}
