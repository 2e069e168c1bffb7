import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { sendJson } from '../../node/loopback-server.ts'
import { answerFault } from './answer-fault.ts'
import { type ScriptedServer, type ServerRequest, scriptedServer } from './scripted-server.ts'

type Json = Record<string, unknown>

interface Message {
  id?: string | number
  method?: string
  params?: Json
}

/** A registered server with the requests that it received. */
interface RunningServer {
  script: ScriptedServer
  requests: ServerRequest[]
  sessions: Set<string>
}

const MODERN = '2026-07-28'
const LEGACY = '2025-11-25'
const INFO = { name: 'scripted', version: '1.0.0' }

/**
 * Servers of the Model Context Protocol over streamable HTTP, each under `/mcp/<name>`, in both eras. Tests register what
 * they have and what they do wrong; `npm run dev` does not use them.
 */
export class McpUpstream {
  readonly #servers = new Map<string, RunningServer>()

  /** Answers `PUT`, `GET` and `DELETE /control/mcp/<name>`. @returns status and body. */
  control(method: string | undefined, name: string, body: Buffer): [status: number, body: unknown] {
    const known = this.#servers.get(name)
    if (method === 'PUT') {
      const parsed = scriptedServer.safeParse(JSON.parse(body.toString('utf8')))
      if (!parsed.success) return [400, { error: 'not a server', issues: parsed.error.issues }]
      // Sessions and requests stay, so that a server can change while it runs.
      const { requests = [], sessions = new Set<string>() } = known ?? {}
      this.#servers.set(name, { script: parsed.data, requests, sessions })
      return [200, { name }]
    }
    if (known === undefined) return [404, { error: `no server ${name}` }]
    if (method === 'DELETE') this.#servers.delete(name)
    return [200, { requests: known.requests, sessions: known.sessions.size }]
  }

  /** Answers a request to `/mcp/<name>`. */
  async handle(
    name: string,
    request: IncomingMessage,
    body: Buffer,
    response: ServerResponse,
  ): Promise<void> {
    const server = this.#servers.get(name)
    if (server === undefined) return sendJson(response, 404, { error: 'no such server' })
    const { script, sessions, requests } = server
    if (request.method === 'DELETE') {
      sessions.delete(String(request.headers['mcp-session-id']))
      return sendJson(response, 200, {})
    }
    if (request.method !== 'POST') return sendJson(response, 405, {})
    const message = JSON.parse(body.toString('utf8')) as Message
    const method = message.method ?? ''
    requests.push({ method, params: message.params, headers: request.headers })
    const { requires } = script
    if (requires && request.headers[requires.header.toLowerCase()] !== requires.value) {
      response.setHeader('www-authenticate', 'Bearer error="invalid_token"')
      return sendJson(response, 401, { error: 'unauthorized' })
    }
    const fault = script.faults[method] ?? script.faults['*']
    if (fault && (await answerFault(fault, message.id, response))) return
    if (message.id === undefined) return void response.writeHead(202).end()
    answer(server, request, message, response)
  }
}

function answer(
  server: RunningServer,
  request: IncomingMessage,
  message: Message,
  response: ServerResponse,
): void {
  const { script, sessions } = server
  const meta = message.params?._meta as Json | undefined
  const isModern = meta?.['io.modelcontextprotocol/protocolVersion'] !== undefined
  if (isModern !== (script.era === 'modern')) {
    const code = isModern ? -32601 : -32022
    sendMessage(script, response, 400, errorOf(message, code, 'another era', { supported: [MODERN] }))
    return
  }
  const sessionId = request.headers['mcp-session-id']
  const needsSession = script.era === 'legacy' && script.sessions && message.method !== 'initialize'
  if (needsSession && !sessions.has(String(sessionId))) {
    sendMessage(script, response, 404, errorOf(message, -32001, 'Session not found'))
    return
  }
  if (message.method === 'initialize' && script.sessions) {
    const id = randomUUID()
    sessions.add(id)
    response.setHeader('mcp-session-id', id)
  }
  sendMessage(script, response, 200, replyOf(script, message))
}

function replyOf(script: ScriptedServer, message: Message): Json {
  const { method, params = {} } = message
  const complete = (result: Json) => ({
    jsonrpc: '2.0',
    id: message.id,
    result: script.era === 'modern' ? { resultType: 'complete', ...result } : result,
  })
  const listed = script.era === 'modern' ? { ttlMs: 60_000, cacheScope: 'private' } : {}
  if (method === 'server/discover' && script.era === 'modern') {
    return complete({ supportedVersions: [MODERN], capabilities: { tools: {} }, serverInfo: INFO, ...listed })
  }
  if (method === 'initialize' && script.era === 'legacy') {
    return complete({ protocolVersion: LEGACY, capabilities: { tools: {} }, serverInfo: INFO })
  }
  if (method === 'ping' && script.era === 'legacy') return complete({})
  if (method === 'tools/list') return complete({ ...pageOf(script, params.cursor), ...listed })
  if (method !== 'tools/call') return errorOf(message, -32601, 'Method not found')
  const { name, arguments: given } = params as { name: string; arguments: unknown }
  const result = script.results[name] as (Json & { error?: Json }) | undefined
  if (result?.error) return { jsonrpc: '2.0', id: message.id, error: result.error }
  return complete(result ?? { content: [{ type: 'text', text: JSON.stringify({ name, arguments: given }) }] })
}

function pageOf({ tools, generated, pageSize }: ScriptedServer, cursor: unknown): Json {
  const start = Number(cursor ?? 0)
  const end = Math.min(start + pageSize, tools.length + generated)
  const page = Array.from({ length: Math.max(0, end - start) }, (_, place) => {
    const index = start + place
    return index < tools.length ? tools[index] : generatedTool(index - tools.length)
  })
  return { tools: page, ...(end < tools.length + generated && { nextCursor: String(end) }) }
}

const generatedTool = (number: number) => ({
  name: `generated_${number}`,
  description: `Tool number ${number} of many, with a description of ordinary length.`,
  inputSchema: {
    type: 'object',
    properties: { text: { type: 'string', description: 'A text.' }, count: { type: 'integer' } },
    required: ['text'],
  },
})

const errorOf = ({ id }: Message, code: number, message: string, data?: unknown): Json => ({
  jsonrpc: '2.0',
  id: id ?? null,
  error: { code, message, ...(data !== undefined && { data }) },
})

function sendMessage(script: ScriptedServer, response: ServerResponse, status: number, message: Json): void {
  if (script.transport === 'json' || status !== 200) {
    sendJson(response, status, message)
    return
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.end(`event: message\ndata: ${JSON.stringify(message)}\n\n`)
}
