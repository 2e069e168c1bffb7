import type { Prices } from '../../calls/usage.ts'
import type { Clock } from '../../lib/clock.ts'
import type { KeyRing } from '../../lib/crypto.ts'
import { errorText, logEvent } from '../../lib/log.ts'
import { openCredential } from '../providers/credential.ts'
import { PROVIDER_KINDS, type Provider, type ProviderKind } from '../providers/provider.ts'
import { type ModelCatalogueDatabase, readModelCatalogue } from './model-catalogue.store.ts'

/** A model under the id that callers use, with its routes, best first. */
export interface CatalogueModel {
  id: string
  ownedBy: string
  /** Seconds since the epoch. */
  created: number
  contextWindow: number
  maxOutputTokens: number
  prices: Prices
  /** `docs/models.md` lists those that calls depend on. */
  capabilities: readonly string[]
  routes: CatalogueRoute[]
}

export interface CatalogueRoute {
  provider: Provider
  upstreamModel: string
  /** Percent of the model's token prices that calls cost over this route; 100 if absent. */
  pricePercent?: number
}

/** The model with the routes that calls of an organization may take. @returns the same object where these are all. */
export function modelOf(model: CatalogueModel, organizationId: string): CatalogueModel {
  const isOpen = ({ provider }: CatalogueRoute) =>
    !provider.organizationId || provider.organizationId === organizationId
  return model.routes.every(isOpen) ? model : { ...model, routes: model.routes.filter(isOpen) }
}

/** Identifies a route in the memory of an isolate. */
export const routeKey = ({ provider, upstreamModel }: CatalogueRoute): string =>
  `${provider.id} ${upstreamModel}`

export interface ModelCatalogueDeps {
  database: ModelCatalogueDatabase
  clock: Clock
  configuration: { VAULT_KEYS: KeyRing }
}

/** A catalogue is read again after this time, in case a change did not raise its epoch. */
const LONGEST_USE_MILLISECONDS = 60_000

/** The models of the deployment at one epoch of the catalogue. */
export interface ModelCatalogue {
  epoch: number
  models: ReadonlyMap<string, CatalogueModel>
}

let cached: (ModelCatalogue & { at: number }) | undefined

/**
 * The models of the deployment, cached by each isolate. The ledger compares their epoch at each admission.
 * @param epoch the current one, where it is known: a catalogue of another epoch is read again.
 * @throws the database's error when the catalogue has to be read and cannot be.
 */
export async function loadModelCatalogue(deps: ModelCatalogueDeps, epoch?: number): Promise<ModelCatalogue> {
  const now = deps.clock()
  const isCurrent = cached && (epoch === undefined || cached.epoch === epoch)
  if (cached && isCurrent && now - cached.at < LONGEST_USE_MILLISECONDS) return cached
  const read = await readModelCatalogue(deps.database)
  const models = new Map<string, CatalogueModel>()
  const providers = new Map<string, Provider | null>()
  for (const row of read.rows) {
    // Each provider has one object, so that its transport is made once.
    if (!providers.has(row.providerId)) {
      providers.set(row.providerId, providerOf(row, deps.configuration.VAULT_KEYS))
    }
    const provider = providers.get(row.providerId)
    if (provider) addRow(models, row, provider)
  }
  cached = { epoch: read.epoch, at: now, models }
  return cached
}

type Row = Awaited<ReturnType<typeof readModelCatalogue>>['rows'][number]

function addRow(models: Map<string, CatalogueModel>, row: Row, provider: Provider): void {
  const model = models.get(row.id) ?? {
    id: row.id,
    ownedBy: row.ownedBy,
    created: Math.floor(row.createdAt.getTime() / 1000),
    contextWindow: row.contextWindow,
    maxOutputTokens: row.maxOutputTokens,
    prices: row.prices,
    capabilities: row.capabilities,
    routes: [],
  }
  const { upstreamModel, pricePercent } = row
  model.routes.push({ provider, upstreamModel, ...(pricePercent !== 100 && { pricePercent }) })
  models.set(row.id, model)
}

/** @returns null for a disabled provider, and for a credential that does not open: the other providers stay usable. */
function providerOf(row: Row, ring: KeyRing): Provider | null {
  const { providerId: id, providerName: name, baseUrl, organizationId, allowedMembers } = row
  const kind: ProviderKind = row.providerKind
  if (row.providerDisabledAt) return null
  try {
    const credential = openCredential(ring, id, PROVIDER_KINDS[kind].credential, row.sealedCredential)
    return {
      id,
      name,
      kind,
      baseUrl,
      credential,
      organizationId,
      allowedMembers,
      allowsUnpriced: row.allowsUnpriced,
    }
  } catch (error) {
    logEvent('error', 'provider_credential_unreadable', { provider: name, error: errorText(error) })
    return null
  }
}
