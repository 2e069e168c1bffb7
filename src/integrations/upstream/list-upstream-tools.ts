import { z } from 'zod'
import type { UpstreamCredential, UpstreamProtocol } from '../types.ts'
import type { UpstreamDeps } from './call-upstream.ts'
import { type McpSession, openMcpSession } from './mcp-session.ts'
import { UpstreamError } from './upstream-fetch.ts'

/** Limits of one catalogue. A caller's list has the tools of all its integrations, and the isolate has 128 MB. */
export const MOST_TOOLS = 2_000
const MOST_PAGES = 200
const MOST_BYTES = 16 * 1024 * 1024
/** Milliseconds for the whole list. */
const TIME_LIMIT_MS = 10_000

/** Each tool is checked by itself, so that a malformed one does not hide the others. */
const toolsPage = z.looseObject({
  tools: z.array(z.unknown()),
  nextCursor: z.string().max(10_000).nullish(),
})

export interface UpstreamTools {
  /** As the upstream sent them, unchecked. */
  tools: unknown[]
  protocol: UpstreamProtocol
}

/**
 * Reads the tools of an MCP server, page after page, and which protocol it speaks.
 * @throws UpstreamError, also for a server with more tools than a catalogue may have; CredentialsUnavailable.
 */
export async function listUpstreamTools(
  deps: UpstreamDeps,
  url: string,
  credential: UpstreamCredential,
): Promise<UpstreamTools> {
  const limit = new AbortController()
  const timer = setTimeout(() => limit.abort(tookTooLong()), TIME_LIMIT_MS)
  try {
    const session = await openMcpSession({
      url,
      allow: deps.configuration.EGRESS_ALLOW,
      credential,
      protocol: null,
      mostBytes: MOST_BYTES,
      timeLimit: TIME_LIMIT_MS,
      signal: limit.signal,
    })
    try {
      return { tools: await readPages(session, limit.signal), protocol: session.protocol }
    } catch (error) {
      throw session.failureOf(error)
    } finally {
      deps.waitUntil(session.close())
    }
  } finally {
    clearTimeout(timer)
  }
}

async function readPages({ client }: McpSession, signal: AbortSignal): Promise<unknown[]> {
  const tools: unknown[] = []
  let cursor: string | undefined
  for (let pages = 0; pages < MOST_PAGES; pages++) {
    const params = cursor === undefined ? {} : { cursor }
    const page = await client.request({ method: 'tools/list', params }, toolsPage, {
      signal,
      timeout: TIME_LIMIT_MS,
    })
    tools.push(...page.tools)
    if (tools.length > MOST_TOOLS) {
      const message = `The upstream has more than ${MOST_TOOLS} tools, which is the limit of an integration.`
      throw new UpstreamError(message)
    }
    if (!page.nextCursor || page.nextCursor === cursor) return tools
    cursor = page.nextCursor
  }
  throw new UpstreamError(`The upstream lists its tools on more than ${MOST_PAGES} pages.`)
}

const tookTooLong = () =>
  new UpstreamError(`The upstream did not list its tools within ${TIME_LIMIT_MS / 1_000} seconds.`)
