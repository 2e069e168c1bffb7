import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { AuthorizationServer, type ServerOptions } from '../harness/authorization-server.ts'
import { Browser, locationOf } from '../harness/browser.ts'
import {
  createUnreadIntegration,
  grantPersonalAccess,
  type ManagedConnection,
} from '../harness/connections.ts'
import { gateway, query } from '../harness/gateway.ts'
import { createIntegration, mcpTool, refreshIntegration, startMcpServer } from '../harness/integrations.ts'
import { sendMcp } from '../harness/mcp.ts'
import { NangoStandIn } from '../harness/nango.ts'
import { jsonOf, send } from '../harness/send.ts'
import { serve } from '../harness/serve.ts'
import { type StartedWorker, startWorker } from '../harness/start-worker.ts'
import { addMember, administrator, bearer, createTenant, type Tenant, uniqueName } from '../harness/tenant.ts'

type Json = Record<string, unknown>

/** Each test takes a server of its own. */
const MOST_SERVERS = 40

let worker: StartedWorker
let nango: NangoStandIn
/** The owner of the connections, for tests that change nothing else of it. */
let shared: Tenant
const ends: Array<() => Promise<void>> = []
const free: Array<{ origin: string; use(server: AuthorizationServer): void }> = []

beforeAll(async () => {
  const hosts: string[] = []
  for (let made = 0; made < MOST_SERVERS; made++) {
    const holder: { server?: AuthorizationServer } = {}
    const { standIn, host, close } = await serve((origin) => ({
      origin,
      handle: async (request: Request) =>
        (await holder.server?.handle(request)) ?? new Response(null, { status: 500 }),
    }))
    hosts.push(host)
    ends.push(close)
    free.push({
      origin: standIn.origin,
      use: (server) => {
        holder.server = server
      },
    })
  }
  const broker = await serve((origin) => new NangoStandIn(origin))
  nango = broker.standIn
  ends.push(broker.close)
  worker = await startWorker({
    EGRESS_ALLOW: [gateway().variables.EGRESS_ALLOW, ...hosts, broker.host].join(','),
    NANGO_URL: nango.origin,
    NANGO_SECRET_KEY: nango.key,
  })
  ends.push(worker.stop)
  shared = await createOwner()
})

afterAll(async () => {
  for (const end of ends) await end()
})

interface World {
  tenant: Tenant
  server: AuthorizationServer
  slug: string
  connection: ManagedConnection
  path: string
  ask: ReturnType<typeof administrator>['ask']
  call: ReturnType<typeof administrator>['call']
}

function newServer(options: Partial<ServerOptions> = {}): AuthorizationServer {
  const place = free.pop()
  if (!place) throw new Error('more servers are needed')
  const server = new AuthorizationServer({ origin: place.origin, ...options })
  place.use(server)
  return server
}

async function createOwner(): Promise<Tenant> {
  const tenant = await createTenant(worker, { credits: 0, models: [] })
  await grantPersonalAccess(worker, tenant)
  return tenant
}

/** A pending connection of a user, whose account is at a server of its own. */
async function createWorld(
  options: Partial<ServerOptions> = {},
  authorization: Json | ((server: AuthorizationServer) => Json) = {},
  more: Record<string, unknown> = {},
  tenant = shared,
): Promise<World> {
  const server = newServer(options)
  const slug = await createUnreadIntegration(worker, tenant, {
    url: server.resource,
    authorization: {
      kind: 'oauth',
      ...(typeof authorization === 'function' ? authorization(server) : authorization),
    },
  })
  const { ask, call } = administrator(worker)
  const connection = await ask<ManagedConnection>('POST', `${tenant.base}/connections`, {
    integration: slug,
    display_name: 'Account',
    user_id: tenant.userId,
    ...more,
  })
  const path = `${tenant.base}/connections/${connection.id}`
  return { tenant, server, slug, connection, path, ask, call }
}

const startLink = async ({ ask, path }: World) =>
  (await ask<{ url: string; expires_at: string }>('POST', `${path}/connect`, {})).url

