import { asc, eq, isNull } from 'drizzle-orm'
import type { NeonHttpDatabase } from 'drizzle-orm/neon-http'
import { deploymentEpochs, modelRoutes, models, providers } from '../../../schema/models.ts'

export type ModelCatalogueDatabase = NeonHttpDatabase

/**
 * Every route of every enabled model, with the epoch of the catalogue; models in order of id, routes best first. The
 * epoch is read first: rows may be newer than it, never older. The catalogue belongs to the deployment; grants decide
 * which of its models an organization may use.
 */
export async function readModelCatalogue(database: ModelCatalogueDatabase) {
  const epoch = database
    .select({ epoch: deploymentEpochs.epoch })
    .from(deploymentEpochs)
    .where(eq(deploymentEpochs.name, 'catalogue'))
  const [epochs, rows] = await database.batch([epoch, selectRoutes(database)])
  return { epoch: epochs[0]?.epoch ?? 1, rows }
}

const selectRoutes = (database: ModelCatalogueDatabase) =>
  database
    .select({
      id: models.id,
      ownedBy: models.ownedBy,
      createdAt: models.createdAt,
      contextWindow: models.contextWindow,
      maxOutputTokens: models.maxOutputTokens,
      prices: models.prices,
      capabilities: models.capabilities,
      upstreamModel: modelRoutes.upstreamModel,
      pricePercent: modelRoutes.pricePercent,
      providerId: providers.id,
      providerName: providers.name,
      providerKind: providers.kind,
      baseUrl: providers.baseUrl,
      allowsUnpriced: providers.allowsUnpriced,
      sealedCredential: providers.sealedCredential,
      organizationId: providers.organizationId,
      allowedMembers: providers.allowedMembers,
      providerDisabledAt: providers.disabledAt,
    })
    .from(models)
    .innerJoin(modelRoutes, eq(modelRoutes.modelId, models.id))
    .innerJoin(providers, eq(providers.id, modelRoutes.providerId))
    .where(isNull(models.disabledAt))
    .orderBy(asc(models.id), asc(modelRoutes.position))
