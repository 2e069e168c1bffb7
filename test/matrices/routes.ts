import { app } from '../../src/app.ts'

export type Host = 'base' | 'llm'
/** A family of routes with header forms and an error envelope of its own (interface: Authentication, Errors). */
export type Surface =
  | 'chat_completions'
  | 'messages'
  | 'responses'
  | 'models'
  | 'mcp'
  | 'connections'
  | 'agents'
  | 'management'
  | 'signed'
  | 'open'

/** A registered route as a caller would use it. */
export interface RouteExample {
  method: string
  /** The pattern it is registered under. */
  pattern: string
  /** The pattern with every parameter filled in. */
  path: string
  surface: Surface
  /** Hosts that serve it; elsewhere it is 404. */
  hosts: readonly Host[]
  /** A body that it takes. */
  body?: unknown
  /** Headers that it needs beside `content-type`. */
  headers?: Record<string, string>
  /** Statuses for an admitted caller if the example names a missing resource; 200 by default. */
  letIn?: readonly number[]
}

/** A route that reads a request for a model: what the matrix of refused requests runs over. */
export interface RequestRoute {
  name: ModelRoute['name'] | 'responses' | 'compact'
  path: string
  surface: ModelRoute['surface'] | 'responses'
  hosts: readonly Host[]
  /** A valid request with this text of the user. */
  request(text: string, more?: Record<string, unknown>): Record<string, unknown>
}

/** A route that makes one model call: what the matrices of requests and answers run over. */
export interface ModelRoute {
  name: 'chat completions' | 'completions' | 'messages' | 'count tokens'
  path: string
  surface: 'chat_completions' | 'messages'
  hosts: readonly Host[]
  /** Served by the scripted upstream under this protocol, and another one. */
  model: string
  largeModel: string
  /** Whether it can stream, and whether it costs credits. */
  generates: boolean
  /** A valid request with this text of the user. */
  request(text: string, more?: Record<string, unknown>): Record<string, unknown>
}

const CHAT = {
  surface: 'chat_completions',
  model: 'scripted-chat',
  largeModel: 'scripted-chat-large',
} as const
const MESSAGES = {
  surface: 'messages',
  model: 'scripted-messages',
  largeModel: 'scripted-messages-large',
} as const
const oneMessage = (text: string) => [{ role: 'user', content: text }]

export const MODEL_ROUTES: readonly ModelRoute[] = [
  {
    ...CHAT,
    name: 'chat completions',
    path: '/v1/chat/completions',
    hosts: ['base', 'llm'],
    generates: true,
    request: (text, more) => ({ model: CHAT.model, messages: oneMessage(text), max_tokens: 100, ...more }),
  },
  {
    ...CHAT,
    name: 'completions',
    path: '/v1/completions',
    hosts: ['base', 'llm'],
    generates: true,
    request: (text, more) => ({ model: CHAT.model, prompt: text, max_tokens: 100, ...more }),
  },
  {
    ...MESSAGES,
    name: 'messages',
    path: '/v1/messages',
    hosts: ['base'],
    generates: true,
    request: (text, more) => ({
      model: MESSAGES.model,
      max_tokens: 100,
      messages: oneMessage(text),
      ...more,
    }),
  },
  {
    ...MESSAGES,
    name: 'count tokens',
    path: '/v1/messages/count_tokens',
    hosts: ['base'],
    generates: false,
    request: (text, more) => ({ model: MESSAGES.model, messages: oneMessage(text), ...more }),
  },
]

/** It makes a response in an object of its own, out of as many model calls as it takes. */
export const RESPONSES_ROUTE: RequestRoute & { model: string; largeModel: string } = {
  name: 'responses',
  path: '/v1/responses',
  surface: 'responses',
  hosts: ['base'],
  model: CHAT.model,
  largeModel: CHAT.largeModel,
  request: (text, more) => ({ model: CHAT.model, input: text, max_output_tokens: 100, ...more }),
}