/** Goes through the pages up to the redirect back from the authorization server. */
async function authorize(link: string, browser = new Browser()) {
  const page = await browser.get(link)
  expect(page.status).toBe(200)
  const begun = await browser.submit(link)
  expect(begun.status).toBe(303)
  const returned = await send(locationOf(begun))
  expect(returned.status).toBe(302)
  return { browser, page, back: locationOf(returned) }
}

const read = ({ ask, path }: World) => ask<ManagedConnection & { connect: unknown }>('GET', path)

const expectPage = (answer: { status: number; text: string }, status: number, title: string) =>
  expect([answer.status, answer.text]).toEqual([status, expect.stringContaining(`<h1>${title}</h1>`)])

describe.concurrent('connecting an account', () => {
  it('discovers, registers, asks the person and stores the tokens sealed', async () => {
    const world = await createWorld()
    expect(world.connection.status).toBe('pending')
    const { browser, page, back } = await authorize(await startLink(world))
    expect(page.text).toContain('Continue only if this is you')
    expect(page.text).not.toContain('<script')
    expect(page.headers['content-security-policy']).toContain("default-src 'none'")
    expect(await read(world)).toMatchObject({
      status: 'pending',
      connect: { status: 'pending', failure: null },
    })

    expectPage(await browser.get(back), 200, 'Connected')

    expect(await read(world)).toMatchObject({
      status: 'active',
      hint: null,
      connect: { status: 'completed' },
    })
    const [request] = world.server.authorizationRequests
    expect(Object.fromEntries(request?.searchParams ?? [])).toMatchObject({
      response_type: 'code',
      code_challenge_method: 'S256',
      resource: world.server.resource,
      scope: 'read write',
      redirect_uri: `${worker.baseUrl}/connect/callback`,
    })
    expect(world.server.tokenRequests).toHaveLength(1)
    const [row] = await query(worker, 'select * from connections where id = $1', [world.connection.id])
    expect(row?.sealed_credential).toMatch(/^e1:v1\./)
    const sessions = await query(worker, 'select * from connect_sessions where connection_id = $1', [
      world.connection.id,
    ])
    expect(JSON.stringify([row, sessions])).not.toMatch(/access-|refresh-|client-[0-9a-f]{32}|code-/)
  })

  it('joins the active set of its owner', async () => {
    const world = await createWorld({}, {}, {}, await createOwner())
    const { browser, back } = await authorize(await startLink(world))
    await browser.get(back)
    const answer = await send(`${worker.baseUrl}/v1/integrations/connections`, {
      headers: bearer(world.tenant.key),
    })
    expect(jsonOf(answer).data).toMatchObject([{ id: world.connection.id, is_preferred: true }])
  })

  it('uses a configured client, whose secret goes only to the server that the integration names', async () => {
    const client = { client_id: 'configured', client_secret: 'the-secret-of-the-client' }
    const options = { client, registers: false }
    const unnamed = await createWorld(options, client)
    expect((await unnamed.call('POST', `${unnamed.path}/connect`, {})).status).toBe(422)
    expect(unnamed.server.tokenRequests).toEqual([])

    const named = await createWorld(options, (server) => ({ ...client, authorization_server: server.origin }))
    const { browser, back } = await authorize(await startLink(named))
    expectPage(await browser.get(back), 200, 'Connected')
    expect(named.server.requests).not.toContain('POST /register')

    // Without its secret the client is not authenticated.
    const bare = await createWorld(options, { client_id: client.client_id })
    const refused = await authorize(await startLink(bare))
    expectPage(await refused.browser.get(refused.back), 400, 'Not connected')
    expect(await read(bare)).toMatchObject({ connect: { status: 'failed', failure: 'code_refused' } })
  })

  it('refuses a server without registration, PKCE or metadata, and one that is away, before there is a link', async () => {
    const cases: Array<[Partial<ServerOptions>, Record<string, unknown>, number]> = [
      [{ registers: false }, {}, 422],
      [{ metadata: { code_challenge_methods_supported: ['plain'] } }, {}, 422],
      [{ metadata: { response_types_supported: ['token'] } }, {}, 422],
      [{ metadata: { issuer: 'https://another.example.com' } }, {}, 422],
      [{ metadata: { registration_endpoint: 'http://169.254.169.254/register' } }, {}, 422],
      [{ resourceMetadata: { resource: 'https://another.example.com/mcp' } }, {}, 422],
      [{ resourceMetadata: { authorization_servers: ['http://10.0.0.1'] } }, {}, 422],
      [{ metadata: { authorization_endpoint: 'x' } }, {}, 422],
    ]
    await Promise.all(
      cases.map(async ([options, authorization, status]) => {
        const world = await createWorld(options, authorization)
        const answer = await world.call('POST', `${world.path}/connect`, {})
        expect([options, authorization, answer.status]).toEqual([options, authorization, status])
        expect(answer.text).not.toContain('text-of-the-server')
      }),
    )
  })

  it('takes the token endpoint of the metadata only after the guard of addresses', async () => {
    const world = await createWorld({ metadata: { token_endpoint: 'http://169.254.169.254/token' } })
    const { browser, back } = await authorize(await startLink(world))
    expectPage(await browser.get(back), 400, 'Not connected')
    expect(await read(world)).toMatchObject({ status: 'pending', connect: { failure: 'server_unavailable' } })
  })
})

