import type { CatalogueTool } from '../../integrations/types.ts'
/** An integration in the `tools` of a request (interface: Responses; the official type is `Mcp` of `openai`). */
export interface McpEntry {
  /** The public id of the integration. */
  label: string
  /** Names of tools, as the integration or as this service has them; null for all. */
  allowed: readonly string[] | null
  /** Whether the tools are restricted to those whose definition calls them read-only. */
  isReadOnly: boolean
  approval: ApprovalChoice
  /** The connection to use; null to resolve one. */
  connectionId: string | null
  /** Whether the tools are searched, and not listed to the model. */
  isDeferred: boolean
  /** Place of the entry in the request, for errors. */
  place: string
}

/** The calls that the request wants to approve. */
export interface ApprovalChoice {
  /** The choice for tools that neither list names. */
  others: 'always' | 'never'
  always: ToolFilter
  never: ToolFilter
}

/** A set of tools. */
export interface ToolFilter {
  names: readonly string[]
  /** Whether tools that only read are in the list. */
  readOnly: boolean
}

/** A tool of an integration that a response offers to its model. Plain data, stored with the request. */
export interface OfferedTool {
  tool: CatalogueTool
  /** The connection that the request names; null to resolve one. */
  connectionId: string | null
  /** Whether a call ends the response with a request for approval. */
  needsApproval: boolean
}

/** The integrations in which a search finds tools, as the request names them. */
export interface SearchScope {
  entries: readonly McpEntry[]
}

/** A call that the caller has approved. Plain data. */
export interface ApprovedCall {
  /** Id of the request for approval, which is used for one call. */
  requestId: string
  /** The name under which the model calls the tool. */
  name: string
  /** The public id of the integration. */
  server: string
  /** JSON, as the model wrote it. */
  arguments: string
}

/** The stored form of a request's tools of integrations. */
export interface StoredTools {
  offered: OfferedTool[]
  search: SearchScope | null
}
