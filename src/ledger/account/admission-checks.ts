import type { CallColumns } from '../commits/commit.ts'
import type { AdmissionRefusal, CallLimits } from '../contract.ts'
import type { KnownEpochs } from '../epochs/known-epochs.ts'
import type { SlidingWindows } from './sliding-windows.ts'

/** Whether rights or catalogue of a call were read at another epoch than the current one, or the current one is unknown. */
export function findStale(
  calls: CallColumns,
  index: number,
  epochs: KnownEpochs,
  now: number,
): Extract<AdmissionRefusal, { kind: 'stale' }> | null {
  const rights = calls.organizationEpochs[index] as number
  const used = calls.catalogueEpochs[index] as number
  if (rights === 0 && used === 0) return null
  // A call that was read at a newer epoch shows that this ledger's is old: then the isolate reads Postgres.
  const organization = atLeast(rights, epochs.organization(now))
  const catalogue = atLeast(used, epochs.catalogue(now))
  // Epochs that were read for this very call are current, also while this ledger receives no announcements.
  const isFresh = catalogue === null && calls.catalogueIsFresh[index] === true
  const catalogueFits = used === 0 || catalogue === used || isFresh
  return (rights === 0 || organization === rights) && catalogueFits
    ? null
    : { kind: 'stale', organization, catalogue }
}

const atLeast = (read: number, known: number | null): number | null =>
  known !== null && known >= read ? known : null

/** The limit that leaves no room for a call; null when there is room, or the call is not counted. */
export function findLimited(
  calls: CallColumns,
  index: number,
  windows: SlidingWindows,
  now: number,
): Extract<AdmissionRefusal, { kind: 'limited' }> | null {
  const limits = limitsOf(calls, index)
  return limits && windows.findFull(limits, now)
}

/** The limits of a call; null when it is not counted. */
export function limitsOf(calls: CallColumns, index: number): CallLimits | null {
  const userId = calls.userIds[index] as string
  if (userId === '') return null
  const organizationPerMinute = calls.organizationLimits[index] as number
  const userPerMinute = calls.userLimits[index] as number
  const shards = calls.shards[index] as number
  return { userId, organizationPerMinute, userPerMinute, shards }
}
