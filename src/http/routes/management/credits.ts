import { grantCredits, readCredits } from '../../../admin/credits.ts'
import type { CreditEntryRow } from '../../../ledger/records/read-records.store.ts'
import { listBody } from '../../../wire/page-cursor.ts'
import { pageRequest } from './change-scope.ts'
import type { HandlersOf } from './mount-endpoints.ts'

const present = ({ id, kind, amount, reason, at }: CreditEntryRow) => ({ id, kind, amount, reason, at })

/** Amounts are micro-credits throughout. */
export const creditHandlers: HandlersOf<'credits'> = {
  'credits.show': async ({ scope, query }) => {
    const { balance, entries } = await readCredits(scope, pageRequest(query))
    return { ...balance, ...listBody(entries, present) }
  },
  'credits.grant': async ({ scope, body: { amount, reason, id } }) => {
    const granted = await grantCredits(scope, { amount, reason, id })
    return { id: granted.id, amount, reason, ...granted.balance }
  },
}
