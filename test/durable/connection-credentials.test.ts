import { evictDurableObject, runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { configurationOf, createDatabase } from '../../src/deps.ts'
import { reportRefused, upstreamCredentialOf } from '../../src/integrations/brokers/credentials.ts'
import { renewalClient } from '../../src/integrations/brokers/local/renewal-client.ts'
import {
  type Connection,
  CredentialsUnavailable,
  type Integration,
  type UpstreamCredential,
} from '../../src/integrations/types.ts'
import {
  type OAuthCredential,
  openStoredCredential,
  sealStoredCredential,
} from '../../src/integrations/vault/stored-credential.ts'
import { AuthorizationServer } from '../harness/authorization-server.ts'
import { useDatabaseGate } from './database-gate.ts'
import { newCaller, query } from './durable-response-harness.ts'

const HOUR = 3_600_000
const REDIRECT = 'https://gateway.example.com/connect/callback'

const gate = useDatabaseGate()
let servers: AuthorizationServer[] = []
let gated: typeof globalThis.fetch

beforeEach(() => {
  servers = []
  gated = globalThis.fetch
  globalThis.fetch = async (input, init) => {
    const request = new Request(input as string, init)
    const server = servers.find(({ origin }) => request.url.startsWith(`${origin}/`))
    return server ? server.handle(request) : gated(input as string, init)
  }
  vi.spyOn(console, 'log').mockImplementation((line) => gate.errorLog.push(String(line)))
})
afterEach(() => {
  globalThis.fetch = gated
})

const configuration = configurationOf(env)
const deps = () => ({
  configuration,
  clock: Date.now,
  database: createDatabase(configuration),
  renewTokens: renewalClient(env.CONNECTION_CREDENTIALS),
  waitUntil: () => {},
})

interface World {
  server: AuthorizationServer
  integration: Integration
  connection: Connection
  credential(): Promise<UpstreamCredential>
  refused(sent: UpstreamCredential): Promise<boolean>
  stored(): Promise<OAuthCredential>
  row(): Promise<Record<string, unknown>>
  stub(): DurableObjectStub
}

/** An active connection with tokens that a server has issued. */
async function newWorld(options: { rotates?: boolean; expiresIn?: number | null } = {}): Promise<World> {
  const origin = `https://auth-${crypto.randomUUID()}.example.com`
  const client = { client_id: 'client', client_secret: 'secret-of-the-client' }
  const server = new AuthorizationServer({ origin, client, ...options })
  servers.push(server)
  const { principal } = await newCaller()
  const { organizationId, userId } = principal
  const [integrationId, connectionId] = [
    crypto.randomUUID(),
    `conn_${crypto.randomUUID().replaceAll('-', '')}`,
  ]
  const integration: Integration = {
    ...{ id: integrationId, organizationId, slug: 'demo', displayName: 'Demo', description: '', kind: 'mcp' },
    ...{
      url: server.resource,
      authorization: { kind: 'oauth' },
      price: 0,
      disabledTools: [],
      isDisabled: false,
    },
  }
  await query(
    `insert into integrations (id, organization_id, slug, display_name, kind, url, "authorization")
     values ($1, $2, 'demo', 'Demo', 'mcp', $3, '{"kind":"oauth"}')`,
    integrationId,
    organizationId,
    integration.url,
  )
  const first = await issuedCredential(server)
  const owner = { organizationId, connectionId }
  const { sealed, vaultKeyId } = sealStoredCredential(configuration.VAULT_KEYS, owner, first)
  await query(
    `insert into connections (id, organization_id, integration_id, owner_user_id, display_name, broker,
       upstream_connection_id, sealed_credential, vault_key_id, status)
     values ($1, $2, $3, $4, 'Account', 'local', 'local_1', $5, $6, 'active')`,
    connectionId,
    organizationId,
    integrationId,
    userId,
    sealed,
    vaultKeyId,
  )
  const connection: Connection = {
    ...{ id: connectionId, organizationId, integrationId, slug: 'demo', ownerUserId: userId },
    ...{ displayName: 'Account', broker: 'local', upstreamConnectionId: 'local_1', status: 'active' },
    ...{ hint: null, createdAt: new Date() },
  }
  const row = async () => (await query('select * from connections where id = $1', connectionId))[0] ?? {}
  server.tokenRequests.length = 0
  return {
    ...{ server, integration, connection, row },
    credential: () => upstreamCredentialOf(deps(), integration, connection),
    refused: (sent) => reportRefused(deps(), integration, connection, sent, false),
    stored: async () =>
      openStoredCredential(
        configuration.VAULT_KEYS,
        owner,
        String((await row()).sealed_credential),
      ) as OAuthCredential,
    stub: () => env.CONNECTION_CREDENTIALS.getByName(`${organizationId}:${connectionId}`),
  }
}

/** Tokens by the whole exchange of a code, without pages. */
async function issuedCredential(server: AuthorizationServer): Promise<OAuthCredential> {
  const verifier = 'v'.repeat(43)
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier))
  const query_ = new URLSearchParams({
    ...{ response_type: 'code', client_id: 'client', redirect_uri: REDIRECT, resource: server.resource },
    ...{ code_challenge: Buffer.from(digest).toString('base64url'), code_challenge_method: 'S256' },
  })
  const authorized = await server.handle(new Request(`${server.origin}/authorize?${query_}`))
  const code = new URL(authorized.headers.get('location') ?? '').searchParams.get('code') ?? ''
  const basic = Buffer.from('client:secret-of-the-client').toString('base64')
  const answer = await server.handle(
    new Request(`${server.origin}/token`, {
      method: 'POST',
      headers: { authorization: `Basic ${basic}` },
      body: new URLSearchParams({
        ...{ grant_type: 'authorization_code', code, redirect_uri: REDIRECT },
        ...{ code_verifier: verifier, resource: server.resource },
      }),
    }),
  )
  const tokens = (await answer.json()) as Record<string, string | number>
  const expiresIn = tokens.expires_in as number | undefined
  return {
    kind: 'oauth',
    origin: server.origin,
    server: {
      ...{ issuer: server.origin, token_endpoint: `${server.origin}/token` },
      ...{ authorization_endpoint: `${server.origin}/authorize`, response_types_supported: ['code'] },
    },
    client: { client_id: 'client', client_secret: 'secret-of-the-client' },
    resource: server.resource,
    accessToken: String(tokens.access_token),
    refreshToken: String(tokens.refresh_token),
    obtainedAt: Date.now(),
    replacesRefused: false,
    expiresAt: expiresIn === undefined ? null : Date.now() + expiresIn * 1_000,
  }
}