describe.concurrent('what a return must prove', () => {
  it('is refused in another browser, which cannot begin either', async () => {
    const world = await createWorld()
    const link = await startLink(world)
    const { browser, back } = await authorize(link)
    const other = new Browser()
    expectPage(await other.get(back), 400, 'Another browser')
    expectPage(await other.submit(link), 400, 'Another browser')
    expect(await read(world)).toMatchObject({ status: 'pending', connect: { status: 'pending' } })
    expectPage(await browser.get(back), 200, 'Connected')
  })

  it('works once', async () => {
    const world = await createWorld()
    const link = await startLink(world)
    const { browser, back } = await authorize(link)
    const returns = await Promise.all([browser.get(back), browser.get(back), browser.get(back)])
    expect(returns.map(({ status }) => status).toSorted()).toEqual([200, 400, 400])
    expectPage(await browser.get(back), 400, 'Already connected')
    expectPage(await browser.get(link), 404, 'Already connected')
    expect(world.server.tokenRequests).toHaveLength(1)
  })

  it('has the state that was sent', async () => {
    const world = await createWorld()
    const { browser, back } = await authorize(await startLink(world))
    const url = new URL(back)
    const state = url.searchParams.get('state') ?? ''
    for (const wrong of [
      '',
      'x',
      `${state.slice(0, -1)}_`,
      `${state.slice(0, 17)}${'0'.repeat(43)}`,
      `${state}0`,
    ]) {
      url.searchParams.set('state', wrong)
      expectPage(await browser.get(url.href), 400, 'Unknown link')
    }
    expectPage(await browser.get(back), 200, 'Connected')
  })

  it('comes from the issuer that was called (RFC 9207)', async () => {
    for (const issuer of ['https://attacker.example.com', null]) {
      const world = await createWorld()
      world.server.faults = { issuer }
      const { browser, back } = await authorize(await startLink(world))
      expectPage(await browser.get(back), 400, 'Not connected')
      expect(await read(world)).toMatchObject({ status: 'pending', connect: { failure: 'wrong_issuer' } })
      expect(world.server.tokenRequests).toEqual([])
    }
  })

  it('begins on the page that says for whom, not on another site', async () => {
    const world = await createWorld()
    const link = await startLink(world)
    const answer = await new Browser().submit(link, 'https://attacker.example.com')
    expect([answer.status, answer.headers['set-cookie']]).toEqual([403, undefined])
    expect((await send(link, { method: 'POST' })).status).toBe(403)
  })

  it('is over when its time is over, and when a newer link was made', async () => {
    const world = await createWorld()
    const first = await startLink(world)
    const { browser, back } = await authorize(first)
    const second = await startLink(world)
    expectPage(await browser.get(back), 400, 'Link expired')
    const later = await authorize(second)
    await query(
      worker,
      `update connect_sessions set expires_at = now() - interval '1 second' where connection_id = $1`,
      [world.connection.id],
    )
    expectPage(await later.browser.get(later.back), 400, 'Link expired')
    expectPage(await later.browser.get(second), 404, 'Link expired')
    expect(await read(world)).toMatchObject({ status: 'pending', connect: { status: 'expired' } })
    expect(world.server.tokenRequests).toEqual([])
  })

  it('is over when the connection was revoked, or given to another owner', async () => {
    const [revoked, given] = [await createWorld(), await createWorld()]
    const other = await addMember(worker, given.tenant.base)
    const cases = [
      { world: revoked, change: { status: 'revoked' } },
      { world: given, change: { user_id: other } },
    ]
    for (const { world, change } of cases) {
      const { browser, back } = await authorize(await startLink(world))
      await world.ask('PUT', world.path, change)
      expectPage(await browser.get(back), 400, 'Link expired')
      expect(world.server.tokenRequests).toEqual([])
    }
    // A new link connects it again.
    const { browser, back } = await authorize(await startLink(revoked))
    expectPage(await browser.get(back), 200, 'Connected')
    expect(await read(revoked)).toMatchObject({ status: 'active' })
  })

  it('is of a user that is still a member', async () => {
    const world = await createWorld({}, {}, {}, await createOwner())
    const { browser, back } = await authorize(await startLink(world))
    await world.ask('DELETE', `${world.tenant.base}/users/${world.tenant.userId}`)
    expectPage(await browser.get(back), 400, 'Unknown link')
    expect(world.server.tokenRequests).toEqual([])
  })

  it('answers unknown links without a trace of what they were', async () => {
    for (const path of ['x', 'A'.repeat(43), 'A'.repeat(44), '%00', 'callback?state=1']) {
      const answer = await send(`${worker.baseUrl}/connect/${path}`)
      expect([path, answer.status]).toEqual([
        path,
        expect.toSatisfy((status) => status === 400 || status === 404),
      ])
    }
  })
})