/** It summarizes a conversation by as many model calls as it takes. */
export const COMPACT_ROUTE: RequestRoute = {
  ...RESPONSES_ROUTE,
  name: 'compact',
  path: '/v1/responses/compact',
  request: (text, more) => ({ model: CHAT.model, input: text, ...more }),
}

/** The MCP gateway, with a request that every caller who is let in may make. */
export const MCP_ROUTE = {
  path: '/v1/mcp',
  surface: 'mcp',
  hosts: ['base'],
  body: { jsonrpc: '2.0', id: 1, method: 'ping' },
  headers: { accept: 'application/json, text/event-stream' },
} as const

/** Every route of the app, read from its router, so that a new route cannot be missing here. */
export function registeredRoutes(): Array<{ method: string; pattern: string }> {
  const names = app.routes
    // The router has middleware too, under the method ALL or before its route.
    .filter(({ method }) => method !== 'ALL')
    .map(({ method, path }) => `${method} ${path}`)
  return [...new Set(names)].map((name) => {
    const [method = '', pattern = ''] = name.split(' ')
    return { method, pattern }
  })
}

/** Ids of missing resources: an admitted caller passes authentication and gets 404. */
const PARAMETERS: Record<string, string> = {
  organizationId: '00000000-0000-4000-8000-000000000001',
  userId: '00000000-0000-4000-8000-000000000002',
  groupId: '00000000-0000-4000-8000-000000000003',
  grantId: '00000000-0000-4000-8000-000000000004',
  providerId: '00000000-0000-4000-8000-000000000005',
  policyId: '00000000-0000-4000-8000-000000000006',
  integrationId: '00000000-0000-4000-8000-000000000007',
  agentId: '00000000-0000-4000-8000-000000000008',
  runId: '00000000-0000-4000-8000-000000000009',
  trigger: 'no-such-trigger',
  version: '1',
  callId: 'call_0000000000000000000000',
  keyId: 'nosuchkey',
  modelId: 'no-such-model',
  name: 'personal_api_key_access',
  entitlement: 'personal_api_key_access',
  // Well-formed, but with a wrong MAC, so that it wakes no object.
  responseId: 'resp_0000000000000000000000aaaaaaaaaa',
  conversationId: 'conv_0000000000000000000000',
  itemId: 'msg_0000000000000000000000',
  path: 'notes.txt',
  connectionId: 'conn_0000000000000000000000',
  sessionId: 'nosuchsessio',
  erasureId: 'erasure_0000000000000000000000',
  passkeyId: '00000000-0000-4000-8000-000000000010',
  secret: 'no-such-link',
  file: 'no-such-file.js',
}

const OPEN = new Map([
  ['GET /api/hello', ['base']],
  ['HEAD /api/hello', ['base']],
  ['GET /health', ['base']],
  ['GET /health/ready', ['base']],
  ['GET /openapi.json', ['base']],
  ['GET /docs/api', ['base']],
  ['GET /docs/api/management', ['base']],
  ['GET /docs/api/redoc.js', ['base']],
  ['GET /docs/api/reference.js', ['base']],
  ['GET /docs/api/reference.css', ['base']],
  ['GET /console', ['base']],
  ['GET /console/*', ['base']],
  ['GET /.well-known/oauth-protected-resource', ['base']],
  ['GET /.well-known/oauth-protected-resource/v1/mcp', ['base']],
] as const)

/**
 * Every registered route with an example of its use.
 * @throws Error for a route without a description: give it a surface and an example here.
 */
