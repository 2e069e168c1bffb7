import type { Prices } from '../../governance/credits.ts'
import type { Clock } from '../../lib/clock.ts'
import type { KeyRing } from '../../lib/crypto.ts'
import { errorText, logEvent } from '../../lib/log.ts'
import { openCredential } from '../providers/credential.ts'
import { PROVIDER_KINDS, type Provider, type ProviderKind } from '../providers/provider.ts'
import { type CatalogDatabase, readCatalogue } from './catalog.store.ts'

/** A model as callers name it, with the places that serve it, best first. */
export interface CatalogModel {
  id: string
  ownedBy: string
  /** Seconds since the epoch. */
  created: number
  contextWindow: number
  maxOutputTokens: number
  prices: Prices
  /** Words for what the model can do; those that calls depend on are listed in the README. */
  capabilities: readonly string[]
  routes: Route[]
}

export interface Route {
  provider: Provider
  upstreamModel: string
}

export interface CatalogDeps {
  database: CatalogDatabase
  clock: Clock
  configuration: { VAULT_KEYS: KeyRing }
}

/** A catalogue is read again after this time, should a change have left no trace in its epoch. */
const LONGEST_USE_MILLISECONDS = 60_000

/** The models of the deployment as they were at an epoch of the catalogue. */
export interface Catalog {
  epoch: number
  models: ReadonlyMap<string, CatalogModel>
}

let cached: (Catalog & { at: number }) | undefined

/**
 * The models of the deployment, cached by each isolate. Whether they are current is told by the ledger at each admission.
 * @param epoch of the catalogue now, where it is known: what was read at another one is read again.
 * @throws whatever the database throws when it has to be asked and cannot be.
 */
export async function loadCatalog(deps: CatalogDeps, epoch?: number): Promise<Catalog> {
  const now = deps.clock()
  const isCurrent = cached && (epoch === undefined || cached.epoch === epoch)
  if (cached && isCurrent && now - cached.at < LONGEST_USE_MILLISECONDS) return cached
  const read = await readCatalogue(deps.database)
  const models = new Map<string, CatalogModel>()
  const providers = new Map<string, Provider | null>()
  for (const row of read.rows) {
    // One object for each provider, which then is prepared for calls once.
    if (!providers.has(row.providerId)) {
      providers.set(row.providerId, providerOf(row, deps.configuration.VAULT_KEYS))
    }
    const provider = providers.get(row.providerId)
    if (provider) addRow(models, row, provider)
  }
  cached = { epoch: read.epoch, at: now, models }
  return cached
}

type Row = Awaited<ReturnType<typeof readCatalogue>>['rows'][number]

function addRow(models: Map<string, CatalogModel>, row: Row, provider: Provider): void {
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
  model.routes.push({ provider, upstreamModel: row.upstreamModel })
  models.set(row.id, model)
}

/**
 * @returns null for one that is disabled, and when the credential does not open: one provider's lost key must not take all
 * models away.
 */
function providerOf(row: Row, ring: KeyRing): Provider | null {
  const { providerId: id, providerName: name, baseUrl } = row
  const kind: ProviderKind = row.providerKind
  if (row.providerDisabledAt) return null
  try {
    const credential = openCredential(ring, id, PROVIDER_KINDS[kind].credential, row.sealedCredential)
    return { id, name, kind, baseUrl, credential }
  } catch (error) {
    logEvent('error', 'provider_credential_unreadable', { provider: name, error: errorText(error) })
    return null
  }
}