describe.concurrent('when the server refuses or fails', () => {
  it.each([
    [{ denies: true }, 'access_denied'],
    [{ token: 'error' }, 'server_unavailable'],
    [{ token: 'malformed' }, 'server_unavailable'],
    [{ token: 'no_bearer' }, 'server_unavailable'],
    [{ token: 'redirect' }, 'server_unavailable'],
    [{ token: 'endless' }, 'server_unavailable'],
    [{ token: 'invalid_client' }, 'code_refused'],
  ] as const)('%j leaves the connection as it was', async (faults, failure) => {
    const world = await createWorld()
    const link = await startLink(world)
    world.server.faults = faults
    const { browser, back } = await authorize(link)
    const answer = await browser.get(back)
    expectPage(answer, 400, 'Not connected')
    expect(answer.text).not.toContain('text-of-the-server')
    expect(await read(world)).toMatchObject({ status: 'pending', connect: { status: 'failed', failure } })
    if (failure !== 'access_denied') return
    // Another attempt succeeds.
    world.server.faults = {}
    const again = await authorize(await startLink(world))
    expectPage(await again.browser.get(again.back), 200, 'Connected')
  })
})

describe.concurrent('who connects an account', () => {
  it('is the owner, or a member that is named for a connection of the organization', async () => {
    const world = await createWorld({}, {}, { user_id: null })
    const other = await addMember(worker, world.tenant.base)
    const stranger = await createTenant(worker, { credits: 0, models: [] })
    const start = (body: unknown) => world.call('POST', `${world.path}/connect`, body)
    expect((await start({})).status).toBe(422)
    expect((await start({ user_id: stranger.userId })).status).toBe(404)
    expect((await start({ user_id: other })).status).toBe(201)
    await world.ask('PUT', world.path, { user_id: world.tenant.userId })
    expect((await start({ user_id: other })).status).toBe(422)
    const foreign = `${stranger.base}/connections/${world.connection.id}`
    expect((await world.call('POST', `${foreign}/connect`, {})).status).toBe(404)
  })
})

