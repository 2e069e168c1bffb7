import { Hono, type MiddlewareHandler } from 'hono'
import { TrieRouter } from 'hono/router/trie-router'
import { createDeps } from './deps.ts'
import type { AppEnv } from './http/context.ts'
import { renderError } from './http/errors.ts'
import { withKnownCallers } from './http/known-callers.ts'
import { admission } from './http/middleware/admission.ts'
import { requireEntitlement } from './http/middleware/require-entitlement.ts'
import { requireResponseScope, requireScope } from './http/middleware/require-scope.ts'
import { readReadiness } from './http/readiness.ts'
import { everyRequest, KEYED_REQUEST, middlewareOf } from './http/request-steps.ts'
import { agentRoutes } from './http/routes/agents.ts'
import { connectPageRoutes } from './http/routes/connect-pages.ts'
import { connectionRoutes } from './http/routes/connections.ts'
import { consoleRoutes } from './http/routes/console.ts'
import { conversationRoutes } from './http/routes/conversations.ts'
import { deliveryRoutes } from './http/routes/deliveries.ts'
import { managementRoutes } from './http/routes/management/management.ts'
import { mcpRoutes } from './http/routes/mcp.ts'
import { chatCompletionRoutes, messageRoutes } from './http/routes/model-calls.ts'
import { modelListRoutes } from './http/routes/models.ts'
import { referencePageRoutes } from './http/routes/reference-pages.ts'
import { responseSocketRoutes } from './http/routes/response-sockets.ts'
import { newResponseRoutes, responseRoutes } from './http/routes/responses.ts'
import { runRoutes } from './http/routes/runs.ts'
import { webhookRoutes } from './http/routes/webhooks.ts'
import { wellKnownRoutes } from './http/routes/well-known.ts'
import { staticFile } from './http/static-file.ts'
import { unknownRoute } from './http/unknown-route.ts'
import { TOOLS_VERSION_HEADER } from './workspace/contract.ts'

/**
 * The API at a glance: the middleware of every request, in order, and the mounted routes.
 * @internal Tests drive the routes without the entry of the Worker.
 */
export const app = new Hono<AppEnv>({
  // A slash at the end of a path makes no difference.
  strict: false,
  // The default one first builds regular expressions, finds that they cannot express these paths, and takes this one.
  router: new TrieRouter(),
})

app.use(...middlewareOf(everyRequest(createDeps)))
app.onError(renderError)
app.notFound((context) => renderError(unknownRoute(app, context), context))

// Coding agents request it without a key, to test the connection.
app.on(['GET', 'HEAD'], '/api/hello', (context) => context.body(null, 200))
app.get('/health', (context) => {
  // A deployment tests a version before it has traffic, and must know which one answered.
  const version = context.env.VERSION?.id
  return context.json({ status: 'ok' }, 200, version === undefined ? {} : { 'x-headgate-version': version })
})
app.get('/health/ready', async (context) => {
  const { failed, degraded, toolsVersion } = await readReadiness(context.get('deps'))
  // A deployment that changes the script of tools must know which version of it answered.
  if (toolsVersion !== null) context.header(TOOLS_VERSION_HEADER, toolsVersion)
  return failed.length === 0
    ? context.json({ status: 'ok', ...(degraded.length > 0 && { degraded }) })
    : context.json({ status: 'unavailable', failed }, 503, { 'retry-after': '5' })
})

app.get('/openapi.json', (context) => staticFile(context))
app.route('/', referencePageRoutes)
app.route('/', consoleRoutes)
app.route('/', wellKnownRoutes)
app.route('/api', managementRoutes)
app.route('/', connectPageRoutes)
// Deliveries of QStash, which signs them.
app.route('/internal', deliveryRoutes)
app.route('/', webhookRoutes)

// These routes admit their calls themselves, because the called model or tool is in the body.
for (const routes of [chatCompletionRoutes, messageRoutes, newResponseRoutes, mcpRoutes]) mount(routes, [])

const scopeOfModels = [admission(), requireScope('models')]
for (const routes of [responseSocketRoutes, conversationRoutes]) mount(routes, scopeOfModels)
mount(modelListRoutes, [admission({ usesCatalogue: true }), requireScope('models')])
mount(responseRoutes, [admission(), requireResponseScope])
for (const routes of [agentRoutes, runRoutes]) mount(routes, [admission()])
mount(connectionRoutes, [admission(), requireScope('mcp'), requireEntitlement('personal_api_key_access')])

/** Mounts routes behind the audit and the key. @param afterKey what admits a call, and checks its key's scope. */
function mount(routes: Hono<AppEnv>, afterKey: MiddlewareHandler<AppEnv>[]): void {
  // A validator is a route of its own before its handler: mount each path once.
  const mounted = new Map(routes.routes.map((route) => [`${route.method} ${route.path}`, route]))
  for (const { method, path } of mounted.values()) {
    app.on(method, [path], ...middlewareOf(KEYED_REQUEST), ...afterKey)
  }
  app.route('/', routes)
}

/** The API, with the short path of calls of models. */
export const entry = withKnownCallers(app, createDeps)
