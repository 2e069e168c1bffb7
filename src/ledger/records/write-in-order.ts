import { databaseCause } from '../../lib/database-error.ts'
import { errorText, logEvent } from '../../lib/log.ts'
import type { ChainLink } from './chain.ts'

/** SQLSTATE classes of failures of the server: the same write may succeed later. */
const OF_THE_SERVER = /^(08|40|53|57|58|XX)/

/**
 * Writes records in order. When Postgres refuses the content of a batch, the batch is halved until the refused record is
 * alone: the records before it are written, and the log names it.
 *
 * It does not continue after that record. `verifyLinks` would call the chain broken for ever, and an account that begins
 * again from Postgres would lack the record's cost. Most refusals that seem to be of one record (a column that a
 * migration has yet to add, a permission that was revoked) are of all records. The object keeps everything, continues to
 * serve, and writes the rest as soon as the record is accepted.
 * @param write stores some of them. @param written called with those that Postgres has, part by part.
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