describe.concurrent('a tool call with a connected account', () => {
  it('carries its token, and has the account connected again when the upstream refuses it', async () => {
    const upstream = await startMcpServer(worker, { tools: [mcpTool('say')] })
    const server = newServer({ resource: upstream.url })
    const tenant = await createTenant(worker, { models: [] })
    await grantPersonalAccess(worker, tenant)
    const integration = await createIntegration(worker, tenant, {
      url: upstream.url,
      authorization: { kind: 'oauth', authorization_server: server.origin },
    })
    const { ask, call } = administrator(worker)
    const connection = await ask<ManagedConnection>('POST', `${tenant.base}/connections`, {
      ...{ integration: integration.slug, display_name: 'Account', user_id: tenant.userId },
    })
    const path = `${tenant.base}/connections/${connection.id}`
    const world = { tenant, server, slug: integration.slug, connection, path, ask, call }
    const { browser, back } = await authorize(await startLink(world))
    expectPage(await browser.get(back), 200, 'Connected')
    await refreshIntegration(worker, tenant, integration)
    const callTool = () =>
      sendMcp(worker, tenant.key, 'tools/call', { name: `${integration.slug}_say`, arguments: { text: 'x' } })
    const requireToken = (token: string) =>
      upstream.set({
        tools: [mcpTool('say')],
        requires: { header: 'authorization', value: `Bearer ${token}` },
      })

    const first = server.lastAccessToken
    await requireToken(first)
    expect(jsonOf(await callTool())).toMatchObject({
      result: { _meta: { 'service.dev/connection-id': connection.id } },
    })
    expect(server.tokenRequests).toHaveLength(1)

    // The token is new, and another one helps.
    const requireNext = () => requireToken(server.lastAccessToken)
    await requireToken('none-that-is-issued')
    server.faults = { afterToken: requireNext }
    expect(jsonOf(await callTool())).toMatchObject({ result: { content: expect.anything() } })
    expect(server.tokenRequests).toHaveLength(2)
    expect(await read(world)).toMatchObject({ status: 'active' })
    server.faults = {}

    // The one that was obtained for the refusal is refused too.
    await requireToken('none-that-is-issued')
    const refused = jsonOf(await callTool())
    expect(refused).toMatchObject({
      error: { code: -32000, data: { reason: 'credentials_unavailable', integrationId: integration.slug } },
    })
    expect(JSON.stringify(refused)).not.toMatch(/access-|refresh-/)
    expect(server.tokenRequests).toHaveLength(2)
    expect(await read(world)).toMatchObject({ status: 'needs_reauth' })

    // Connected again, the same connection works.
    const again = await authorize(await startLink(world))
    expectPage(await again.browser.get(again.back), 200, 'Connected')
    await requireToken(server.lastAccessToken)
    expect(jsonOf(await callTool())).toMatchObject({ result: { content: expect.anything() } })

    // A list is read with a renewed token as well.
    await requireToken('none-that-is-issued')
    server.faults = { afterToken: requireNext }
    expect(await refreshIntegration(worker, tenant, integration)).toMatchObject([{ kind: 'refreshed' }])
    expect(await read(world)).toMatchObject({ status: 'active' })
    server.faults = {}

    // One call is enough to mark the connection.
    const third = await authorize(await startLink(world))
    expectPage(await third.browser.get(third.back), 200, 'Connected')
    await requireToken('none-that-is-issued')
    expect(jsonOf(await callTool())).toMatchObject({ error: { data: { reason: 'credentials_unavailable' } } })
    expect(await read(world)).toMatchObject({ status: 'needs_reauth' })
  })
})

