import { Hono } from 'hono'
import type { AppContext, AppEnv } from '../context.ts'
import { RESOURCE_METADATA_PATH } from '../mcp-gate.ts'
import { ownOrigin } from '../own-origin.ts'

/**
 * The metadata of the MCP endpoint (RFC 9728; interface: MCP gateway), public. Every other path below `/.well-known` is not
 * found: a document about an authorization server would make clients start a flow that nothing here ends.
 */
export const wellKnownRoutes = new Hono<AppEnv>()
  .get(RESOURCE_METADATA_PATH, protectedResource)
  .get(`${RESOURCE_METADATA_PATH}/v1/mcp`, protectedResource)

function protectedResource(context: AppContext): Response {
  const base = ownOrigin(context)
  return context.json({
    resource: `${base}/v1/mcp`,
    bearer_methods_supported: ['header'],
    // A placeholder: keys are made in the web terminal, and no authorization server is hosted (interface, Authentication 7).
    authorization_servers: [base],
  })
}
