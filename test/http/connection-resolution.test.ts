import { describe, expect, it } from 'vitest'
import { createConnection, type ManagedConnection } from '../harness/connections.ts'
import { gateway } from '../harness/gateway.ts'
import {
  createIntegration,
  type McpServer,
  mcpTool,
  refreshIntegration,
  startMcpServer,
} from '../harness/integrations.ts'
import { createMcpTenant, sendMcp } from '../harness/mcp.ts'
import { jsonOf, send } from '../harness/send.ts'
import { addMember, administrator, bearer, type Tenant } from '../harness/tenant.ts'

type Json = Record<string, unknown>

/** A tenant, a colleague in the same group, and an integration with one tool. */
async function createWorld() {
  const address = gateway()
  const { ask } = administrator(address)
  const tenant = await createMcpTenant(address, { models: [] })
  const colleague = await addMember(address, tenant.base)
  const group = await ask<{ id: string }>('POST', `${tenant.base}/groups`, { name: 'team' })
  await ask('PUT', `${tenant.base}/groups/${group.id}/members/${tenant.userId}`)
  const server = await startMcpServer(address, { tools: [mcpTool('say')] })
  const integration = await createIntegration(address, tenant, {
    url: server.url,
    authorization: { kind: 'bearer' },
  })
  const make = async (name: string, more: Json): Promise<ManagedConnection> => {
    const credential = { secret: `token-of-${name}` }
    return createConnection(address, tenant, integration.slug, { display_name: name, credential, ...more })
  }
  return {
    ...{ tenant, server, integration },
    own: (name: string) => make(name, { user_id: tenant.userId }),
    shared: async (name: string) => {
      const connection = await make(name, { user_id: colleague })
      await ask('PUT', `${tenant.base}/connections/${connection.id}/shares/${group.id}`, {})
      return connection
    },
    common: (name: string) => make(name, {}),
    refresh: () => refreshIntegration(address, tenant, integration),
    setStatus: ({ id }: ManagedConnection, status: string) =>
      ask('PUT', `${tenant.base}/connections/${id}`, { status }),
    setDefault: async ({ id }: ManagedConnection) => {
      const answer = await send(
        `${address.baseUrl}/v1/integrations/connections/${integration.slug}/default`,
        { method: 'POST', headers: bearer(tenant.key), body: JSON.stringify({ connection_id: id }) },
      )
      expect(answer.status).toBe(200)
    },
    call: () => callTool(tenant, `${integration.slug}_say`),
  }
}

/** Result of a call, in one line. */
async function callTool(tenant: Tenant, name: string): Promise<string> {
  const answer = await sendMcp(gateway(), tenant.key, 'tools/call', { name, arguments: { text: 'x' } })
  const { result, error } = jsonOf(answer) as { result?: Json; error?: Json }
  if (error) return `${error.code} ${(error.data as Json | undefined)?.reason ?? ''}`
  if (result?.isError) return JSON.parse(String((result.content as Json[])[0]?.text)).code
  const meta = result?._meta as Json
  return `${meta['service.dev/connection-choice']} ${meta['service.dev/connection-id']}`
}

/** The token that the last call carried. */
async function sentToken(server: McpServer): Promise<string> {
  const calls = (await server.requests()).filter(({ method }) => method === 'tools/call')
  return String(calls.at(-1)?.headers.authorization)
}

describe.concurrent('the connection of a tool call', () => {
  it('is the own one, the shared one or the common one, in this order, with its credential', async () => {
    const world = await createWorld()
    const common = await world.common('common')
    await world.refresh()
    expect(await world.call()).toBe(`organization ${common.id}`)
    expect(await sentToken(world.server)).toBe('Bearer token-of-common')
    const shared = await world.shared('shared')
    await world.refresh()
    expect(await world.call()).toBe(`group ${shared.id}`)
    expect(await sentToken(world.server)).toBe('Bearer token-of-shared')
    const own = await world.own('own')
    await world.refresh()
    // A new own connection joins the active set.
    expect(await world.call()).toBe(`active_set ${own.id}`)
    expect(await sentToken(world.server)).toBe('Bearer token-of-own')
    await world.setDefault(shared)
    expect(await world.call()).toBe(`default ${shared.id}`)
    expect(await sentToken(world.server)).toBe('Bearer token-of-shared')
  })

  it('is not chosen between several of others', async () => {
    const world = await createWorld()
    const [one] = [await world.shared('one'), await world.shared('two')]
    await world.refresh()
    expect(await world.call()).toBe('connection_ambiguous')
    await world.setDefault(one)
    expect(await world.call()).toBe(`default ${one.id}`)
  })

  it('is never replaced by another account when it cannot be used', async () => {
    for (const kind of ['own', 'shared', 'default'] as const) {
      const world = await createWorld()
      const used = await (kind === 'own' ? world.own('used') : world.shared('used'))
      await world.common('another')
      if (kind === 'default') {
        await world.setDefault(used)
        await world.own('own')
        await world.setDefault(used)
      }
      await world.refresh()
      await world.setStatus(used, 'needs_reauth')
      const before = await world.server.calls()
      expect([kind, await world.call()]).toEqual([kind, '-32000 credentials_unavailable'])
      expect(await world.server.calls()).toBe(before)
    }
  })

  it('has to be connected again when the upstream refuses its credential', async () => {
    const world = await createWorld()
    const own = await world.own('own')
    await world.refresh()
    await world.server.set({
      tools: [mcpTool('say')],
      requires: { header: 'authorization', value: 'Bearer another-token' },
    })
    expect(await world.call()).toBe('-32000 credentials_unavailable')
    const { ask } = administrator(gateway())
    const path = `${world.tenant.base}/connections/${own.id}`
    expect(await ask('GET', path)).toMatchObject({ status: 'needs_reauth' })
    // A new credential is all that it takes.
    await ask('PUT', path, { credential: { secret: 'another-token' } })
    expect(await world.call()).toBe(`active_set ${own.id}`)
  })

  it('is none of a stranger, and none that was taken away', async () => {
    const world = await createWorld()
    const shared = await world.shared('shared')
    await world.refresh()
    expect(await world.call()).toBe(`group ${shared.id}`)
    const { ask } = administrator(gateway())
    const [{ group_id: groupId = '' } = {}] = (
      await ask<ManagedConnection>('GET', `${world.tenant.base}/connections/${shared.id}`)
    ).shares
    const before = await world.server.calls()
    await ask('DELETE', `${world.tenant.base}/connections/${shared.id}/shares/${groupId}`)
    expect(await world.call()).toMatch(/^(-32602 |connection_required)/)
    expect(await world.server.calls()).toBe(before)
  })
})
