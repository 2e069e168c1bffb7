import type { Database } from '../../../schema/database.ts'
import { WeightedMap } from '../../lib/weighted-map.ts'
import type { CatalogueTool, Integration } from '../types.ts'
import {
  type CatalogueEntry,
  type CatalogueRow,
  type ConnectionAccess,
  type DefinitionRow,
  selectCatalogues,
  selectDefinitions,
  selectEntries,
} from './tool-catalogue.store.ts'
import { toolName } from './tool-name.ts'

/** The integrations of an organization with the tools of each catalogue. Plain data, shared by the calls of an isolate. */
export interface OrganizationCatalogue {
  /** Integrations by id. */
  integrations: ReadonlyMap<string, Integration>
  catalogues: readonly ConnectionCatalogue[]
  connections: readonly ConnectionAccess[]
}

/** The approved tools of one catalogue, in order of name. Tools that are switched off are among them. */
export interface ConnectionCatalogue {
  integration: Integration
  /** Empty for the catalogue of an integration without connections. */
  connectionId: string
  tools: readonly CatalogueTool[]
}

interface Cached {
  epoch: number
  catalogue: OrganizationCatalogue
  /** Entries by digest. */
  entries: Map<string, CatalogueEntry[]>
  /** Definitions by `definitionKey`. */
  definitions: Map<string, DefinitionRow>
}

/** Memory of a definition as a tree, for each character of its text. */
const BYTES_OF_CHARACTER = 3

/** Cached results by organization. They are never promises: the runtime cancels pending I/O with the request that started it. */
const cache = new WeightedMap<string, Cached>({ entries: 1_000, weight: 32_000_000 })

/**
 * The catalogue of an organization, cached by this isolate under the organization's epoch: every change of an integration,
 * of a grant, of a definition or of a connection raises the epoch in the same transaction. Definitions and lists that did
 * not change are not read again.
 * @param epoch of the principal. @throws the database's error.
 */
export async function loadToolCatalogue(
  deps: { database: Database },
  organizationId: string,
  epoch: number,
): Promise<OrganizationCatalogue> {
  const cached = cache.get(organizationId)
  if (cached?.epoch === epoch) return cached.catalogue
  const read = await selectCatalogues(deps.database, organizationId)
  const entries = await currentEntries(deps.database, organizationId, read.catalogues, cached)
  const definitions = await currentDefinitions(
    deps.database,
    organizationId,
    read.catalogues,
    entries,
    cached,
  )
  const integrations = new Map(read.integrations.map((integration) => [integration.id, integration]))
  const catalogue = {
    integrations,
    connections: read.connections,
    catalogues: read.catalogues.flatMap((row) => {
      const integration = integrations.get(row.integrationId)
      if (!integration) return []
      const tools = toolsOf(integration, row, entries.get(row.digest) ?? [], definitions)
      return [{ integration, connectionId: row.connectionId, tools }]
    }),
  }
  cache.set(organizationId, { epoch, catalogue, entries, definitions }, weightOf(definitions))
  return catalogue
}

/** The catalogue as this isolate last read it, at whatever epoch; null if it never did. */
export const lastCatalogue = (organizationId: string): OrganizationCatalogue | null =>
  cache.get(organizationId)?.catalogue ?? null

async function currentEntries(
  database: Database,
  organizationId: string,
  catalogues: readonly CatalogueRow[],
  cached: Cached | undefined,
): Promise<Cached['entries']> {
  const digests = new Set(catalogues.map(({ digest }) => digest))
  const missing = [...digests].filter((digest) => !cached?.entries.has(digest))
  const read = missing.length > 0 ? await selectEntries(database, organizationId, missing) : new Map()
  return new Map(
    [...digests].map((digest) => [digest, read.get(digest) ?? cached?.entries.get(digest) ?? []]),
  )
}

async function currentDefinitions(
  database: Database,
  organizationId: string,
  catalogues: readonly CatalogueRow[],
  entries: Cached['entries'],
  cached: Cached | undefined,
): Promise<Cached['definitions']> {
  const lists = new Map(catalogues.map((row) => [`${row.integrationId} ${row.digest}`, row]))
  const wanted = new Map(
    [...lists.values()].flatMap(({ integrationId, digest }) =>
      (entries.get(digest) ?? []).map(([name, hash]) => {
        const key = { integrationId, name, hash }
        return [definitionKey(key), key] as const
      }),
    ),
  )
  const missing = [...wanted].flatMap(([key, value]) => (cached?.definitions.has(key) ? [] : [value]))
  const rows = missing.length > 0 ? await selectDefinitions(database, organizationId, missing) : []
  const read = new Map(rows.map((row) => [definitionKey(row), row]))
  return new Map(
    [...wanted.keys()].flatMap((key) => {
      const definition = read.get(key) ?? cached?.definitions.get(key)
      return definition ? [[key, definition]] : []
    }),
  )
}

const definitionKey = ({
  integrationId,
  name,
  hash,
}: {
  integrationId: string
  name: string
  hash: string
}) => `${integrationId} ${hash} ${name}`

function toolsOf(
  integration: Integration,
  { protocol }: CatalogueRow,
  entries: readonly CatalogueEntry[],
  definitions: Cached['definitions'],
): CatalogueTool[] {
  return entries.flatMap(([name, hash]) => {
    const row = definitions.get(definitionKey({ integrationId: integration.id, name, hash }))
    if (!row) return []
    const { definition, binding } = row
    return [{ integration, name: toolName(integration.slug, name), definition, binding, protocol, hash }]
  })
}

/** Estimated bytes of definitions. */
function weightOf(definitions: Cached['definitions']): number {
  let weight = 1_000
  for (const { definition, binding } of definitions.values()) {
    weight += BYTES_OF_CHARACTER * (JSON.stringify(definition).length + (binding ? 500 : 0)) + 500
  }
  return weight
}
