import { createHash, randomBytes } from 'node:crypto'

/** How the stand-in misbehaves; each lasts until it is changed. */
export interface ServerFaults {
  /** Answer of the token endpoint in place of tokens. */
  token?: 'error' | 'malformed' | 'no_bearer' | 'redirect' | 'endless' | 'invalid_client' | 'throttled' | null
  /** Refuses the consent. */
  denies?: boolean
  /** Another issuer in the redirect (RFC 9207), or none. */
  issuer?: string | null
  /** Answer of the revocation endpoint in place of a revocation. */
  revocation?: 'error' | 'redirect' | 'endless' | null
  /** Called before each token request is answered. */
  beforeToken?: (() => Promise<void>) | null
  /** Called before an issued token is sent. */
  afterToken?: (() => Promise<void>) | null
}

export interface ServerOptions {
  /** The origin of the server, without a slash at the end. */
  origin: string
  registers?: boolean
  /** Members in place of those of the metadata. */
  metadata?: Record<string, unknown>
  /** Members in place of those of the metadata of the resource. */
  resourceMetadata?: Record<string, unknown>
  /** Seconds; null leaves `expires_in` out. */
  expiresIn?: number | null
  rotates?: boolean
  /** Whether it has an endpoint for revocations (RFC 7009). */
  revokes?: boolean
  /** Resource that accepts the tokens, if not this origin. */
  resource?: string
  /** A client that is registered in advance. */
  client?: { client_id: string; client_secret?: string }
}

interface Client {
  client_id: string
  client_secret?: string | undefined
  redirect_uris: string[] | null
  token_endpoint_auth_method: string
}

interface Code {
  clientId: string
  redirectUri: string
  challenge: string
  resource: string | null
  grant: string
}

/**
 * A stand-in for an upstream with its authorization server, on one origin: protected resource metadata (RFC 9728), metadata
 * (RFC 8414), registration (RFC 7591), codes with PKCE (RFC 7636), `iss` (RFC 9207), rotation of refresh tokens with
 * detection of reuse (RFC 9700), and an endpoint `/mcp` that takes the tokens. It consents by itself.
 */
export class AuthorizationServer {
  readonly origin: string
  faults: ServerFaults = {}
  expiresIn: number | null
  /** Each request, as `METHOD /path`. */
  readonly requests: string[] = []
  /** The parameters of each request to the token endpoint. */
  readonly tokenRequests: Array<Record<string, string>> = []
  readonly authorizationRequests: URL[] = []
  /** The parameters of each request to the revocation endpoint, and whether its client was known. */
  readonly revocations: Array<Record<string, string> & { client: string }> = []
  /** The last token that was issued. */
  lastAccessToken = ''
  readonly #options: ServerOptions
  readonly #clients = new Map<string, Client>()
  readonly #codes = new Map<string, Code>()
  /** The grant of each token; refresh tokens that were used stay, so that their reuse is seen. */
  readonly #access = new Map<string, string>()
  readonly #refresh = new Map<string, { grant: string; used: boolean }>()
  readonly #revoked = new Set<string>()
  #made = 0

