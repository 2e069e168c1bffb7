import type { Page, PageRequest } from '../../wire/page-cursor.ts'
import { type Checkpoint, readChain, readChainHeads } from '../ledger/records/chain.store.ts'
import { type ChainHead, type ChainIdentity, GENESIS } from '../ledger/records/chain.ts'
import {
  type CheckpointDeps,
  type CheckpointVerification,
  verifyCheckpoints,
  writeCheckpoint,
} from '../ledger/records/checkpoint.ts'
import { type BrokenLink, verifyLinks } from '../ledger/records/verify.ts'
import { type Administration, audited, recordView } from './administration.ts'
import { type AuditFilter, type AuditRecordRow, selectAuditRecords } from './records.store.ts'

/**
 * Returns audit records, newest first. The view is recorded itself, before anything is returned.
 * @throws ApiError `internal` when that record cannot be stored.
 */
export async function viewAudit(
  administration: Administration,
  filter: AuditFilter,
  page: PageRequest,
): Promise<Page<AuditRecordRow>> {
  await recordView(administration, {
    action: 'audit.viewed',
    resource: 'audit',
    detail: { filter, limit: page.limit, further_page: page.after !== null },
  })
  return selectAuditRecords(administration, filter, page)
}

/** What verifying one page of a chain found. It shows nothing of the records, so it is not recorded as a view. */
export interface VerifiedRange {
  /** The records after `afterSequence` up to `toSequence` were verified; both are equal when there were none. */
  afterSequence: number
  toSequence: number
  firstBroken: { sequence: number; reason: BrokenLink; detail: string } | null
  hasMore: boolean
}

/**
 * Verifies the records of one chain that follow a sequence, which the caller has verified before (or 0).
 * @param most records to look at.
 */
export async function verifyAudit(
  administration: Administration,
  chain: ChainIdentity,
  afterSequence: number,
  most: number,
): Promise<VerifiedRange> {
  const overlap = afterSequence === 0 ? 0 : 1
  const read = await readChain(administration.database, chain, afterSequence - overlap, most + overlap + 1)
  const [previous] = overlap === 0 ? [] : read.splice(0, 1)
  if (overlap === 1 && previous?.sequence !== afterSequence) {
    const detail = 'the record to go on from is not there'
    const firstBroken = { sequence: afterSequence, reason: 'missing' as const, detail }
    return { afterSequence, toSequence: afterSequence, firstBroken, hasMore: false }
  }
  const page = read.slice(0, most)
  const verification = verifyLinks(page, previous ?? GENESIS)
  if (!verification.intact) {
    const { sequence, reason, detail } = verification
    return {
      afterSequence,
      toSequence: sequence - 1,
      firstBroken: { sequence, reason, detail },
      hasMore: false,
    }
  }
  return {
    afterSequence,
    toSequence: verification.head.sequence,
    firstBroken: null,
    hasMore: read.length > page.length,
  }
}

/** Chains that Postgres has records of. @param organizationId whose, or null for all of the deployment. */
export async function listChains(
  administration: Administration,
  organizationId: string | null,
): Promise<Array<ChainIdentity & ChainHead>> {
  const heads = await readChainHeads(administration.database)
  return heads.filter((head) => organizationId === null || head.organizationId === organizationId)
}

/** Stores the heads of all chains under a MAC, which is audited as a change to the deployment. */
export function createCheckpoint(administration: Administration): Promise<Checkpoint> {
  return audited(
    administration,
    { action: 'audit_checkpoint.created', resource: 'audit/checkpoints', detail: {} },
    () => writeCheckpoint(checkpointDeps(administration)),
  )
}

/** Verifies the newest checkpoints against the chains. */
export function verifyNewestCheckpoints(administration: Administration): Promise<CheckpointVerification> {
  return verifyCheckpoints(checkpointDeps(administration))
}

const checkpointDeps = ({ database, clock, pepperRing }: Administration): CheckpointDeps => ({
  database,
  clock,
  configuration: { KEY_PEPPERS: pepperRing },
})
