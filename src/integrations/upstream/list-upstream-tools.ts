import type { JSONRPCMessage } from '@modelcontextprotocol/client'
import * as z from 'zod'
import type { McpServerProtocol, UpstreamCredential } from '../types.ts'
import { MOST_TOOLS } from '../types.ts'
import type { UpstreamDeps } from './call-upstream.ts'
import { type McpSession, openMcpSession } from './mcp-session.ts'
import { UpstreamError } from './upstream-fetch.ts'

const MOST_PAGES = 100
const MOST_BYTES = 16 * 1024 * 1024

/**
 * The client library refuses a list of which one tool is malformed, and all others would be hidden with it. So the list
 * passes it as this member, and each tool is checked by itself later.
 */
const UNCHECKED = 'headgate/unchecked-tools'

const toolsPage = z.looseObject({
  _meta: z.looseObject({ [UNCHECKED]: z.array(z.unknown()) }),
  nextCursor: z.string().max(10_000).nullish(),
})

function withUncheckedTools(message: JSONRPCMessage): JSONRPCMessage {
  const result = 'result' in message ? message.result : null
  if (!result || !Array.isArray(result.tools)) return message
  const _meta = { ...result._meta, [UNCHECKED]: result.tools }
  return { ...message, result: { ...result, tools: [], _meta } } as JSONRPCMessage
}

export interface ListDeps extends UpstreamDeps {
  /** `INTEGRATION_LIST_TIMEOUT_MS`: milliseconds for the whole list. */
  configuration: UpstreamDeps['configuration'] & { INTEGRATION_LIST_TIMEOUT_MS: number }
}

interface UpstreamTools {
  /** Tools as the upstream sent them, unchecked. */
  tools: unknown[]
  protocol: McpServerProtocol
}

/**
 * Reads the tools of an MCP server, page after page, and which protocol it speaks.
 * @throws UpstreamError, also for a server with more tools than a catalogue may have; CredentialsUnavailable.
 */
export async function listUpstreamTools(
  deps: ListDeps,
  url: string,
  credential: UpstreamCredential,
): Promise<UpstreamTools> {
  const timeLimit = deps.configuration.INTEGRATION_LIST_TIMEOUT_MS
  const limit = new AbortController()
  const timer = setTimeout(() => limit.abort(tookTooLong(timeLimit)), timeLimit)
  try {
    const session = await openMcpSession({
      url,
      allow: deps.configuration.EGRESS_ALLOW,
      credential,
      protocol: null,
      mostBytes: MOST_BYTES,
      timeLimit,
      signal: limit.signal,
      prepare: withUncheckedTools,
    })
    try {
      return { tools: await readPages(session, timeLimit, limit.signal), protocol: session.protocol }
    } catch (error) {
      throw session.failureOf(error)
    } finally {
      deps.waitUntil(session.close())
    }
  } finally {
    clearTimeout(timer)
  }
}

async function readPages({ client }: McpSession, timeout: number, signal: AbortSignal): Promise<unknown[]> {
  const tools: unknown[] = []
  let cursor: string | undefined
  for (let pages = 0; pages < MOST_PAGES; pages++) {
    const params = cursor === undefined ? {} : { cursor }
    const page = await client.request({ method: 'tools/list', params }, toolsPage, {
      signal,
      timeout,
    })
    tools.push(...page._meta[UNCHECKED])
    if (tools.length > MOST_TOOLS) {
      const message = `The upstream has more than ${MOST_TOOLS} tools, which is the limit of an integration.`
      throw new UpstreamError(message)
    }
    if (!page.nextCursor || page.nextCursor === cursor) return tools
    cursor = page.nextCursor
  }
  throw new UpstreamError(`The upstream lists its tools on more than ${MOST_PAGES} pages.`)
}

const tookTooLong = (milliseconds: number) =>
  new UpstreamError(`The upstream did not list its tools within ${milliseconds} ms.`)
