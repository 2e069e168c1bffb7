import { createHash, createHmac, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** An account at the provider. */
export interface Account {
  sub: string
  email?: string
  email_verified?: boolean | string
}

/** How the provider misbehaves; each lasts until it is changed. */
export interface ProviderFaults {
  /** Claims in place of those of the id token. */
  claims?: Record<string, unknown>
  /** How the id token is signed: with nothing, with the public key as a secret, or with a key that is not published. */
  signature?: 'none' | 'public_key_as_secret' | 'other_key'
  /** Answer of the token endpoint in place of tokens. */
  token?: 'error' | 'server_fault' | 'endless'
  /** Refuses the person. */
  denies?: boolean
  /** Members in place of those of the metadata. */
  metadata?: Record<string, unknown>
  /** Issuer in the return (RFC 9207). */
  iss?: string
}

interface Grant {
  account: Account
  clientId: string
  redirectUri: string
  challenge: string
  nonce: string | null
  authTime: number
}

const encoded = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')

/**
 * An identity provider: discovery, keys, authorization endpoint, token endpoint with PKCE and client authentication, and userinfo
 * (https://openid.net/specs/openid-connect-core-1_0.html). Whoever comes to it is signed in as `account`.
 */
export class IdentityProvider {
  readonly client = { id: 'gateway', secret: `canary-${randomBytes(12).toString('hex')}` }
  account: Account
  faults: ProviderFaults = {}
  /** Whether the address is in the id token, or only where the access token leads. */
  hasAddressInToken = true
  /** Seconds since the epoch at which the person proved who it is, where it is not asked again. */
  provedAt: number | null = null
  /** The parameters of each request to the authorization endpoint. */
  readonly requests: URLSearchParams[] = []
  readonly #server = createServer((request, response) => this.#answer(request, response))
  readonly #codes = new Map<string, Grant>()
  readonly #access = new Map<string, Account>()
  #key = newKey()

  constructor(account: Account) {
    this.account = account
  }

  async start(): Promise<void> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
  }

  get issuer(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  async stop(): Promise<void> {
    this.#server.close()
    this.#server.closeAllConnections()
    await once(this.#server, 'close')
  }

  /** Signs with another key from now on, and publishes only that one. */
  rotateKey(): void {
    this.#key = newKey()
  }

  /** What a browser does at the provider: it opens the page, and is sent back. @returns the address to which. */
  async visit(address: string): Promise<string> {
    const answer = await fetch(address, { redirect: 'manual' })
    await answer.body?.cancel()
    return answer.headers.get('location') ?? ''
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const url = new URL(request.url ?? '', this.issuer)
    const json = (value: unknown, status = 200) => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value))
    }
    switch (url.pathname) {
      case '/.well-known/openid-configuration':
        json({ ...this.#metadata(), ...this.faults.metadata })
        return
      case '/keys':
        json({ keys: [this.#key.jwk] })
        return
      case '/authorize':
        response.writeHead(302, { location: this.#authorize(url.searchParams) }).end()
        return
      case '/token':
        this.#token(request, json, response)
        return
      case '/userinfo':
        json(this.#access.get(request.headers.authorization?.replace('Bearer ', '') ?? '') ?? {}, 200)
        return
      default:
        json({ error: 'not_found' }, 404)
    }
  }

  #metadata() {
    const { issuer } = this
    return {
      issuer,
      authorization_endpoint: `${issuer}/authorize`,
      token_endpoint: `${issuer}/token`,
      jwks_uri: `${issuer}/keys`,
      userinfo_endpoint: `${issuer}/userinfo`,
      response_types_supported: ['code'],
      subject_types_supported: ['public'],
      id_token_signing_alg_values_supported: ['RS256'],
      code_challenge_methods_supported: ['S256'],
      authorization_response_iss_parameter_supported: true,
    }
  }

  /** @returns the address that the browser is sent back to. */
  #authorize(parameters: URLSearchParams): string {
    this.requests.push(parameters)
    const back = new URL(parameters.get('redirect_uri') ?? '')
    back.searchParams.set('state', parameters.get('state') ?? '')
    back.searchParams.set('iss', this.faults.iss ?? this.issuer)
    if (this.faults.denies) {
      back.searchParams.set('error', 'access_denied')
      back.searchParams.set('error_description', '<img src=x onerror=alert(1)>')
      return back.href
    }
    const code = randomBytes(16).toString('base64url')
    const now = Math.floor(Date.now() / 1_000)
    this.#codes.set(code, {
      account: this.account,
      clientId: parameters.get('client_id') ?? '',
      redirectUri: parameters.get('redirect_uri') ?? '',
      challenge: parameters.get('code_challenge') ?? '',
      nonce: parameters.get('nonce'),
      authTime: parameters.get('prompt') === 'login' ? now : (this.provedAt ?? now),
    })
    back.searchParams.set('code', code)
    return back.href
  }

  async #token(
    request: IncomingMessage,
    json: (value: unknown, status?: number) => void,
    response: ServerResponse,
  ): Promise<void> {
    let text = ''
    for await (const part of request) text += String(part)
    const { token } = this.faults
    if (token === 'error') return json({ error: 'invalid_grant' }, 400)
    if (token === 'server_fault') return json({ error: 'server_error' }, 503)
    if (token === 'endless') {
      response.writeHead(200, { 'content-type': 'application/json' })
      const timer = setInterval(() => response.write(' '.repeat(64 * 1024)), 1)
      response.on('close', () => clearInterval(timer))
      return
    }
    const sent = new URLSearchParams(text)
    const code = sent.get('code') ?? ''
    const grant = this.#codes.get(code)
    this.#codes.delete(code)
    if (!this.#isClient(request.headers.authorization ?? '')) return json({ error: 'invalid_client' }, 401)
    const challenge = createHash('sha256')
      .update(sent.get('code_verifier') ?? '')
      .digest('base64url')
    const fits =
      grant?.clientId === this.client.id &&
      grant.redirectUri === sent.get('redirect_uri') &&
      grant.challenge === challenge
    if (!grant || !fits) return json({ error: 'invalid_grant' }, 400)
    const access = randomBytes(16).toString('base64url')
    this.#access.set(access, grant.account)
    json({ access_token: access, token_type: 'Bearer', expires_in: 60, id_token: this.#idToken(grant) })
  }

  /** Name and secret are form-encoded first (RFC 6749, 2.3.1). */
  #isClient(authorization: string): boolean {
    const text = Buffer.from(authorization.replace('Basic ', ''), 'base64').toString()
    const [id = '', secret = ''] = text.split(':').map(decodeURIComponent)
    return id === this.client.id && secret === this.client.secret
  }

  #idToken({ account, nonce, authTime }: Grant): string {
    const now = Math.floor(Date.now() / 1_000)
    const { sub, ...address } = account
    const claims = {
      ...{ iss: this.issuer, aud: this.client.id, sub, iat: now, exp: now + 60, nonce, auth_time: authTime },
      ...(this.hasAddressInToken && address),
      ...this.faults.claims,
    }
    const { signature } = this.faults
    const { kid, privateKey, publicPem } = this.#key
    const alg = signature === 'none' ? 'none' : signature === 'public_key_as_secret' ? 'HS256' : 'RS256'
    const signed = `${encoded({ alg, kid, typ: 'JWT' })}.${encoded(claims)}`
    if (signature === 'none') return `${signed}.`
    if (signature === 'public_key_as_secret')
      return `${signed}.${createHmac('sha256', publicPem).update(signed).digest('base64url')}`
    const key = signature === 'other_key' ? newKey().privateKey : privateKey
    return `${signed}.${sign('sha256', Buffer.from(signed), key).toString('base64url')}`
  }
}

function newKey(): { kid: string; privateKey: KeyObject; publicPem: string; jwk: object } {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const kid = randomBytes(6).toString('hex')
  const publicPem = String(publicKey.export({ type: 'spki', format: 'pem' }))
  return {
    kid,
    privateKey,
    publicPem,
    jwk: { ...publicKey.export({ format: 'jwk' }), kid, use: 'sig', alg: 'RS256' },
  }
}
