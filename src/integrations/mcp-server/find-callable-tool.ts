import { mayUse } from '../../calls/access.ts'
import type { Principal } from '../../identity/principal.ts'
import type { IntegrationCallDeps } from '../call-integration-tool.ts'
import { findTool } from '../catalogue/tool-catalogue.ts'
import { PLATFORM } from '../catalogue/tool-name.ts'
import { EXECUTE_TOOL, executeInput } from '../platform-tools/execute-tool.ts'
import type { PlatformTool } from '../platform-tools/platform-tool.ts'
import { PLATFORM_TOOLS, type PlatformDeps } from '../platform-tools/registry.ts'
import type { CatalogueTool } from '../types.ts'
import { CODES, failure, invalidParams, type RpcFailure } from './json-rpc.ts'
import type { RpcMessage } from './read-message.ts'
import { platformTarget } from './visible-tools.ts'

export type McpDeps = PlatformDeps & IntegrationCallDeps

type Arguments = Record<string, unknown>

/** A request of `tools/call` whose parameters have the form of the protocol. */
export interface ToolCallRequest {
  name: string
  arguments: Arguments
}

/** The tool that a request calls. */
export type CallableTool =
  | { kind: 'platform'; tool: PlatformTool<McpDeps>; arguments: Arguments }
  | {
      kind: 'integration'
      tool: CatalogueTool
      arguments: Arguments
      connectionId: string | null
      /** Whether it is called through `platform_execute_tool`. */
      isDelegated: boolean
    }
  | { kind: 'absent'; reply: RpcFailure }

/** @returns the reply in place of it for parameters that are not those of `tools/call`. */
export function readToolCall({ params }: RpcMessage): ToolCallRequest | RpcFailure {
  const { name, arguments: given = {} } = params
  if (typeof name !== 'string' || name === '') return invalidParams('params.name must be the name of a tool.')
  if (given === null || typeof given !== 'object' || Array.isArray(given)) {
    return invalidParams('params.arguments must be an object.')
  }
  return { name, arguments: given as Arguments }
}

/**
 * Finds a tool by the rights of a caller.
 * @throws the database's error.
 */
export async function findCallableTool(
  deps: McpDeps,
  principal: Principal,
  request: ToolCallRequest,
): Promise<CallableTool> {
  const { name, arguments: given } = request
  const platform = PLATFORM_TOOLS.get(name)
  if (!platform) return integrationTool(deps, principal, request, null)
  if (!mayUse(principal, platformTarget(name))) return absent(unknownTool(name))
  const input = name === EXECUTE_TOOL ? executeInput.safeParse(given) : null
  if (!input?.success) return { kind: 'platform', tool: platform, arguments: given }
  const { name: meant, arguments: inner, connection_id: connectionId = null } = input.data
  const own = PLATFORM_TOOLS.get(meant)
  if (own && meant !== EXECUTE_TOOL) return { kind: 'platform', tool: own, arguments: inner }
  const called = { name: meant, arguments: inner }
  const found = await integrationTool(deps, principal, called, connectionId)
  if (found.kind === 'integration') return { ...found, isDelegated: true }
  // The tool itself answers in its own form that there is none.
  return { kind: 'platform', tool: platform, arguments: given }
}

async function integrationTool(
  deps: McpDeps,
  principal: Principal,
  { name, arguments: given }: ToolCallRequest,
  connectionId: string | null,
): Promise<Exclude<CallableTool, { kind: 'platform' }>> {
  if (name.startsWith(`${PLATFORM}_`)) return absent(unknownTool(name))
  const found = await findTool(deps, principal, name)
  if (found.kind === 'tool') {
    return { kind: 'integration', tool: found.tool, arguments: given, connectionId, isDelegated: false }
  }
  return absent(found.kind === 'disabled' ? disabledTool(name) : unknownTool(name))
}

const absent = (reply: RpcFailure) => ({ kind: 'absent', reply }) as const

/** Unknown, forbidden and unapproved tools have the same reply (interface: Errors, MCP gateway). */
export const unknownTool = (name: string): RpcFailure =>
  invalidParams(`There is no tool named ${name.slice(0, 128)}.`, 'unknown_tool')

export const disabledTool = (name: string): RpcFailure =>
  failure({
    code: CODES.methodNotFound,
    message: `The tool ${name.slice(0, 128)} is switched off.`,
    auditCode: 'tool_disabled',
  })
