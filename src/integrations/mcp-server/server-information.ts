import { LIST_TTL_MS } from './list-tools.ts'
import { LEGACY_VERSIONS, MODERN_VERSION } from './read-message.ts'

/** Name and version of the server (MCP, Implementation). */
export const SERVER_INFORMATION = { name: 'headgate', title: 'Headgate', version: '0.1.0' } as const

/** The key of `_meta` in which results of 2026-07-28 name the server. */
export const SERVER_INFORMATION_KEY = 'io.modelcontextprotocol/serverInfo'

const INSTRUCTIONS =
  'Tools are named {integration}_{tool}. The tools named platform_* find and manage the others: if a tool is not in your ' +
  'list, search for it with platform_search_tools and call it with platform_execute_tool.'

/** Lists do not announce their changes, and nothing but tools is served. */
const CAPABILITIES = { tools: {} }

/** The result of `initialize`. An unknown revision is answered with the newest one (MCP 2025-11-25, Lifecycle). */
export function initializeResult(requested: unknown): Record<string, unknown> {
  const isKnown = typeof requested === 'string' && LEGACY_VERSIONS.includes(requested)
  return {
    protocolVersion: isKnown ? requested : LEGACY_VERSIONS[0],
    capabilities: CAPABILITIES,
    serverInfo: SERVER_INFORMATION,
    instructions: INSTRUCTIONS,
  }
}

/** The result of `server/discover` (MCP 2026-07-28, Discovery). */
export const discoverResult = (): Record<string, unknown> => ({
  supportedVersions: [MODERN_VERSION],
  capabilities: CAPABILITIES,
  instructions: INSTRUCTIONS,
  ttlMs: LIST_TTL_MS,
  cacheScope: 'private',
})