/** Postgres is away from here on. */
const closeGate = async () => {
  gate.mode = 'away'
}

const passTime = (milliseconds: number) => vi.setSystemTime(Date.now() + milliseconds)

/** Whether the upstream takes a credential. */
async function works({ server }: World, { headers }: UpstreamCredential): Promise<boolean> {
  return (await server.handle(new Request(server.resource, { method: 'POST', headers, body: '{}' }))).ok
}

describe('renewal of tokens', () => {
  it('reads a token that is not near its end, and renews it five minutes early', async () => {
    const world = await newWorld()
    const first = await world.credential()
    expect(await works(world, first)).toBe(true)
    passTime(HOUR - 5 * 60_000 - 1_000)
    expect(await world.credential()).toEqual(first)
    expect(world.server.tokenRequests).toEqual([])
    passTime(2_000)
    const second = await world.credential()
    expect(second.headers).not.toEqual(first.headers)
    expect(await works(world, second)).toBe(true)
    expect(world.server.tokenRequests).toMatchObject([
      { grant_type: 'refresh_token', resource: world.server.resource },
    ])
  })

  it('makes one token request for 50 concurrent calls', async () => {
    const world = await newWorld()
    passTime(HOUR)
    const credentials = await Promise.all(Array.from({ length: 50 }, world.credential))
    expect(new Set(credentials.map(({ headers }) => headers.authorization)).size).toBe(1)
    expect(world.server.tokenRequests).toHaveLength(1)
    expect(await works(world, credentials[0] as UpstreamCredential)).toBe(true)
  })

  it('makes one token request for 50 calls whose token was refused, and none for a token that was replaced', async () => {
    const world = await newWorld({ expiresIn: null })
    passTime(HOUR)
    const sent = await world.credential()
    world.server.forgetAccessTokens()
    const reports = await Promise.all(Array.from({ length: 50 }, () => world.refused(sent)))
    expect(new Set(reports)).toEqual(new Set([true]))
    expect(world.server.tokenRequests).toHaveLength(1)
    expect(await works(world, await world.credential())).toBe(true)
    expect(await world.refused(sent)).toBe(true)
    expect(world.server.tokenRequests).toHaveLength(1)
  })

  it('renews a new token that is refused once, however it was obtained, and then marks the connection', async () => {
    for (const age of [0, HOUR]) {
      const world = await newWorld()
      // That of the exchange, or one that was renewed before its end.
      passTime(age)
      const sent = await world.credential()
      const before = world.server.tokenRequests.length
      expect(await world.refused(sent)).toBe(true)
      expect(world.server.tokenRequests).toHaveLength(before + 1)
      const renewed = await world.credential()
      expect(await works(world, renewed)).toBe(true)
      expect(await world.row()).toMatchObject({ status: 'active' })

      expect(await world.refused(renewed)).toBe(false)
      expect(world.server.tokenRequests).toHaveLength(before + 1)
      expect(await world.row()).toMatchObject({ status: 'needs_reauth' })
      await expect(world.credential()).rejects.toThrow(CredentialsUnavailable)
    }
  })

  it('renews again a token that was taken for a while after it was renewed for a refusal', async () => {
    const world = await newWorld()
    expect(await world.refused(await world.credential())).toBe(true)
    passTime(60_000)
    expect(await world.refused(await world.credential())).toBe(true)
    expect(world.server.tokenRequests).toHaveLength(2)
    expect(await works(world, await world.credential())).toBe(true)
  })

  it('stores rotated refresh tokens, and keeps one that is not rotated', async () => {
    for (const rotates of [true, false]) {
      const world = await newWorld({ rotates })
      const before = (await world.stored()).refreshToken
      for (let renewals = 1; renewals <= 3; renewals++) {
        passTime(HOUR)
        expect(await works(world, await world.credential())).toBe(true)
      }
      expect(world.server.tokenRequests).toHaveLength(3)
      expect((await world.stored()).refreshToken === before).toBe(!rotates)
    }
  })
})