export function routeExamples(): RouteExample[] {
  return registeredRoutes().map(({ method, pattern }) => {
    const path = fill(pattern)
    const call = MODEL_ROUTES.find((route) => route.path === pattern)
    if (method === 'POST' && call !== undefined) {
      return { method, pattern, path, surface: call.surface, hosts: call.hosts, body: call.request('Hello') }
    }
    if (`${method} ${pattern}` === 'GET /v1/models') {
      return { method, pattern, path, surface: 'models', hosts: ['base', 'llm'] }
    }
    if (pattern.startsWith('/v1/models/')) {
      return { method, pattern, path, surface: 'models', hosts: ['base', 'llm'], letIn: [404] }
    }
    if (pattern === MCP_ROUTE.path) return { ...MCP_ROUTE, method, pattern }
    const open = OPEN.get(`${method} ${pattern}` as 'GET /health')
    if (open !== undefined) return { method, pattern, path, surface: 'open', hosts: open }
    if (/^\/v1\/(responses|conversations)(\/|$)/.test(pattern)) {
      const example = { method, pattern, path, surface: 'responses', hosts: ['base'] } as const
      // The upgrade to a WebSocket, without its header.
      if (method === 'GET' && pattern === RESPONSES_ROUTE.path) return { ...example, letIn: [404] }
      const creates = pattern === RESPONSES_ROUTE.path
      const hasBody = creates || pattern === COMPACT_ROUTE.path
      return hasBody ? { ...example, body: RESPONSES_ROUTE.request('Hello') } : { ...example, letIn: [404] }
    }
    if (pattern.startsWith('/v1/integrations/connections')) {
      const example = { method, pattern, path, surface: 'connections', hosts: ['base'] } as const
      if (method === 'GET') return example
      // None of these connections exists.
      const body = pattern.endsWith('/default') ? { connection_id: 'conn_0' } : {}
      return { ...example, body, letIn: [404] }
    }
    // A file that does not exist.
    if (pattern.startsWith('/console/assets/'))
      return { method, pattern, path, surface: 'open', hosts: ['base'], letIn: [404] }
    // Pages of links that do not exist, or are opened by another site.
    if (pattern.startsWith('/connect/')) {
      return { method, pattern, path, surface: 'open', hosts: ['base'], letIn: [400, 403, 404] }
    }
    // Signed deliveries and webhooks: no key lets in.
    if (pattern.startsWith('/internal/') || pattern.includes('/triggers/:name')) {
      return { method, pattern, path, surface: 'signed', hosts: ['base'], body: {} }
    }
    if (/^\/v1\/(agents|runs)\//.test(pattern)) {
      const example = { method, pattern, path, surface: 'agents', hosts: ['base'] } as const
      if (pattern === '/v1/agents/list') return example
      const body = pattern === '/v1/agents/runs' ? { body: { agentId: PARAMETERS.agentId } } : {}
      return { ...example, ...body, letIn: [404] }
    }
    // The return from an identity provider leads to the page of the sign-in.
    if (pattern === '/api/sign-in/oidc/callback')
      return { method, pattern, path, surface: 'open', hosts: ['base'], letIn: [303] }
    // For anyone, from pages of the gateway.
    if (/^\/api\/(setup|sign-in)(\/|$)/.test(pattern)) {
      const headers = { 'sec-fetch-site': 'same-origin' }
      const example = { method, pattern, path, surface: 'open', hosts: ['base'], headers } as const
      return method === 'GET' ? example : { ...example, letIn: [200, 400], body: {} }
    }
    if (pattern.startsWith('/api/')) {
      const body = method === 'POST' || method === 'PUT' ? { body: {} } : {}
      // The resource of the example does not exist.
      const letIn = [200, 201, 400, 404]
      return { method, pattern, path, surface: 'management', hosts: ['base'], letIn, ...body }
    }
    throw new Error(`${method} ${pattern} has no example in test/matrices/routes.ts`)
  })
}

function fill(pattern: string): string {
  return pattern.replace(/:(\w+)(\{[^}]*\})?/g, (_, name: string) => {
    const value = PARAMETERS[name]
    if (value === undefined) throw new Error(`no value for :${name} of ${pattern} in test/matrices/routes.ts`)
    return value
  })
}
