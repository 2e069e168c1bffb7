import { databaseCause } from '../../../lib/database-error.ts'
import { errorText, logEvent } from '../../../lib/log.ts'
import type { ChainLink } from './chain.ts'

/** SQLSTATE classes that speak of the server, not of what it was sent: the same may succeed later. */
const OF_THE_SERVER = /^(08|40|53|57|58|XX)/

/**
 * Writes records in order. When Postgres refuses a batch for what is in it, the batch is halved until the record that
 * it refuses is alone: what comes before it is written, and the log names it.
 *
 * Why it stops there and does not go on behind it: a chain with a hole is one that `verifyLinks` calls broken for good,
 * an account begun again from Postgres would lack the record's cost, and most refusals that seem to be of one record
 * (a column that a migration has yet to add, a right that was taken away) are of every record, so that all would be
 * set aside. The object keeps everything, goes on serving, and writes the rest as soon as the record is accepted.
 * @param write stores some of them. @param written is told of those that Postgres has, part by part.
 * @throws what `write` throws for the first part that could not be written.
 */
export async function writeInOrder(
  links: readonly ChainLink[],
  write: (links: readonly ChainLink[]) => Promise<void>,
  written: (links: readonly ChainLink[]) => void,
): Promise<void> {
  try {
    await write(links)
  } catch (error) {
    const code = databaseCause(error)?.code
    if (code === undefined || OF_THE_SERVER.test(code)) throw error
    const [first] = links
    if (first && links.length === 1) {
      const { sequence, id } = first
      logEvent('error', 'ledger.record_refused', { sequence, id, code, error: errorText(error) })
    }
    if (links.length <= 1) throw error
    const middle = Math.floor(links.length / 2)
    await writeInOrder(links.slice(0, middle), write, written)
    await writeInOrder(links.slice(middle), write, written)
    return
  }
  written(links)
}
