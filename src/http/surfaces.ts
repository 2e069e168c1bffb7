import type { PublicSurface } from '../wire/public/operations.ts'

/** A family of routes that share header forms and an error envelope (interface: Authentication, Errors). */
export type Surface = PublicSurface | 'management'

/** Header forms that carry a key. `authorization` means `Authorization: Bearer <key>`. */
export type KeyHeader = 'authorization' | 'x-api-key' | 'api-key'

export type HostKind = 'base' | 'llm'

/** Accepted header forms by surface and host; a surface that is absent for a host is not served there. */
export const KEY_HEADERS: Record<HostKind, Partial<Record<Surface, readonly KeyHeader[]>>> = {
  base: {
    chat_completions: ['authorization', 'x-api-key'],
    messages: ['authorization', 'x-api-key'],
    responses: ['authorization'],
    models: ['authorization', 'x-api-key'],
    mcp: ['authorization'],
    connections: ['authorization'],
    agents: ['authorization', 'x-api-key'],
  },
  llm: {
    chat_completions: ['authorization', 'api-key'],
    models: ['authorization', 'api-key'],
  },
}

/** Paths of each surface, longest first: errors before a route is found need the envelope too. */
const PATHS: ReadonlyArray<[prefix: string, surface: Surface]> = [
  ['/v1/chat/completions', 'chat_completions'],
  ['/v1/completions', 'chat_completions'],
  ['/v1/messages/count_tokens', 'messages'],
  ['/v1/messages', 'messages'],
  ['/v1/responses', 'responses'],
  ['/v1/conversations', 'responses'],
  ['/v1/models', 'models'],
  ['/v1/mcp', 'mcp'],
  ['/v1/integrations', 'connections'],
  ['/v1/agents', 'agents'],
  ['/v1/runs', 'agents'],
  ['/internal/agents', 'agents'],
  ['/api', 'management'],
]

/** The surface a path belongs to; `none` for paths that nothing serves. */
export function surfaceOf(path: string): Surface {
  return PATHS.find(([prefix]) => path === prefix || path.startsWith(`${prefix}/`))?.[1] ?? 'none'
}

/** @param hosts lowercase `host[:port]` values of the LLM host (configuration LLM_HOST). */
export function hostKind(host: string | undefined, hosts: readonly string[]): HostKind {
  if (hosts.length === 0) return 'base'
  return host !== undefined && hosts.map(plainHost).includes(plainHost(host)) ? 'llm' : 'base'
}

/** Normalizes a host: a trailing dot and the default port of the scheme do not matter. */
const plainHost = (host: string) =>
  host
    .toLowerCase()
    .replace(/:(80|443)$/, '')
    .replace(/\.(?=:|$)/, '')

/** Headers with the id of the request. Anthropic's SDKs read `request-id`. */
export const requestIdHeaders = (surface: Surface): readonly string[] =>
  surface === 'messages' ? ['x-request-id', 'request-id'] : ['x-request-id']