describe('a server that refuses', () => {
  it('has the account connected again, and is not called again', async () => {
    const world = await newWorld()
    world.server.revokeGrants()
    passTime(HOUR)
    const outcomes = await Promise.allSettled(Array.from({ length: 5 }, world.credential))
    for (const outcome of outcomes) {
      expect(outcome).toMatchObject({ status: 'rejected', reason: expect.any(CredentialsUnavailable) })
    }
    expect(await world.row()).toMatchObject({ status: 'needs_reauth' })
    expect(world.server.tokenRequests).toHaveLength(1)
    await expect(world.credential()).rejects.toThrow(CredentialsUnavailable)
    expect(world.server.tokenRequests).toHaveLength(1)
  })

  it('is final for a client that it does not know any more', async () => {
    const world = await newWorld()
    world.server.faults = { token: 'invalid_client' }
    passTime(HOUR)
    await expect(world.credential()).rejects.toThrow(CredentialsUnavailable)
    expect(await world.row()).toMatchObject({ status: 'needs_reauth' })
  })
})

describe('a server that fails', () => {
  it.each(['error', 'malformed', 'no_bearer', 'redirect', 'endless', 'throttled'] as const)(
    '%s: the call fails, the connection stays, and later calls succeed',
    async (token) => {
      const world = await newWorld()
      passTime(HOUR)
      world.server.faults = { token }
      await expect(world.credential()).rejects.toMatchObject({
        kind: 'upstream',
        message: expect.not.stringContaining('text-of-the-server'),
      })
      expect(await world.row()).toMatchObject({ status: 'active', credential_version: 1 })
      world.server.faults = {}
      // The server is left alone for some seconds.
      await expect(world.credential()).rejects.toMatchObject({ kind: 'upstream' })
      expect(world.server.tokenRequests).toHaveLength(1)
      passTime(6_000)
      expect(await works(world, await world.credential())).toBe(true)
      expect(gate.errorLog.join()).not.toMatch(/access-|refresh-|secret-of|text-of-the-server/)
    },
  )

  it('does not stop a token that still lives', async () => {
    const world = await newWorld()
    world.server.faults = { token: 'error' }
    passTime(HOUR - 60_000)
    expect(await works(world, await world.credential())).toBe(true)
    passTime(61_000)
    await expect(world.credential()).rejects.toMatchObject({ kind: 'upstream' })
  })
})

