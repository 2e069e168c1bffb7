import { type ChangeScope, conflict, describeChange, withoutKeys } from '../ledger/changes/audited-change.ts'
import { type CreditBalance, type LedgerClient, OTHER_GRANT } from '../ledger/contract.ts'
import {
  type CreditEntryRow,
  selectCreditEntries,
  selectCreditGrant,
} from '../ledger/records/read-records.store.ts'
import { HOME_SHARD } from '../ledger/shards/shards.ts'
import { ApiError } from '../lib/api-error.ts'
import { newId } from '../lib/ids.ts'
import type { Page, PageRequest } from '../wire/page-cursor.ts'

/**
 * Adds micro-credits to a balance; a negative amount removes them. The ledger stores grant and audit record in one step.
 * @param values `id` makes the grant repeatable: a second grant under the same id changes nothing.
 * @throws ApiError `unprocessable` when the id belongs to another amount, or the balance would leave the range of
 * integers; `internal`, with the id in its details, when the ledger did not answer: repeat the grant with that id.
 */
export async function grantCredits(
  scope: ChangeScope,
  values: { amount: number; reason: string; id?: string | undefined },
): Promise<{ id: string; balance: CreditBalance }> {
  const { organizationId } = scope
  const { amount, id = newId('grant') } = values
  const reason = withoutKeys(values.reason)
  const made = await selectCreditGrant(scope, id)
  const otherGrant = () => conflict(`Grant ${id} was made with another amount.`)
  if (made !== null && made.amount !== amount) throw otherGrant()
  const change = describeChange(scope, {
    action: 'credits.granted',
    resource: `credits/${id}`,
    detail: { amount, reason },
  })
  const ledger = scope.ledgerOf(organizationId, HOME_SHARD)
  try {
    return { id, balance: await ledger.grantCredits({ id, amount, reason, change }) }
  } catch (error) {
    // Postgres may not have the first grant yet; its ledger does.
    if (error instanceof Error && error.message === OTHER_GRANT) throw otherGrant()
    if (await leavesRange(ledger, amount)) throw conflict('The balance would be more than can be counted.')
    const message = 'The grant may stand; repeat it with the same id.'
    throw new ApiError('internal', message, { details: { id }, cause: error })
  }
}

/** Whether a grant is impossible, since no balance can hold it. */
async function leavesRange(ledger: LedgerClient, amount: number): Promise<boolean> {
  const { balance } = await ledger.balance().catch(() => ({ balance: 0 }))
  return !Number.isSafeInteger(balance + amount)
}

/** The live balance, and the newest entries that Postgres has. */
export async function readCredits(
  scope: ChangeScope,
  page: PageRequest,
): Promise<{ balance: CreditBalance; entries: Page<CreditEntryRow> }> {
  const [balance, entries] = await Promise.all([
    scope.ledgerOf(scope.organizationId, HOME_SHARD).balance(),
    selectCreditEntries(scope, page),
  ])
  return { balance, entries }
}
