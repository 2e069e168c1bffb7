/** Types that the parts of this folder exchange: integrations, tools, connections, credentials. */

/** The authorization of calls to an upstream. The secrets are in the connections. */
export type AuthorizationMethod =
  | { kind: 'none' }
  /** `Authorization: Bearer <secret>`. */
  | { kind: 'bearer' }
  /** A header that carries the secret. */
  | { kind: 'header'; header: string }
  /** User name and password (RFC 7617). */
  | { kind: 'basic' }
  /**
   * OAuth 2.1 of a person, with PKCE. Members that are left out are discovered (RFC 9728, RFC 8414) or registered (RFC
   * 7591).
   */
  | {
      kind: 'oauth'
      authorizationServer?: string
      clientId?: string
      scopes?: readonly string[]
    }

export interface Integration {
  id: string
  organizationId: string
  /** The public id (`integration_config_id`). */
  slug: string
  displayName: string
  description: string
  kind: 'mcp' | 'openapi'
  url: string
  authorization: AuthorizationMethod
  /** Micro-credits of a call that was executed. */
  price: number
  /** Names of tools, as the upstream has them. */
  disabledTools: readonly string[]
  isDisabled: boolean
}

/** A tool as an upstream defines it (MCP, Tool), after it was cleaned. All of it is pinned by its hash. */
export interface ToolDefinition {
  name: string
  title?: string
  description?: string
  inputSchema: Record<string, unknown>
  outputSchema?: Record<string, unknown>
  annotations?: Record<string, unknown>
}

/** The serialization of an argument into a request (OpenAPI, Parameter Object, style). */
export interface ParameterBinding {
  place: 'path' | 'query' | 'header' | 'cookie'
  /** The parameter's own name. */
  name: string
  /** Style of lists and objects; `json` for a parameter with a media type. */
  style: 'simple' | 'form' | 'spaceDelimited' | 'pipeDelimited' | 'deepObject' | 'json'
  /** Whether each element is a parameter of its own. */
  explode: boolean
}

/** The conversion of a tool's arguments into a request to an API with an OpenAPI document. */
export interface OperationBinding {
  method: string
  /** Path with `{name}` for each parameter. */
  path: string
  /** Parameters by name of the argument. */
  parameters: Readonly<Record<string, ParameterBinding>>
  /** The argument that is the body, and its media type; absent for an operation without a body. */
  body?: { argument: string; mediaType: string }
}

/**
 * The protocol of an MCP server, found by the refresh of its catalogue, so that a call needs no negotiation. Servers of the
 * legacy era (revisions before 2026-07-28) begin with `initialize`; those without sessions accept calls without it.
 */
export type McpServerProtocol =
  | { era: 'modern'; version: string }
  | { era: 'legacy'; version: string; hasSessions: boolean }

/** A tool that callers see: an approved definition of an enabled tool of an enabled integration. */
export interface CatalogueTool {
  integration: Integration
  /** The name under which callers call it (`tool-name.ts`). */
  name: string
  definition: ToolDefinition
  /** Null for a tool of an MCP server. */
  binding: OperationBinding | null
  /** Null for an operation of an API. */
  protocol: McpServerProtocol | null
  hash: string
}

export type ConnectionStatus = 'pending' | 'active' | 'needs_reauth' | 'revoked'

/** A connection without its credential. */
export interface Connection {
  id: string
  organizationId: string
  integrationId: string
  /** The public id of its integration. */
  slug: string
  /** Null for a connection of the organization. */
  ownerUserId: string | null
  displayName: string
  broker: 'local' | 'nango'
  upstreamConnectionId: string
  status: ConnectionStatus
  hint: string | null
  createdAt: Date
}

/** The credential of a request to an upstream, in clear. Only `upstream/` sends it; other parts redact it. */
export interface UpstreamCredential {
  headers: Readonly<Record<string, string>>
  /** Values that must not occur in anything that is sent to a caller. */
  secrets: readonly string[]
}

export const NO_CREDENTIAL: UpstreamCredential = { headers: {}, secrets: [] }

/** The reason for the choice of a connection (the interface leaves the chain open: MCP gateway, Resolution). */
export type ConnectionChoice = 'explicit' | 'default' | 'active_set' | 'own' | 'group' | 'organization'

/** The connection that a call uses. */
export type ConnectionResolution =
  /** The integration needs none. */
  | { kind: 'none' }
  | {
      kind: 'connection'
      connection: Connection
      chosenBy: ConnectionChoice
      /** Whether others of the active set would have done as well. */
      isOneOfSeveral: boolean
    }
  /** Several would do, and none is preferred. */
  | { kind: 'ambiguous'; candidates: ReadonlyArray<Pick<Connection, 'id' | 'displayName'>> }
  | { kind: 'required' }
  /** The chosen one cannot be used: there is no other account in its place. */
  | { kind: 'unusable'; connection: Connection }
  /** The explicit one does not exist for this caller, or belongs to another integration. */
  | { kind: 'unknown' }

/** A result of a tool (MCP, CallToolResult). Unknown members pass. */
export interface UpstreamToolResult {
  content: ReadonlyArray<Record<string, unknown>>
  structuredContent?: unknown
  isError?: boolean
  _meta?: Record<string, unknown>
  [member: string]: unknown
}

/** The upstream refuses the credential of a connection, or it cannot be renewed. */
export class CredentialsUnavailable extends Error {
  readonly connectionId: string | null

  constructor(connectionId: string | null, options?: ErrorOptions) {
    super('the credentials of the connection are not usable', options)
    this.name = 'CredentialsUnavailable'
    this.connectionId = connectionId
  }
}

/** Limits of one catalogue. A caller's list has the tools of all its integrations, and the isolate has 128 MB. */
export const MOST_TOOLS = 2_000
