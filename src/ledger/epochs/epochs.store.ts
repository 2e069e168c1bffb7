import { sql } from 'drizzle-orm'
import type { Database } from '../../../schema/database.ts'
import { organizations } from '../../../schema/identity.ts'
import { deploymentEpochs } from '../../../schema/models.ts'
import type { LearnedEpochs } from './known-epochs.ts'

export type EpochColumns = {
  organization_epoch: string | null
  catalogue_epoch: string
}

/** SQL of both epochs. The organization's is null for the deployment's own ledger; a catalogue without a row is at 1. */
export const epochColumns = (organizationId: string) => sql`
  (SELECT epoch FROM ${organizations} WHERE id = ${organizationId}::uuid)::text AS organization_epoch,
  coalesce((SELECT epoch FROM ${deploymentEpochs} WHERE name = 'catalogue'), 1)::text AS catalogue_epoch`

export const epochsOf = ({
  organization_epoch: organization,
  catalogue_epoch: catalogue,
}: EpochColumns): LearnedEpochs => ({
  organization: organization === null ? null : Number(organization),
  catalogue: Number(catalogue),
})

/** The epochs as Postgres has them now; the organization's is null when there is no such organization. */
export async function readEpochs(database: Database, organizationId: string): Promise<LearnedEpochs> {
  const { rows } = await database.execute<EpochColumns>(sql`SELECT ${epochColumns(organizationId)}`)
  return epochsOf(rows[0] as EpochColumns)
}

/**
 * Raises epochs in Postgres that are lower than those which a ledger knows, because Postgres was restored: no number may stand for two
 * states of the rights.
 * @param known 0 for one that the ledger does not know.
 * @returns the raised ones, each higher than what the ledger knows; null for one that was not lower.
 */
export async function raiseEpochs(
  database: Database,
  organizationId: string,
  known: { organization: number; catalogue: number },
): Promise<LearnedEpochs> {
  const { rows } = await database.execute<Record<'organization' | 'catalogue', string | null>>(sql`
    WITH organization AS (
      UPDATE ${organizations} SET epoch = ${known.organization}::bigint + 1
      WHERE id = ${organizationId}::uuid AND epoch < ${known.organization}::bigint RETURNING epoch
    ), catalogue AS (
      INSERT INTO ${deploymentEpochs} (name, epoch) SELECT 'catalogue', ${known.catalogue}::bigint + 1
      WHERE ${known.catalogue}::bigint > coalesce((SELECT epoch FROM ${deploymentEpochs} WHERE name = 'catalogue'), 1)
      ON CONFLICT (name) DO UPDATE SET epoch = greatest(${deploymentEpochs.epoch}, excluded.epoch) RETURNING epoch
    )
    SELECT (SELECT epoch::text FROM organization) AS organization, (SELECT epoch::text FROM catalogue) AS catalogue`)
  const numberOf = (text: string | null | undefined) => (text == null ? null : Number(text))
  return { organization: numberOf(rows[0]?.organization), catalogue: numberOf(rows[0]?.catalogue) }
}
