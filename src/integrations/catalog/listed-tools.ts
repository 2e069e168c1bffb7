import type { Database } from '../../../schema/database.ts'
import { ApiError } from '../../lib/api-error.ts'
import { type CredentialDeps, credentialOf, reportRefused } from '../connections/credentials.ts'
import {
  CredentialsUnavailable,
  type Integration,
  type OperationBinding,
  type UpstreamProtocol,
} from '../types.ts'
import { type ListDeps, listUpstreamTools } from '../upstream/list-upstream-tools.ts'
import { type PinnedDefinition, pinnedDefinition } from './clean-definition.ts'
import { operationTools } from './openapi/operation-tools.ts'
import { type CatalogueKey, selectCatalogueConnection } from './refresh-catalogues.store.ts'
import { selectDocument } from './tool-catalog.store.ts'

export interface ListedToolsDeps extends ListDeps, CredentialDeps {
  database: Database
  configuration: ListDeps['configuration'] & CredentialDeps['configuration']
}

/** The tools that can be offered, each name once. */
export interface ListedTools {
  definitions: PinnedDefinition[]
  protocol: UpstreamProtocol | null
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
  const { operations, left } = operationTools(document)
  return { ...pinnedDefinitions(operations, left), protocol: null }
}

async function listedByServer(
  deps: ListedToolsDeps,
  integration: Integration,
  key: CatalogueKey,
): Promise<ListedTools> {
  const connection = await selectCatalogueConnection(deps.database, key)
  const credential = await credentialOf(deps, integration, connection)
  try {
    const { tools, protocol } = await listUpstreamTools(deps, integration.url, credential)
    return {
      ...pinnedDefinitions(
        tools.map((tool) => ({ tool, binding: null })),
        [],
      ),
      protocol,
    }
  } catch (error) {
    if (error instanceof CredentialsUnavailable && connection) {
      await reportRefused(deps, integration, connection, credential)
    }
    throw error
  }
}

const MOST_REASONS = 5

function pinnedDefinitions(
  tools: ReadonlyArray<{ tool: unknown; binding: OperationBinding | null }>,
  alreadyLeft: readonly string[],
): Pick<ListedTools, 'definitions' | 'warning'> {
  const byName = new Map<string, PinnedDefinition>()
  const left = [...alreadyLeft]
  tools.forEach(({ tool, binding }, index) => {
    const pinned = pinnedDefinition(tool, binding)
    if ('reason' in pinned) left.push(`tool ${index}: ${pinned.reason}`)
    else if (byName.has(pinned.definition.name)) left.push(`tool ${index}: its name is taken`)
    else byName.set(pinned.definition.name, pinned)
  })
  const more = left.length > MOST_REASONS ? `; and ${left.length - MOST_REASONS} more` : ''
  const warning = left.length === 0 ? null : `Not offered: ${left.slice(0, MOST_REASONS).join('; ')}${more}.`
  return { definitions: [...byName.values()], warning }
}