describe('a connection at Nango', () => {
  it('is made by its link, found when it is polled, and deleted with the connection', async () => {
    const world = await createWorld({}, {}, { broker: 'nango' })
    expect(world.connection).toMatchObject({ status: 'pending', upstream_connection_id: '' })
    const link = await startLink(world)
    expect(link).toMatch(/^https:\/\/connect\.nango\.example\//)
    expect(await read(world)).toMatchObject({ status: 'pending', connect: { status: 'pending' } })

    const id = nango.finish({ type: 'OAUTH2', access_token: 'nango-access', raw: {} })

    expect(await read(world)).toMatchObject({
      status: 'active',
      upstream_connection_id: id,
      connect: { status: 'completed' },
    })
    expect(await world.ask('DELETE', world.path)).toMatchObject({ deleted: true })
    expect(nango.requests.at(-1)).toBe(`DELETE /connections/${id}?provider_config_key=${world.slug}`)
  })

  it('stays pending where the person has lost the connection before the broker was asked', async () => {
    const tenant = await createOwner()
    const { ask } = administrator(worker)
    const other = await ask<{ id: string }>('POST', `${tenant.base}/users`, {
      ...{ email: `${uniqueName('other')}@example.com`, name: 'Other' },
    })
    const group = await ask<{ id: string }>('POST', `${tenant.base}/groups`, { name: uniqueName('team') })
    await ask('PUT', `${tenant.base}/groups/${group.id}/members/${other.id}`)
    const world = await createWorld({}, {}, { broker: 'nango' }, tenant)
    const share = `${world.path}/shares/${group.id}`
    await ask('PUT', share, { permission: 'manage' })
    await ask('POST', `${world.path}/connect`, { user_id: other.id })
    await ask('DELETE', share)
    nango.finish({ type: 'OAUTH2', access_token: 'nango-access', raw: {} })
    const lost = { status: 'pending', connect: { status: 'failed', failure: 'not_stored' } }
    expect(await read(world)).toMatchObject(lost)
    expect(await read(world)).toMatchObject(lost)
  })

  it('has its token renewed once when the upstream refuses it, and then the account connected again', async () => {
    const upstream = await startMcpServer(worker, { tools: [mcpTool('say')] })
    const tenant = await createOwner()
    const integration = await createIntegration(worker, tenant, {
      url: upstream.url,
      authorization: { kind: 'oauth' },
    })
    const { ask, call } = administrator(worker)
    const { id } = await ask<ManagedConnection>('POST', `${tenant.base}/connections`, {
      ...{ integration: integration.slug, display_name: 'Account', user_id: tenant.userId, broker: 'nango' },
    })
    const path = `${tenant.base}/connections/${id}`
    await call('POST', `${path}/connect`, {})
    nango.finish({ type: 'OAUTH2', access_token: 'nango-access', raw: {} })
    expect(await ask('GET', path)).toMatchObject({ status: 'active' })
    await refreshIntegration(worker, tenant, integration)
    const requires = { header: 'authorization', value: 'Bearer another' }
    await upstream.set({ tools: [mcpTool('say')], requires })
    const answer = await sendMcp(worker, tenant.key, 'tools/call', { name: `${integration.slug}_say` })
    expect(jsonOf(answer)).toMatchObject({ error: { data: { reason: 'credentials_unavailable' } } })
    expect(nango.forced).toBe(1)
    expect(await ask('GET', path)).toMatchObject({ status: 'needs_reauth' })
  })

  it('is not deleted here while Nango does not answer', async () => {
    const world = await createWorld({}, {}, { broker: 'nango' })
    await startLink(world)
    nango.finish({ type: 'API_KEY', apiKey: 'nango-key' })
    await read(world)
    nango.fault = new Response('text-of-the-server', { status: 500 })
    const answer = await world.call('DELETE', world.path)
    expect([answer.status, answer.text]).toEqual([502, expect.not.stringContaining('text-of-the-server')])
    expect((await world.call('POST', `${world.path}/connect`, {})).status).toBe(502)
    nango.fault = null
    expect((await world.call('DELETE', world.path)).status).toBe(200)
  })
  it('is deleted here alone by a gateway without a key for Nango, which says what stays there', async () => {
    const world = await createWorld({}, {}, { broker: 'nango' })
    await startLink(world)
    const id = nango.finish({ type: 'API_KEY', apiKey: 'nango-key' })
    await read(world)
    const without = administrator(gateway())
    expect(await without.ask('DELETE', world.path)).toMatchObject({ deleted: true, left_at_broker: id })
    expect(nango.requests.at(-1)).not.toContain('DELETE')
    expect((await world.call('GET', world.path)).status).toBe(404)
  })
})
