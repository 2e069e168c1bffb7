import { and, inArray, sql } from 'drizzle-orm'
import type { Database } from '../../../schema/database.ts'
import { approvalClaims } from '../../../schema/responses.ts'
import { timeParameter } from '../../../schema/sql-values.ts'
import type { Owner } from '../model/types.ts'
import { ownedBy } from './rows.store.ts'

// Requests for approval that were used. One statement decides, so that of any number of responses one makes the call.

/** The one call that an approval is used for. */
interface ApprovalClaim {
  /** Id of the request for approval. */
  requestId: string
  responseId: string
  /** Id of the governed call. */
  callId: string
  /** Milliseconds since the epoch. */
  at: number
}

/** @returns whether the approval is this call's. A repeated call for the same one returns the same. */
export async function claimApproval(
  database: Database,
  { organizationId, userId }: Owner,
  { requestId, responseId, callId, at }: ApprovalClaim,
): Promise<boolean> {
  const { rows } = await database.execute(sql`
    INSERT INTO ${approvalClaims} AS claim (organization_id, user_id, id, response_id, call_id, created_at)
    VALUES (${organizationId}::uuid, ${userId}::uuid, ${requestId}, ${responseId}, ${callId}, ${timeParameter(at)})
    ON CONFLICT (organization_id, user_id, id) DO UPDATE SET call_id = claim.call_id
      WHERE claim.response_id = excluded.response_id AND claim.call_id = excluded.call_id
    RETURNING id`)
  return rows.length === 1
}

/** Selects the used ones among some requests for approval. */
export async function selectClaimed(
  database: Database,
  owner: Owner,
  requestIds: readonly string[],
): Promise<string[]> {
  const rows = await database
    .select({ id: approvalClaims.id })
    .from(approvalClaims)
    .where(and(ownedBy(approvalClaims, owner), inArray(approvalClaims.id, [...requestIds])))
  return rows.map(({ id }) => id)
}
