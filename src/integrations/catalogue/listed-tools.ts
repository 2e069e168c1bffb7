import type { Database } from '../../../schema/database.ts'
import { ApiError } from '../../lib/api-error.ts'
import type { Slices } from '../../lib/slices.ts'
import { runSlices } from '../../lib/slices.ts'
import type { CredentialDeps } from '../brokers/credentials.ts'
import { sendAuthorized } from '../brokers/credentials.ts'
import type { Integration, McpServerProtocol, OperationBinding, UpstreamCredential } from '../types.ts'
import { type ListDeps, listUpstreamTools } from '../upstream/list-upstream-tools.ts'
import { type PinnedDefinition, pinnedDefinition } from './clean-definition.ts'
import { operationTools } from './openapi/operation-tools.ts'
import { type CatalogueKey, selectCatalogueConnection } from './refresh-catalogues.store.ts'
import { selectDocument } from './tool-catalogue.store.ts'

export interface ListedToolsDeps extends ListDeps, CredentialDeps {
  database: Database
  configuration: ListDeps['configuration'] & CredentialDeps['configuration']
}

/** The tools that can be offered, each name once. */
export interface ListedTools {
  definitions: PinnedDefinition[]
  protocol: McpServerProtocol | null
  /** Why others are not offered; null if all are. */
  warning: string | null
}

/** Reads the tools from the upstream, or from the document of an API. */
export async function listedTools(
  deps: ListedToolsDeps,
  integration: Integration,
  key: CatalogueKey,
): Promise<ListedTools> {
  if (integration.kind === 'mcp') return listedByServer(deps, integration, key)
  const document = await selectDocument(deps.database, key)
  if (document === null) throw new ApiError('invalid_request', 'The integration has no document.')
  const { operations, left } = await runSlices(operationTools(document))
  return { ...(await runSlices(pinnedDefinitions(operations, left))), protocol: null }
}

async function listedByServer(
  deps: ListedToolsDeps,
  integration: Integration,
  key: CatalogueKey,
): Promise<ListedTools> {
  const connection = await selectCatalogueConnection(deps.database, key)
  return sendAuthorized(deps, integration, connection, async (credential) => {
    const { tools, protocol } = await listUpstreamTools(deps, integration.url, credential)
    const listed = tools.map((tool) => ({ tool, binding: null }))
    return { ...(await runSlices(pinnedDefinitions(listed, [], credential))), protocol }
  })
}

const MOST_REASONS = 5

/** Pins definitions in slices: a list may have 16 MB. */
function* pinnedDefinitions(
  tools: ReadonlyArray<{ tool: unknown; binding: OperationBinding | null }>,
  alreadyLeft: readonly string[],
  credential?: UpstreamCredential,
): Slices<Pick<ListedTools, 'definitions' | 'warning'>> {
  const byName = new Map<string, PinnedDefinition>()
  const left = [...alreadyLeft]
  for (const [index, { tool, binding }] of tools.entries()) {
    const pinned = pinnedDefinition(tool, binding, credential)
    if ('reason' in pinned) left.push(`tool ${index}: ${pinned.reason}`)
    else if (byName.has(pinned.definition.name)) left.push(`tool ${index}: its name is taken`)
    else byName.set(pinned.definition.name, pinned)
    yield
  }
  const more = left.length > MOST_REASONS ? `; and ${left.length - MOST_REASONS} more` : ''
  const warning = left.length === 0 ? null : `Not offered: ${left.slice(0, MOST_REASONS).join('; ')}${more}.`
  return { definitions: [...byName.values()], warning }
}