  constructor(options: ServerOptions) {
    this.#options = options
    this.origin = options.origin
    this.expiresIn = options.expiresIn === undefined ? 3_600 : options.expiresIn
    if (options.client) {
      const method = options.client.client_secret ? 'client_secret_basic' : 'none'
      this.#clients.set(options.client.client_id, {
        ...options.client,
        redirect_uris: null,
        token_endpoint_auth_method: method,
      })
    }
  }

  /** Resource that accepts the tokens. */
  get resource(): string {
    return this.#options.resource ?? `${this.origin}/mcp`
  }

  /** Ends every grant: the next refresh is refused, and access tokens too. */
  revokeGrants(): void {
    for (const { grant } of this.#refresh.values()) this.#revoked.add(grant)
  }

  /** Refuses the access tokens that were sent until now, not their grants. */
  forgetAccessTokens(): void {
    this.#access.clear()
  }

  /** Whether a token of this server can be used. */
  isLive(token: string): boolean {
    const grant = this.#access.get(token)
    return grant !== undefined && !this.#revoked.has(grant)
  }

  async handle(request: Request): Promise<Response> {
    const url = new URL(request.url)
    this.requests.push(`${request.method} ${url.pathname}`)
    const body = Buffer.from(await request.arrayBuffer()).toString()
    switch (url.pathname) {
      case '/.well-known/oauth-protected-resource/mcp':
        return this.#resourceMetadata()
      case '/.well-known/oauth-authorization-server':
        return Response.json(this.#metadata())
      case '/register':
        return this.#register(body)
      case '/authorize':
        return this.#authorize(url)
      case '/token':
        return this.#token(request, new URLSearchParams(body))
      case '/revoke':
        return this.#revoke(request, new URLSearchParams(body))
      case '/mcp':
        return this.#use(request)
      default:
        return new Response(null, { status: 404 })
    }
  }

  #metadata() {
    return {
      issuer: this.origin,
      authorization_endpoint: `${this.origin}/authorize`,
      token_endpoint: `${this.origin}/token`,
      ...(this.#options.registers !== false && { registration_endpoint: `${this.origin}/register` }),
      ...(this.#options.revokes && { revocation_endpoint: `${this.origin}/revoke` }),
      response_types_supported: ['code'],
      grant_types_supported: ['authorization_code', 'refresh_token'],
      code_challenge_methods_supported: ['S256'],
      token_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post', 'none'],
      authorization_response_iss_parameter_supported: true,
      ...this.#options.metadata,
    }
  }

  #resourceMetadata() {
    return Response.json({
      resource: this.resource,
      authorization_servers: [this.origin],
      scopes_supported: ['read', 'write'],
      ...this.#options.resourceMetadata,
    })
  }

  #register(body: string): Response {
    const given = JSON.parse(body) as { redirect_uris?: string[]; token_endpoint_auth_method?: string }
    if (!given.redirect_uris?.length) return oauthError(400, 'invalid_redirect_uri')
    const method = given.token_endpoint_auth_method ?? 'client_secret_basic'
    const client: Client = {
      client_id: `client-${++this.#made}`,
      ...(method !== 'none' && { client_secret: secret('client') }),
      redirect_uris: given.redirect_uris,
      token_endpoint_auth_method: method,
    }
    this.#clients.set(client.client_id, client)
    return Response.json({ ...given, ...client }, { status: 201 })
  }

  /** The page of consent, whose button is already pressed. */
  #authorize(url: URL): Response {
    this.authorizationRequests.push(url)
    const query = Object.fromEntries(url.searchParams)
    const client = this.#clients.get(query.client_id ?? '')
    const redirectUri = query.redirect_uri ?? ''
    const isOwn = client?.redirect_uris === null || client?.redirect_uris.includes(redirectUri)
    if (!client || !isOwn) return new Response('unknown client or redirect_uri', { status: 400 })
    const target = new URL(redirectUri)
    target.searchParams.set('state', query.state ?? '')
    const { issuer } = this.faults
    if (issuer !== null) target.searchParams.set('iss', issuer ?? this.origin)
    const refusal = this.#refusalOf(query)
    if (refusal !== null) {
      target.searchParams.set('error', refusal)
      target.searchParams.set('error_description', 'text-of-the-server')
    } else {
      const code = secret('code')
      this.#codes.set(code, {
        clientId: client.client_id,
        redirectUri,
        challenge: query.code_challenge ?? '',
        resource: query.resource ?? null,
        grant: secret('grant'),
      })
      target.searchParams.set('code', code)
    }
    return new Response(null, { status: 302, headers: { location: target.href } })
  }

  #refusalOf(query: Record<string, string>): string | null {
    if (this.faults.denies) return 'access_denied'
    if (query.response_type !== 'code') return 'unsupported_response_type'
    if (query.code_challenge_method !== 'S256' || !query.code_challenge) return 'invalid_request'
    return query.resource === this.resource ? null : 'invalid_target'
  }

  async #token(request: Request, parameters: URLSearchParams): Promise<Response> {
    const given = Object.fromEntries(parameters)
    this.tokenRequests.push(given)
    await this.faults.beforeToken?.()
    const fault = this.#tokenFault()
    if (fault !== null) return fault
    const client = this.#authenticated(request, given)
    if (client === null) return oauthError(401, 'invalid_client')
    const answer = this.#granted(client, given)
    await this.faults.afterToken?.()
    return answer
  }

  #granted(client: Client, given: Record<string, string>): Response {
    if (given.grant_type === 'authorization_code') return this.#exchange(client, given)
    if (given.grant_type === 'refresh_token') return this.#renew(given)
    return oauthError(400, 'unsupported_grant_type')
  }

  #tokenFault(): Response | null {
    switch (this.faults.token) {
      case 'error':
        return new Response('text-of-the-server', { status: 503 })
      case 'malformed':
        return new Response('{"access_token": 5', { headers: { 'content-type': 'application/json' } })
      case 'no_bearer':
        return Response.json({ access_token: secret('mac'), token_type: 'mac' })
      case 'redirect':
        return new Response(null, { status: 302, headers: { location: 'http://169.254.169.254/' } })
      case 'endless':
        return new Response('x'.repeat(1_000_000), { headers: { 'content-type': 'application/json' } })
      case 'invalid_client':
        return oauthError(401, 'invalid_client')
      case 'throttled':
        return oauthError(429, 'slow_down')
      default:
        return null
    }
  }

  #authenticated(request: Request, given: Record<string, string>): Client | null {
    const basic = /^Basic (.+)$/.exec(request.headers.get('authorization') ?? '')?.[1]
    const [id, password] = basic
      ? Buffer.from(basic, 'base64').toString().split(':').map(decodeURIComponent)
      : [given.client_id, given.client_secret]
    const client = this.#clients.get(id ?? '')
    return client && client.client_secret === password ? client : null
  }

  #exchange(client: Client, given: Record<string, string>): Response {
    const code = this.#codes.get(given.code ?? '')
    this.#codes.delete(given.code ?? '')
    const challenge = createHash('sha256')
      .update(given.code_verifier ?? '')
      .digest('base64url')
    const isValid =
      code !== undefined &&
      code.clientId === client.client_id &&
      code.redirectUri === given.redirect_uri &&
      code.challenge === challenge &&
      (code.resource === null || code.resource === given.resource)
    return isValid ? this.#issue(code.grant, true) : oauthError(400, 'invalid_grant')
  }

  #renew(given: Record<string, string>): Response {
    const token = this.#refresh.get(given.refresh_token ?? '')
    // RFC 9700, section 4.14.2: a refresh token that is used twice has been stolen, perhaps.
    if (token?.used) this.#revoked.add(token.grant)
    if (token === undefined || this.#revoked.has(token.grant)) return oauthError(400, 'invalid_grant')
    const rotates = this.#options.rotates !== false
    if (rotates) token.used = true
    return this.#issue(token.grant, rotates)
  }

  #revoke(request: Request, parameters: URLSearchParams): Response {
    const given = Object.fromEntries(parameters)
    const client = this.#authenticated(request, given)
    this.revocations.push({ ...given, client: client?.client_id ?? 'unknown' })
    const { revocation } = this.faults
    if (revocation === 'error') return new Response('text-of-the-server', { status: 503 })
    if (revocation === 'endless') return new Response('x'.repeat(1_000_000))
    if (revocation === 'redirect') {
      return new Response(null, { status: 302, headers: { location: 'http://169.254.169.254/' } })
    }
    if (client === null) return oauthError(401, 'invalid_client')
    const token = given.token ?? ''
    const grant = this.#refresh.get(token)?.grant ?? this.#access.get(token)
    if (grant !== undefined) this.#revoked.add(grant)
    return new Response(null, { status: 200 })
  }

  #issue(grant: string, withRefresh: boolean): Response {
    const access = secret('access')
    this.#access.set(access, grant)
    this.lastAccessToken = access
    const refresh = withRefresh ? secret('refresh') : null
    if (refresh !== null) this.#refresh.set(refresh, { grant, used: false })
    return Response.json({
      access_token: access,
      token_type: 'Bearer',
      ...(this.expiresIn !== null && { expires_in: this.expiresIn }),
      ...(refresh !== null && { refresh_token: refresh }),
    })
  }

  #use(request: Request): Response {
    const token = /^Bearer (.+)$/.exec(request.headers.get('authorization') ?? '')?.[1]
    const grant = this.#access.get(token ?? '')
    if (grant !== undefined && !this.#revoked.has(grant)) return Response.json({ ok: true })
    const challenge = `Bearer resource_metadata="${this.origin}/.well-known/oauth-protected-resource/mcp"`
    return new Response(null, { status: 401, headers: { 'www-authenticate': challenge } })
  }
}

/** Values that tests search for in answers and logs. */
const secret = (kind: string) => `${kind}-${randomBytes(16).toString('hex')}`

const oauthError = (status: number, error: string) =>
  Response.json({ error, error_description: 'text-of-the-server' }, { status })
