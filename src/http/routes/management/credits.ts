import { grantCredits, readCredits } from '../../../admin/credits.ts'
import type { CreditEntryRow } from '../../../ledger/records/read-records.store.ts'
import { listBody } from '../../../wire/page-cursor.ts'
import { pageRequest } from './administration.ts'
import type { HandlersOf } from './mount-endpoints.ts'

const present = ({ id, kind, amount, reason, at }: CreditEntryRow) => ({ id, kind, amount, reason, at })

/** Amounts are micro-credits throughout. */
export const creditHandlers: HandlersOf<'credits'> = {
  'credits.show': async ({ administration, query }) => {
    const { balance, entries } = await readCredits(administration, pageRequest(query))
    return { ...balance, ...listBody(entries, present) }
  },
  'credits.grant': async ({ administration, body: { amount, reason, id } }) => {
    const granted = await grantCredits(administration, { amount, reason, id })
    return { id: granted.id, amount, reason, ...granted.balance }
  },
}
