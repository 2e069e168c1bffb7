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
