import { eq, sql } from 'drizzle-orm'
import { organizations } from '../../schema/identity.ts'
import type { ToolSettings } from '../identity/tool-rights.ts'
import type { OrganizationScope } from '../ledger/changes/scoped-statements.store.ts'

/** @returns null if there is no such organization. */
export async function selectToolSettings({
  database,
  organizationId,
}: OrganizationScope): Promise<{ toolSettings: ToolSettings | null } | null> {
  const [row] = await database
    .select({ toolSettings: organizations.toolSettings })
    .from(organizations)
    .where(eq(organizations.id, organizationId))
  return (row as { toolSettings: ToolSettings | null } | undefined) ?? null
}

/** Replaces the rules and raises the epoch in one statement. @returns the epoch; null if there is no such organization. */
export async function updateToolSettings(
  { database, organizationId }: OrganizationScope,
  settings: ToolSettings,
): Promise<number | null> {
  const [row] = await database
    .update(organizations)
    .set({ toolSettings: { ...settings }, epoch: sql`${organizations.epoch} + 1` })
    .where(eq(organizations.id, organizationId))
    .returning({ epoch: organizations.epoch })
  return row?.epoch ?? null
}
