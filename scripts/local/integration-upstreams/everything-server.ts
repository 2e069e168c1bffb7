import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import { sendJson } from '../../node/loopback-server.ts'

type TransportModule = typeof import('@modelcontextprotocol/sdk/server/streamableHttp.js')

interface EverythingModule {
  createServer(): {
    server: { connect(transport: StreamableHTTPServerTransport): Promise<void> }
    cleanup(sessionId?: string): void
  }
}

const TRANSPORT_MODULE = '@modelcontextprotocol/sdk/server/streamableHttp.js'
const SERVER_MODULE = '@modelcontextprotocol/server-everything/dist/server/index.js'

/** Sessions that clients left open. */
const MOST_SESSIONS = 100

/**
 * The reference server "everything" over streamable HTTP, with a session for each client. The package's own HTTP server
 * would listen on every network interface. Both packages are loaded with the first request.
 */
export class EverythingServer {
  readonly #sessions = new Map<string, StreamableHTTPServerTransport>()

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const id = request.headers['mcp-session-id']
    const known = typeof id === 'string' ? this.#sessions.get(id) : undefined
    if (id !== undefined && known === undefined) return sendJson(response, 404, { error: 'no such session' })
    await (known ?? (await this.#open())).handleRequest(request, response)
  }

  async #open(): Promise<StreamableHTTPServerTransport> {
    const { StreamableHTTPServerTransport: Transport } = (await import(TRANSPORT_MODULE)) as TransportModule
    const { createServer } = (await import(SERVER_MODULE)) as EverythingModule
    const { server, cleanup } = createServer()
    const transport: StreamableHTTPServerTransport = new Transport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => this.#keep(id, transport),
      onsessionclosed: (id) => {
        this.#sessions.delete(id)
        cleanup(id)
      },
    })
    await server.connect(transport)
    return transport
  }

  #keep(id: string, transport: StreamableHTTPServerTransport): void {
    this.#sessions.set(id, transport)
    for (const [oldest, left] of this.#sessions) {
      if (this.#sessions.size <= MOST_SESSIONS) return
      this.#sessions.delete(oldest)
      left.close()
    }
  }
}
