import { DurableObject } from 'cloudflare:workers'
import type { ToolRights } from '../../../src/identity/tool-rights.ts'
import type { SealOpener } from '../../../src/responses/items/sealed-content.ts'
import { ITEM_TYPES } from '../../../src/responses/items/types/item-types.ts'
import type { WebToolDeps } from '../../../src/responses/tools/web/web-tools.ts'
import { webTools } from '../../../src/responses/tools/web/web-tools.ts'
import { DEFAULT_TOOL_RIGHTS } from '../tool-rights.ts'

// A Worker that runs single calls of the web tools, so that they are tested in the runtime without a response around them.

/** A call of a tool. */
export interface WebToolCall {
  tool: string
  arguments: object | string
  web?: ToolRights['web']
  userId?: string
  workspaceId?: string
  limits?: WebToolDeps['limits']
  search?: Partial<WebToolDeps['configuration']>
  /** Milliseconds after which the caller aborts. */
  abortAfter?: number
}

interface Environment {
  WEB_EGRESS_ALLOW: string
  EGRESS_ALLOW: string
  PUBLIC_WEB: Fetcher
}

/** Result of the tool, and its form for a model. */
async function answerOf(call: WebToolCall, environment: Environment) {
  const configuration = {
    WEB_EGRESS_ALLOW: environment.WEB_EGRESS_ALLOW.split(','),
    EGRESS_ALLOW: environment.EGRESS_ALLOW.split(','),
    SEARCH_PROVIDER: 'local' as const,
    SEARCH_PRICE: 0,
    ...call.search,
  }
  const tools = webTools({
    configuration,
    publicNetwork: environment.PUBLIC_WEB,
    browser: null,
    ...(call.limits && { limits: call.limits }),
  })
  const tool = tools.find(({ definition }) => definition.name === call.tool)
  if (!tool) return { tools: tools.map(({ definition }) => definition.name) }
  const abort = new AbortController()
  if (call.abortAfter !== undefined)
    setTimeout(() => abort.abort(new Error('the caller left')), call.abortAfter)
  const result = await tool.run(
    {
      owner: { organizationId: 'org_1', userId: call.userId ?? 'user_1' },
      workspaceId: call.workspaceId ?? 'conv_1',
      responseId: 'resp_1',
      callId: 'call_1',
      arguments: typeof call.arguments === 'string' ? call.arguments : JSON.stringify(call.arguments),
      rights: { ...DEFAULT_TOOL_RIGHTS, ...(call.web && { web: call.web }) },
    },
    abort.signal,
  )
  const item = {
    id: 'x_1',
    type: tool.itemType,
    call_id: 'call_1',
    arguments: '{}',
    ...tool.members,
    ...result.members,
  }
  return { result, model: modelText(tool.itemType, item) }
}

const NOTHING_OPENS: SealOpener = { reasoning: () => null, compaction: () => null }

function modelText(type: string, item: object): unknown {
  const form = ITEM_TYPES.get(type)?.toModel
  if (typeof form !== 'function') return null
  const bytes = new TextEncoder().encode(JSON.stringify(item))
  const { results } = form({ id: 'x_1', type, role: null, callId: 'call_1', bytes }, NOTHING_OPENS)
  return results[0] && JSON.parse(new TextDecoder().decode(results[0])).output
}

/** Fetches an address over the network for pages, or over the one for everything else, without any check. */
async function reached(address: string, network: Fetcher | null): Promise<string> {
  try {
    return `reached ${(await (network ? network.fetch(address) : fetch(address))).status}`
  } catch {
    return 'refused'
  }
}

/** Named in wrangler.toml, and not used here. */
export class Ledger extends DurableObject {}
export class ResponseStream extends DurableObject {}
export class ResponsePool extends DurableObject {}
export class ResponseSockets extends DurableObject {}
export class ConnectionCredentials extends DurableObject {}

// biome-ignore lint/style/noDefaultExport: what the runtime calls for a request
export default {
  async fetch(request, environment) {
    if (new URL(request.url).pathname === '/network') {
      const address = await request.text()
      return Response.json({
        pages: await reached(address, environment.PUBLIC_WEB),
        others: await reached(address, null),
      })
    }
    try {
      return Response.json(await answerOf((await request.json()) as WebToolCall, environment))
    } catch (error) {
      return Response.json({ thrown: error instanceof Error ? error.message : String(error) })
    }
  },
} satisfies ExportedHandler<Environment>
