import { randomUUID } from 'node:crypto'

interface NangoConnection {
  connection_id: string
  provider_config_key: string
  end_user: { id: string }
  credentials: Record<string, unknown>
}

/**
 * A stand-in for Nango's HTTP API (nango.dev/docs/reference/backend/http-api): connect sessions, the list of connections, a
 * connection with its credentials, and its deletion.
 */
export class NangoStandIn {
  readonly key = `nango-secret-${randomUUID()}`
  readonly origin: string
  readonly requests: string[] = []
  /** In place of the answers of every path. */
  fault: Response | null = null
  /** Id of a connection that is not deleted. */
  refused: string | undefined = undefined
  /** No connection's tokens can be renewed any more. */
  isExhausted = false
  /** How often a client had tokens renewed before their end. Each time there is a new access token. */
  forced = 0
  readonly #connections: NangoConnection[] = []
  #sessions: Array<{ endUserId: string; integrations: string[] }> = []

  constructor(origin: string) {
    this.origin = origin
  }

  /** The person finishes the last session. @returns the id of the connection. */
  finish(credentials: Record<string, unknown>): string {
    const session = this.#sessions.at(-1)
    if (!session) throw new Error('no connect session')
    const connection = {
      connection_id: randomUUID(),
      provider_config_key: session.integrations[0] ?? '',
      end_user: { id: session.endUserId },
      credentials,
    }
    this.#connections.push(connection)
    return connection.connection_id
  }

  async handle(request: Request): Promise<Response> {
    const url = new URL(request.url)
    this.requests.push(`${request.method} ${url.pathname}${url.search}`)
    if (this.fault) return this.fault.clone() as Response
    if (request.headers.get('authorization') !== `Bearer ${this.key}`) return error(401, 'unauthorized')
    if (request.method === 'POST' && url.pathname === '/connect/sessions') {
      const body = (await request.json()) as { end_user: { id: string }; allowed_integrations: string[] }
      this.#sessions = [
        ...this.#sessions,
        { endUserId: body.end_user.id, integrations: body.allowed_integrations },
      ]
      const token = `nango_connect_session_${randomUUID()}`
      const data = {
        token,
        connect_link: `https://connect.nango.example/?session_token=${token}`,
        expires_at: new Date(Date.now() + 30 * 60_000).toISOString(),
      }
      return Response.json({ data }, { status: 201 })
    }
    if (request.method === 'GET' && url.pathname === '/connections') return this.#list(url)
    const id = /^\/connections\/([^/]+)$/.exec(url.pathname)?.[1]
    if (id !== undefined && id === this.refused) return error(500, 'server_error')
    const found = this.#connections.findIndex(
      (each) =>
        each.connection_id === id && each.provider_config_key === url.searchParams.get('provider_config_key'),
    )
    const connection = this.#connections[found]
    if (!connection) return error(404, 'not_found')
    if (request.method === 'DELETE') {
      this.#connections.splice(found, 1)
      return Response.json({ success: true })
    }
    if (this.isExhausted) return error(424, 'connection_refresh_exhausted')
    if (url.searchParams.get('force_refresh') === 'true') {
      this.forced++
      connection.credentials = { ...connection.credentials, access_token: `nango-access-${randomUUID()}` }
    }
    return Response.json({ id: 1, ...connection, provider: 'demo', metadata: {}, errors: [] })
  }

  #list(url: URL): Response {
    const connections = this.#connections
      .filter(({ end_user: { id } }) => id === url.searchParams.get('endUserId'))
      .map(({ credentials: _credentials, ...rest }, index) => ({ id: index, ...rest, errors: [] }))
    return Response.json({ connections })
  }
}

const error = (status: number, code: string) => Response.json({ error: { code, message: code } }, { status })
