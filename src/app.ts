import { Hono, type MiddlewareHandler } from 'hono'
import { createDeps } from './deps.ts'
import type { AppEnv } from './http/context.ts'
import { renderError } from './http/errors.ts'
import { withKnownCallers } from './http/known-callers.ts'
import { admission } from './http/middleware/admission.ts'
import { audit } from './http/middleware/audit.ts'
import { authenticate } from './http/middleware/authenticate.ts'
import { crossOrigin } from './http/middleware/cross-origin.ts'
import { limitDeclaredLength } from './http/middleware/declared-length.ts'
import { drainBody } from './http/middleware/drain-body.ts'
import { requestContext } from './http/middleware/request-context.ts'
import { requireEntitlement } from './http/middleware/require-entitlement.ts'
import { requireResponseScope, requireScope } from './http/middleware/require-scope.ts'
import { agentRoutes } from './http/routes/agents.ts'
import { connectPageRoutes } from './http/routes/connect-pages.ts'
import { connectionRoutes } from './http/routes/connections.ts'
import { conversationRoutes } from './http/routes/conversations.ts'
import { deliveryRoutes } from './http/routes/deliveries.ts'
import { managementRoutes } from './http/routes/management/management.ts'
import { mcpRoutes } from './http/routes/mcp.ts'
import { chatCompletionRoutes, messageRoutes } from './http/routes/model-calls.ts'
import { modelRoutes } from './http/routes/models.ts'
import { responseSocketRoutes } from './http/routes/response-sockets.ts'
import { responseRoutes } from './http/routes/responses.ts'
import { runRoutes } from './http/routes/runs.ts'
import { webhookRoutes } from './http/routes/webhooks.ts'
import { wellKnownRoutes } from './http/routes/well-known.ts'
import { requireServedHost, unknownRoute } from './http/unknown-route.ts'

/** The API at a glance: the middleware of every request, in order, and the mounted routes. */
export const app = new Hono<AppEnv>({
  // A slash at the end of a path makes no difference.
  strict: false,
})

app.use(drainBody, requestContext(createDeps), crossOrigin, requireServedHost)
app.onError(renderError)
app.notFound((context) => renderError(unknownRoute(app, context), context))

// Coding agents request it without a key, to test the connection.
app.on(['GET', 'HEAD'], '/api/hello', (context) => context.body(null, 200))
app.get('/health', (context) => context.json({ status: 'ok' }))

app.route('/', wellKnownRoutes)
app.route('/api', managementRoutes)
app.route('/', connectPageRoutes)
// Deliveries of QStash, which signs them.
app.route('/internal', deliveryRoutes)
app.route('/', webhookRoutes)

/** Routes that admit their calls themselves, because what is called depends on the body. */
const ADMITTING = new Set([
  'POST /v1/chat/completions',
  'POST /v1/completions',
  'POST /v1/messages',
  'POST /v1/messages/count_tokens',
  'POST /v1/responses',
  'POST /v1/responses/compact',
  'POST /v1/mcp',
])

const SERVED = [
  chatCompletionRoutes,
  messageRoutes,
  responseSocketRoutes,
  conversationRoutes,
  modelRoutes,
  mcpRoutes,
]

for (const routes of SERVED) {
  mount(routes, [admission({ usesCatalogue: routes === modelRoutes }), requireScope('models')])
}
mount(responseRoutes, [admission(), requireResponseScope])
for (const routes of [agentRoutes, runRoutes]) mount(routes, [admission(), requireScope('agents')])
mount(connectionRoutes, [admission(), requireScope('mcp'), requireEntitlement('personal_api_key_access')])

/** Mounts routes behind the audit and the key. @param afterKey what admits a call, for routes that do not do it themselves. */
function mount(routes: Hono<AppEnv>, afterKey: MiddlewareHandler<AppEnv>[]): void {
  // A validator is a route of its own before its handler: mount each path once.
  const mounted = new Map(routes.routes.map((route) => [`${route.method} ${route.path}`, route]))
  for (const [name, { method, path }] of mounted) {
    app.on(method, path, audit, limitDeclaredLength, authenticate)
    if (ADMITTING.has(name)) continue
    for (const middleware of afterKey) app.on(method, path, middleware)
  }
  app.route('/', routes)
}

/** The API, with the short path of calls of models. */
export const entry = withKnownCallers(app, createDeps)
