import type { Database } from '../../../schema/database.ts'
import type { KeyRing } from '../../lib/crypto.ts'
import { type Pruning, signPruning, verifyPruning } from './pruning.ts'
import { selectPruning, upsertPruning } from './prunings.store.ts'

interface StatementDeps {
  database: Database
  configuration: { KEY_PEPPERS: KeyRing }
}

type StatementOf<Kind extends Pruning['kind']> = Extract<Pruning, { kind: Kind }>
type Subject<Kind extends Pruning['kind']> = Pick<StatementOf<Kind>, 'organizationId' | 'shard'> & {
  kind: Kind
}

/** A chain, or a statement, of which retention must remove nothing, because that would destroy the evidence of a fault. */
export class BrokenChainError extends Error {}

/** The stored statement about a chain, or about usage or rejected calls. @throws BrokenChainError for one that does not count. */
export async function readPruning<Kind extends Pruning['kind']>(
  { database, configuration }: StatementDeps,
  { organizationId, kind, shard }: Subject<Kind>,
): Promise<StatementOf<Kind> | null> {
  const row = await selectPruning(database, { organizationId, kind, shard })
  if (row === null) return null
  const verified = verifyPruning(configuration.KEY_PEPPERS, row)
  if ('fault' in verified) {
    throw new BrokenChainError(`chain ${organizationId}:${shard}: pruned ${kind}: ${verified.fault}`)
  }
  return verified.pruning as StatementOf<Kind>
}

/**
 * Signs and stores a statement. Where another run of the sweep has stored one meanwhile that reaches further, that one stays.
 * @returns the one that is stored, which alone says what may be removed. @throws BrokenChainError for a stored one that does not count.
 */
export async function storePruning<Kind extends Pruning['kind']>(
  deps: StatementDeps,
  pruning: StatementOf<Kind> & Subject<Kind>,
): Promise<StatementOf<Kind>> {
  if (await upsertPruning(deps.database, signPruning(deps.configuration.KEY_PEPPERS, pruning))) return pruning
  const stored = await readPruning<Kind>(deps, pruning)
  if (stored === null) throw new Error('a statement of retention was deleted while it was replaced')
  return stored
}
