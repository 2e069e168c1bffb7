import { isDeepStrictEqual } from 'node:util'
import { asc, eq, inArray, notInArray, sql } from 'drizzle-orm'
import { deploymentEpochs, modelRoutes, models, providers } from '../schema/models.ts'
import {
  credentialOf,
  openCredential,
  type ProviderCredential,
  sealCredential,
} from '../src/gateway/providers/credential.ts'
import { PROVIDER_KINDS } from '../src/gateway/providers/provider.ts'
import type { KeyRing } from '../src/lib/crypto.ts'
import type { ScriptDatabase } from './database.ts'
import { REGISTERED_PROVIDERS, type WantedModel, type WantedProvider } from './demo-catalogue.ts'
import { demoId } from './demo-organizations.ts'

/**
 * Writes the providers of the environment with their models and routes to the database. On request it disables those that an
 * earlier run registered and that the environment no longer names. Providers registered by other means stay as they are. The
 * catalogue's epoch is raised only if something changed.
 */
export async function seedCatalogue(
  database: ScriptDatabase,
  vaultKeys: KeyRing,
  wanted: WantedProvider[],
  disableOthers: boolean,
): Promise<void> {
  let changed = disableOthers && (await disableUnwanted(database, wanted))
  for (const provider of wanted) {
    const id = await putProvider(database, vaultKeys, provider)
    if (id.changed) changed = true
    for (const model of provider.models) {
      if (await putModel(database, id.id, model)) changed = true
    }
  }
  const raise = { epoch: sql`${deploymentEpochs.epoch} + ${changed ? 1 : 0}` }
  await database
    .insert(deploymentEpochs)
    .values({ name: 'catalogue' })
    .onConflictDoUpdate({ target: deploymentEpochs.name, set: raise })
}

async function putProvider(
  database: ScriptDatabase,
  vaultKeys: KeyRing,
  wanted: WantedProvider,
): Promise<{ id: string; changed: boolean }> {
  const [held] = await database.select().from(providers).where(eq(providers.name, wanted.name))
  const id = held?.id ?? demoId(`provider ${wanted.name}`)
  const form = PROVIDER_KINDS[wanted.kind].credential
  const credential = credentialOf(form, wanted.credential)
  const same =
    held !== undefined &&
    held.disabledAt === null &&
    held.kind === wanted.kind &&
    held.baseUrl === wanted.baseUrl &&
    holds(() => openCredential(vaultKeys, id, form, held.sealedCredential), credential)
  if (same) return { id, changed: false }
  const values = {
    kind: wanted.kind,
    baseUrl: wanted.baseUrl,
    sealedCredential: sealCredential(vaultKeys, id, credential),
    disabledAt: null,
  }
  await database
    .insert(providers)
    .values({ id, name: wanted.name, ...values })
    .onConflictDoUpdate({ target: providers.name, set: values })
  return { id, changed: true }
}

/** Whether the stored credential is this one; it is not when it was sealed under a key that is gone. */
function holds(open: () => ProviderCredential, wanted: ProviderCredential): boolean {
  try {
    return sameMembers(open().parts, wanted.parts)
  } catch {
    return false
  }
}

async function putModel(database: ScriptDatabase, providerId: string, wanted: WantedModel): Promise<boolean> {
  const [held] = await database.select().from(models).where(eq(models.id, wanted.id))
  const routes = await database
    .select({ providerId: modelRoutes.providerId })
    .from(modelRoutes)
    .where(eq(modelRoutes.modelId, wanted.id))
    .orderBy(asc(modelRoutes.position))
  const { id, upstreamModel = wanted.id, ...values } = { ...wanted, disabledAt: null }
  const same =
    held !== undefined &&
    held.disabledAt === null &&
    held.ownedBy === wanted.ownedBy &&
    held.contextWindow === wanted.contextWindow &&
    held.maxOutputTokens === wanted.maxOutputTokens &&
    sameMembers(held.prices, wanted.prices) &&
    held.capabilities.join() === wanted.capabilities.join() &&
    routes[0]?.providerId === providerId
  if (same) return false
  await database
    .insert(models)
    .values({ id, ...values })
    .onConflictDoUpdate({ target: models.id, set: values })
  const route = { providerId, upstreamModel }
  await database
    .insert(modelRoutes)
    .values({ modelId: id, position: 0, ...route })
    .onConflictDoUpdate({ target: [modelRoutes.modelId, modelRoutes.position], set: route })
  return true
}

/** Members in any order: jsonb does not keep theirs. */
function sameMembers(left: object, right: object): boolean {
  return isDeepStrictEqual({ ...left }, { ...right })
}

/** @returns whether anything was enabled until now */
async function disableUnwanted(database: ScriptDatabase, wanted: WantedProvider[]): Promise<boolean> {
  const names = REGISTERED_PROVIDERS.filter((name) => wanted.every((provider) => provider.name !== name))
  if (names.length === 0) return false
  const gone = await database
    .update(providers)
    .set({ disabledAt: sql`now()` })
    .where(sql`${inArray(providers.name, [...names])} and ${providers.disabledAt} is null`)
    .returning({ id: providers.id })
  if (gone.length === 0) return false
  const ids = gone.map(({ id }) => id)
  const served = database
    .select({ id: modelRoutes.modelId })
    .from(modelRoutes)
    .where(inArray(modelRoutes.providerId, ids))
  // A model that another provider serves as well stays.
  const servedElsewhere = database
    .select({ id: modelRoutes.modelId })
    .from(modelRoutes)
    .where(notInArray(modelRoutes.providerId, ids))
  await database
    .update(models)
    .set({ disabledAt: sql`now()` })
    .where(sql`${inArray(models.id, served)} and ${notInArray(models.id, servedElsewhere)}`)
  return true
}