describe('Postgres away, and processes that end', () => {
  it('uses renewed tokens that Postgres does not have yet, and stores them later', async () => {
    const world = await newWorld()
    const before = await world.stored()
    passTime(HOUR)
    // The row is read, and the write fails.
    world.server.faults = { beforeToken: closeGate }
    const renewed = await world.credential()
    gate.mode = 'open'
    world.server.faults = {}
    expect(await works(world, renewed)).toBe(true)
    expect(await world.stored()).toEqual(before)

    await evictDurableObject(world.stub())
    expect(await world.credential()).toEqual(renewed)

    expect(world.server.tokenRequests).toHaveLength(1)
    expect((await world.stored()).accessToken).toBe(renewed.secrets[0])
    expect(await world.row()).toMatchObject({ credential_version: 2 })
  })

  it('stores them by the alarm when no call comes', async () => {
    const world = await newWorld()
    passTime(HOUR)
    world.server.faults = { beforeToken: closeGate }
    const renewed = await world.credential()
    gate.mode = 'open'
    expect(await runDurableObjectAlarm(world.stub())).toBe(true)
    expect((await world.stored()).accessToken).toBe(renewed.secrets[0])
  })

  it('fails while the row cannot be read, without a token request', async () => {
    const world = await newWorld()
    passTime(HOUR)
    gate.mode = 'away'
    await expect(world.credential()).rejects.toThrow()
    gate.mode = 'open'
    expect(world.server.tokenRequests).toEqual([])
    expect(await works(world, await world.credential())).toBe(true)
  })

  it('never overwrites a credential that was given meanwhile', async () => {
    const world = await newWorld()
    passTime(HOUR)
    const { id, organizationId } = world.connection
    const given = { ...(await world.stored()), accessToken: 'given-by-hand', expiresAt: Date.now() + HOUR }
    const { sealed } = sealStoredCredential(
      configuration.VAULT_KEYS,
      { organizationId, connectionId: id },
      given,
    )
    world.server.faults = {
      beforeToken: async () =>
        void (await query(
          'update connections set sealed_credential = $2, credential_version = 2 where id = $1',
          id,
          sealed,
        )),
    }
    await world.credential()
    expect((await world.stored()).accessToken).toBe('given-by-hand')
    expect((await world.credential()).secrets[0]).toBe('given-by-hand')
  })

  it('loses only the answer when the object ends before it has it: a server without rotation answers again', async () => {
    for (const rotates of [false, true]) {
      const world = await newWorld({ rotates })
      passTime(HOUR)
      let isFirst = true
      world.server.faults = {
        beforeToken: async () => {
          if (!isFirst) return
          isFirst = false
          // The server takes the refresh token, and the object ends before its answer.
          const [request] = world.server.tokenRequests
          const basic = Buffer.from('client:secret-of-the-client').toString('base64')
          await world.server.handle(
            new Request(`${world.server.origin}/token`, {
              method: 'POST',
              headers: { authorization: `Basic ${basic}` },
              body: new URLSearchParams(request),
            }),
          )
          await runInDurableObject(world.stub(), (_, state) =>
            state.abort('the test ends this object'),
          ).catch(() => {})
        },
      }
      const outcome = await world.credential().catch((error: unknown) => error)
      if (!rotates) expect(await works(world, outcome as UpstreamCredential)).toBe(true)
      else expect(outcome).toBeInstanceOf(CredentialsUnavailable)
      expect((await world.row()).status).toBe(rotates ? 'needs_reauth' : 'active')
    }
  })
})

describe('where a credential is sent', () => {
  it('is the host that it was given for', async () => {
    const world = await newWorld()
    const moved = { ...world.integration, url: 'https://attacker.example.com/mcp' }
    await expect(upstreamCredentialOf(deps(), moved, world.connection)).rejects.toThrow(
      CredentialsUnavailable,
    )
    const other = { ...world.integration, authorization: { kind: 'bearer' as const } }
    await expect(upstreamCredentialOf(deps(), other, world.connection)).rejects.toThrow(
      CredentialsUnavailable,
    )
    const foreign = { ...world.integration, id: crypto.randomUUID() }
    await expect(upstreamCredentialOf(deps(), foreign, world.connection)).rejects.toThrow(
      CredentialsUnavailable,
    )
  })

  it('is none for another organization, a revoked connection, or one whose owner is disabled', async () => {
    const world = await newWorld()
    const stranger = { ...world.connection, organizationId: crypto.randomUUID() }
    await expect(upstreamCredentialOf(deps(), world.integration, stranger)).rejects.toThrow(
      CredentialsUnavailable,
    )
    const { organizationId, ownerUserId, id } = world.connection
    await query(
      'update memberships set disabled_at = now() where organization_id = $1 and user_id = $2',
      organizationId,
      ownerUserId,
    )
    await expect(world.credential()).rejects.toThrow(CredentialsUnavailable)
    await query('update memberships set disabled_at = null where organization_id = $1', organizationId)
    await world.credential()
    await query(`update connections set status = 'revoked' where id = $1`, id)
    await expect(world.credential()).rejects.toThrow(CredentialsUnavailable)
  })
})
