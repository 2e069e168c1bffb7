import { and, asc, eq, gt, inArray, sql } from 'drizzle-orm'
import type { Database } from '../../schema/database.ts'
import { organizations } from '../../schema/identity.ts'
import { modelRoutes, models, providers } from '../../schema/models.ts'
import {
  beyond,
  disabledSince,
  type EpochChange,
  insertedRow,
  microseconds,
  newestFirst,
  raiseCatalogueEpoch,
  raisedEpoch,
  toPage,
} from '../ledger/changes/scoped-statements.store.ts'
import type { ModelReplacement } from '../wire/model-catalogue.ts'
import type { Page, PageRequest } from '../wire/page-cursor.ts'

// Providers and models belong to the deployment, so no function here takes an organization id.

/** A provider without its credential, which only `catalogue.store` reads. */
const providerColumns = {
  id: providers.id,
  name: providers.name,
  kind: providers.kind,
  baseUrl: providers.baseUrl,
  organizationId: providers.organizationId,
  allowedMembers: providers.allowedMembers,
  allowsUnpriced: providers.allowsUnpriced,
  disabledAt: providers.disabledAt,
  createdAt: providers.createdAt,
}

export type ProviderRow = Omit<typeof providers.$inferSelect, 'sealedCredential'>

interface RouteRow {
  providerId: string
  providerName: string
  upstreamModel: string
  pricePercent: number
}

export type ModelRow = typeof models.$inferSelect & { routes: RouteRow[] }

export async function insertProvider(
  database: Database,
  provider: Omit<typeof providers.$inferInsert, 'disabledAt' | 'createdAt'>,
): Promise<EpochChange<ProviderRow>> {
  const [rows, raised] = await database.batch([
    database.insert(providers).values(provider).returning(providerColumns),
    raiseCatalogueEpoch(database),
  ])
  return { result: insertedRow(rows, 'provider'), epoch: raisedEpoch(raised) }
}

export async function selectProvider(database: Database, providerId: string): Promise<ProviderRow | null> {
  const [row] = await database.select(providerColumns).from(providers).where(eq(providers.id, providerId))
  return row ?? null
}

export async function selectProviders(database: Database, page: PageRequest): Promise<Page<ProviderRow>> {
  const rows = await database
    .select({ ...providerColumns, at: microseconds(providers.createdAt) })
    .from(providers)
    .where(beyond(providers.createdAt, providers.id, page.after))
    .orderBy(...newestFirst(providers.createdAt, providers.id))
    .limit(page.limit + 1)
  return toPage(rows, page, ({ at, id }) => ({ at, id }))
}

/**
 * @param atBaseUrl the address that the row must still have, so that no credential is combined with an address that it was
 * not given for. @param values `sealedCredential` replaces the stored one.
 * @returns null when the address was another one.
 */
export async function updateProvider(
  database: Database,
  providerId: string,
  atBaseUrl: string,
  values: {
    name?: string | undefined
    baseUrl?: string | undefined
    sealedCredential?: string | undefined
    allowedMembers?: string[] | undefined
    allowsUnpriced?: boolean | undefined
    disabled?: boolean | undefined
  },
): Promise<EpochChange<void> | null> {
  const { disabled, name, ...columns } = values
  const [updated, raised] = await database.batch([
    database
      .update(providers)
      .set({
        ...columns,
        name: name ?? sql`${providers.name}`,
        ...(disabled !== undefined && { disabledAt: disabledSince(providers.disabledAt, disabled) }),
      })
      .where(and(eq(providers.id, providerId), eq(providers.baseUrl, atBaseUrl)))
      .returning({ id: providers.id }),
    raiseCatalogueEpoch(database),
  ])
  return updated.length === 0 ? null : { result: undefined, epoch: raisedEpoch(raised) }
}

export async function organizationExists(database: Database, organizationId: string): Promise<boolean> {
  const rows = await database
    .select({ id: organizations.id })
    .from(organizations)
    .where(eq(organizations.id, organizationId))
  return rows.length > 0
}

