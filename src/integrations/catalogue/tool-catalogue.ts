import type { Database } from '../../../schema/database.ts'
import { mayUseTool } from '../../identity/integration-rights.ts'
import type { Principal } from '../../identity/principal.ts'
import { ApiError } from '../../lib/api-error.ts'
import { errorText, logEvent } from '../../lib/log.ts'
import type { CatalogueTool, Integration } from '../types.ts'
import {
  type ConnectionCatalogue,
  lastCatalogue,
  loadToolCatalogue,
  type OrganizationCatalogue,
} from './catalogue-cache.ts'

export interface ToolCatalogueDeps {
  database: Database
}

type Caller = Pick<Principal, 'organizationId' | 'userId' | 'groupIds' | 'integrations' | 'epoch'>

/**
 * The tools that a caller may use: of an enabled integration, not switched off, of an approved definition, granted, and in
 * the catalogue of a connection that the caller can use, or of an integration that needs none. No upstream is asked.
 * @param filter slugs, of which only tools are listed; it grants nothing (interface: MCP gateway, Integration filter).
 * @returns in order of name. @throws ApiError internal when nothing can be read and nothing is cached.
 */
export async function listTools(
  deps: ToolCatalogueDeps,
  principal: Principal,
  filter: readonly string[] | null,
): Promise<CatalogueTool[]> {
  const catalogue = await catalogueToList(deps, principal)
  const isListed = ({ slug, isDisabled }: Integration) =>
    !isDisabled && (filter === null || filter.includes(slug))
  const byName = new Map<string, CatalogueTool>()
  for (const { integration, tools } of usableCatalogues(catalogue, principal)) {
    if (!isListed(integration)) continue
    for (const tool of tools) {
      // Catalogues of several connections can have the same tool.
      if (!byName.has(tool.name) && !isSwitchedOff(tool) && isGranted(principal, tool))
        byName.set(tool.name, tool)
    }
  }
  return [...byName.values()].sort((left, right) => (left.name < right.name ? -1 : 1))
}

type FoundTool =
  | { kind: 'tool'; tool: CatalogueTool }
  /** The integration or the tool is switched off (interface: MCP gateway, -32601). */
  | { kind: 'disabled'; integration: Integration }
  /** Unknown, not granted, or not approved: callers cannot tell which. */
  | { kind: 'unknown' }

/**
 * Finds a granted tool by the name under which callers call it. Whether the caller has a connection is decided by the call,
 * which then can name the link that makes one; of several definitions, that of a connection of the caller comes first.
 * @throws the database's error: nothing is called then.
 */
export async function findTool(
  deps: ToolCatalogueDeps,
  principal: Principal,
  name: string,
): Promise<FoundTool> {
  const catalogue = await loadToolCatalogue(deps, principal.organizationId, principal.epoch)
  const tool =
    toolNamed(usableCatalogues(catalogue, principal), principal, name) ??
    toolNamed(orderedCatalogues(catalogue), principal, name)
  if (!tool) return { kind: 'unknown' }
  const { integration } = tool
  if (integration.isDisabled || isSwitchedOff(tool)) return { kind: 'disabled', integration }
  return { kind: 'tool', tool }
}

/** Enabled integrations of which the caller may use at least one tool, connected or not, in order of slug. */
export async function listIntegrations(
  deps: ToolCatalogueDeps,
  principal: Principal,
): Promise<Integration[]> {
  const catalogue = await catalogueToList(deps, principal)
  return [...catalogue.integrations.values()]
    .filter((integration) => !integration.isDisabled && mayUseAny(principal, catalogue, integration))
    .sort((left, right) => (left.slug < right.slug ? -1 : 1))
}

/** Before the first connection an integration has no catalogue: a grant on it counts then. */
function mayUseAny(
  principal: Caller,
  { catalogues }: OrganizationCatalogue,
  integration: Integration,
): boolean {
  const own = catalogues.filter((catalogue) => catalogue.integration.id === integration.id)
  if (own.length === 0) {
    const { all, bySlug } = principal.integrations
    return all || Object.hasOwn(bySlug, integration.slug)
  }
  return own.some(({ tools }) => tools.some((tool) => !isSwitchedOff(tool) && isGranted(principal, tool)))
}

/** Cached under the current epoch, or else as this isolate last read it: an old list is better than none. */
async function catalogueToList(deps: ToolCatalogueDeps, principal: Caller): Promise<OrganizationCatalogue> {
  const { organizationId, epoch } = principal
  try {
    return await loadToolCatalogue(deps, organizationId, epoch)
  } catch (error) {
    logEvent('error', 'integration.catalogue_unreadable', { organizationId, error: errorText(error) })
    const last = lastCatalogue(organizationId)
    if (last) return last
    throw new ApiError('internal', 'The tools cannot be listed at the moment.', { cause: error })
  }
}

/** Catalogues whose tools the caller can reach. */
function usableCatalogues(catalogue: OrganizationCatalogue, caller: Caller): ConnectionCatalogue[] {
  const usable = catalogue.connections.filter(
    ({ ownerUserId, groupIds }) =>
      ownerUserId === null ||
      ownerUserId === caller.userId ||
      groupIds.some((id) => caller.groupIds.includes(id)),
  )
  const connectionIds = new Set(usable.map(({ id }) => id))
  const connected = new Set(usable.map(({ integrationId }) => integrationId))
  return orderedCatalogues(catalogue).filter(({ integration, connectionId }) => {
    if (connectionId !== '') return connectionIds.has(connectionId)
    // The operations of a document are the same for every connection.
    const isForAll = integration.kind === 'openapi' && connected.has(integration.id)
    return integration.authorization.kind === 'none' || isForAll
  })
}

/** The same order in every isolate, so that a list and a later call agree on a definition. */
const orderedCatalogues = ({ catalogues }: OrganizationCatalogue): ConnectionCatalogue[] =>
  catalogues.toSorted((left, right) => (left.connectionId < right.connectionId ? -1 : 1))

function toolNamed(
  catalogues: readonly ConnectionCatalogue[],
  caller: Caller,
  name: string,
): CatalogueTool | null {
  for (const { integration, tools } of catalogues) {
    if (!name.startsWith(`${integration.slug}_`)) continue
    const tool = tools.find((each) => each.name === name)
    if (tool && isGranted(caller, tool)) return tool
  }
  return null
}

const isGranted = ({ integrations }: Caller, { integration, definition }: CatalogueTool): boolean =>
  mayUseTool(integrations, integration.slug, definition.name)

const isSwitchedOff = ({ integration, definition }: CatalogueTool): boolean =>
  integration.disabledTools.includes(definition.name)
