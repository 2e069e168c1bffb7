import { mkdirSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createRequire } from 'node:module'
import { join, resolve } from 'node:path'
import { inheritedEnvironment } from '../../node/inherited-environment.ts'
import { listenOnLoopback, type RunningServer, sendJson } from '../../node/loopback-server.ts'
import { EverythingServer } from './everything-server.ts'
import { StdioBridge } from './stdio-bridge.ts'
import { TicketService } from './ticket-service.ts'

export interface IntegrationUpstreamOptions {
  port: number
  /** Folder for the file of the memory server. */
  folder: string
  /** The bearer token of the memory server. */
  memoryToken: string
  /** The key of the ticket service. */
  ticketKey: string
}

/**
 * Starts the upstreams of the demo integrations on loopback: `/everything/mcp` and `/memory/mcp`, the reference servers of
 * the Model Context Protocol, and `/tickets`, an API with an OpenAPI document. Each starts with its first request.
 */
export async function startIntegrationUpstreams(options: IntegrationUpstreamOptions): Promise<RunningServer> {
  mkdirSync(options.folder, { recursive: true })
  const everything = new EverythingServer()
  const memory = new StdioBridge([process.execPath, memoryServer()], {
    ...inheritedEnvironment(),
    MEMORY_FILE_PATH: resolve(join(options.folder, 'memory.jsonl')),
  })
  const tickets = new TicketService(options.ticketKey)
  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const address = request.url ?? '/'
    const [path = ''] = address.split('?', 1)
    if (path === '/everything/mcp') return everything.handle(request, response)
    if (path === '/memory/mcp') {
      if (request.headers.authorization === `Bearer ${options.memoryToken}`)
        return memory.handle(request, response)
      response.setHeader('www-authenticate', 'Bearer error="invalid_token"')
      return sendJson(response, 401, { error: 'the token is missing or wrong' })
    }
    if (!path.startsWith('/tickets/')) return sendJson(response, 404, { error: 'not found' })
    const url = `http://127.0.0.1:${listening.port}/tickets`
    return tickets.handle(address.slice('/tickets'.length), url, request, response)
  }
  const listening = await listenOnLoopback(options.port, handle)
  const close = async () => {
    memory.stop()
    await listening.close()
  }
  return { port: listening.port, url: listening.url, close }
}

/** The package names its program, and no module. */
const memoryServer = (): string =>
  join(
    createRequire(import.meta.url).resolve('@modelcontextprotocol/server-memory/package.json'),
    '../dist/index.js',
  )