/** The ids of those providers that exist. */
export async function selectProviderIds(database: Database, ids: string[]): Promise<Set<string>> {
  const rows = await database.select({ id: providers.id }).from(providers).where(inArray(providers.id, ids))
  return new Set(rows.map(({ id }) => id))
}

/** Writes a model and replaces all its routes, in one transaction. Its time of creation is kept. */
export async function replaceModel(
  database: Database,
  modelId: string,
  replacement: ModelReplacement,
): Promise<EpochChange<void>> {
  const columns = {
    ownedBy: replacement.owned_by,
    contextWindow: replacement.context_window,
    maxOutputTokens: replacement.max_output_tokens,
    prices: replacement.prices,
    capabilities: replacement.capabilities,
  }
  const routes = replacement.routes.map((route, position) => ({
    modelId,
    position,
    providerId: route.provider_id,
    upstreamModel: route.upstream_model,
    pricePercent: route.price_percent,
  }))
  const [, , , raised] = await database.batch([
    database
      .insert(models)
      .values({ id: modelId, ...columns, disabledAt: replacement.disabled ? sql`now()` : null })
      .onConflictDoUpdate({
        target: models.id,
        set: { ...columns, disabledAt: disabledSince(models.disabledAt, replacement.disabled) },
      }),
    database.delete(modelRoutes).where(eq(modelRoutes.modelId, modelId)),
    database.insert(modelRoutes).values(routes),
    raiseCatalogueEpoch(database),
  ])
  return { result: undefined, epoch: raisedEpoch(raised) }
}

/** Disables a model. Its row stays, so that the cost of past calls can be recomputed from its prices. */
export async function updateModelDisabled(database: Database, modelId: string): Promise<EpochChange<void>> {
  const [, raised] = await database.batch([
    database
      .update(models)
      .set({ disabledAt: disabledSince(models.disabledAt, true) })
      .where(eq(models.id, modelId)),
    raiseCatalogueEpoch(database),
  ])
  return { result: undefined, epoch: raisedEpoch(raised) }
}

export async function selectModel(database: Database, modelId: string): Promise<ModelRow | null> {
  const [row] = await database.select().from(models).where(eq(models.id, modelId))
  if (row === undefined) return null
  const routes = await selectRoutes(database, [modelId])
  return { ...row, routes: routes.get(modelId) ?? [] }
}

/** Models in order of id, which is the cursor's position. */
export async function selectModels(database: Database, page: PageRequest): Promise<Page<ModelRow>> {
  const rows = await database
    .select()
    .from(models)
    .where(page.after === null ? undefined : gt(models.id, page.after.id))
    .orderBy(asc(models.id))
    .limit(page.limit + 1)
  const cut = toPage(rows, page, ({ id }) => ({ at: 0, id }))
  const routes = await selectRoutes(
    database,
    cut.rows.map(({ id }) => id),
  )
  return { rows: cut.rows.map((row) => ({ ...row, routes: routes.get(row.id) ?? [] })), next: cut.next }
}

async function selectRoutes(database: Database, modelIds: string[]): Promise<Map<string, RouteRow[]>> {
  const routes = new Map<string, RouteRow[]>()
  if (modelIds.length === 0) return routes
  const rows = await database
    .select({
      modelId: modelRoutes.modelId,
      providerId: modelRoutes.providerId,
      providerName: providers.name,
      upstreamModel: modelRoutes.upstreamModel,
      pricePercent: modelRoutes.pricePercent,
    })
    .from(modelRoutes)
    .innerJoin(providers, eq(providers.id, modelRoutes.providerId))
    .where(inArray(modelRoutes.modelId, modelIds))
    .orderBy(asc(modelRoutes.modelId), asc(modelRoutes.position))
  for (const { modelId, ...route } of rows) routes.set(modelId, [...(routes.get(modelId) ?? []), route])
  return routes
}
