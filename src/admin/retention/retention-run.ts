import { DEPLOYMENT_ORGANIZATION_ID } from '../../ledger/audit-record.ts'
import { writeCheckpoint } from '../../ledger/records/checkpoint.ts'
import type { PruneDeps } from '../../ledger/retention/prune-chain.ts'
import type { Retained } from '../../wire/retention.ts'
import { Attempts } from './attempts.ts'
import { Budget } from './budget.ts'
import type { ConversationDeletionDeps } from './empty-conversations.ts'
import { type Cutoffs, cutoffsOf, defaultRetention, type RetentionVariables } from './retention-periods.ts'
import { type StoredRetention, verifyRetention } from './retention-seal.ts'

export interface RetentionDeps extends Omit<PruneDeps, 'beforePruning'>, ConversationDeletionDeps {
  configuration: PruneDeps['configuration'] &
    RetentionVariables & {
      REJECTED_CALL_RETENTION_DAYS: number
    }
}

/** One run of the job. */
export interface RetentionRun extends RetentionDeps, Pick<PruneDeps, 'beforePruning'> {
  /** When it began, in milliseconds since the epoch. */
  now: number
  defaults: Record<Retained, number>
  attempts: Attempts
  budget: Budget
}

/** @param batches that it may make. @param milliseconds in which it may begin them. */
export function beginRun(deps: RetentionDeps, batches: number, milliseconds: number): RetentionRun {
  let checkpoint: Promise<unknown> | undefined
  // A checkpoint has the heads of all chains before the first of them is shortened.
  const beforePruning = async () => {
    checkpoint ??= writeCheckpoint(deps)
    await checkpoint
  }
  const defaults = defaultRetention(deps.configuration)
  const budget = new Budget(batches, deps.clock, milliseconds)
  return { ...deps, beforePruning, now: deps.clock(), defaults, attempts: new Attempts(), budget }
}

/**
 * The times before which rows of an organization go.
 * @returns why nothing is removed, where its settings are not what was last set.
 */
export function verifiedCutoffs(
  { configuration, defaults, now }: RetentionRun,
  stored: StoredRetention | undefined,
): { cutoffs: Cutoffs } | { fault: string } {
  if (stored === undefined) return { fault: 'there is no such organization' }
  const verified = verifyRetention(configuration.KEY_PEPPERS, stored)
  return 'fault' in verified ? verified : { cutoffs: cutoffsOf(verified.settings, defaults, now) }
}

/** The deployment has a chain of its own, and no settings. */
export const deploymentCutoffs = ({ defaults, now }: RetentionRun): Cutoffs => cutoffsOf(null, defaults, now)

export const isDeployment = (organizationId: string) => organizationId === DEPLOYMENT_ORGANIZATION_ID
