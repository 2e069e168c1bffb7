import { describe, expect, it } from 'vitest'
import { createConnection } from '../harness/connections.ts'
import { gateway } from '../harness/gateway.ts'
import {
  createIntegration,
  type McpServer,
  mcpTool,
  refreshIntegration,
  type ScriptedServerInput,
  startMcpServer,
} from '../harness/integrations.ts'
import {
  callMcpTool,
  createMcpTenant,
  entitle,
  listMcpTools,
  resultOf,
  rpcErrorOf,
  sendMcp,
} from '../harness/mcp.ts'
import { auditEntryOf } from '../harness/records.ts'
import { addKey, addMember, administrator, type Tenant, uniqueName } from '../harness/tenant.ts'

type Json = Record<string, unknown>

const textOf = (result: Json) => (result.content as Array<{ text: string }>)[0]?.text ?? ''
const errorOf = (result: Json) => JSON.parse(textOf(result)) as Json

interface World {
  tenant: Tenant
  server: McpServer
  slug: string
  name: string
  refresh: () => Promise<unknown>
}

/** A tenant with an integration whose accounts have bearer tokens. */
async function createWorld(script: Partial<ScriptedServerInput> = {}): Promise<World> {
  const tenant = await createMcpTenant(gateway())
  const server = await startMcpServer(gateway(), { tools: [mcpTool('echo')], ...script })
  const integration = await createIntegration(gateway(), tenant, {
    url: server.url,
    authorization: { kind: 'bearer' },
  })
  const { slug } = integration
  const refresh = () => refreshIntegration(gateway(), tenant, integration)
  return { tenant, server, slug, name: `${slug}_echo`, refresh }
}

/** The credentials of the calls that a server saw. */
const tokensOf = async (server: McpServer) =>
  (await server.requests())
    .filter(({ method }) => method === 'tools/call')
    .map(({ headers }) => headers.authorization)

describe.concurrent('the connection of a call', () => {
  it('is the only one of the caller, and is named in the result and in the record', async () => {
    const { tenant, server, slug, name, refresh } = await createWorld()
    const secret = uniqueName('secret')
    const connection = await createConnection(gateway(), tenant, slug, {
      user_id: tenant.userId,
      credential: { secret },
    })
    await refresh()
    expect((await listMcpTools(gateway(), tenant.key)).map((tool) => tool.name)).toContain(name)
    const answer = await sendMcp(gateway(), tenant.key, 'tools/call', { name })
    const result = await resultOf(Promise.resolve(answer))
    expect(result._meta).toEqual({
      'service.dev/connection-id': connection.id,
      'service.dev/connection-choice': 'active_set',
    })
    const entry = await auditEntryOf(gateway(), tenant, answer.headers['x-request-id'])
    expect(entry.record).toMatchObject({ tool: name, connectionId: connection.id })
    expect(await tokensOf(server)).toEqual([`Bearer ${secret}`])
    expect(JSON.stringify(entry)).not.toContain(secret)
  })

  it('is required', async () => {
    const { tenant, slug, name, refresh } = await createWorld()
    const colleague = await addMember(gateway(), tenant.base)
    const connection = await createConnection(gateway(), tenant, slug, { user_id: colleague })
    await refresh()
    expect((await listMcpTools(gateway(), tenant.key)).map((tool) => tool.name)).not.toContain(name)
    const result = await callMcpTool(gateway(), tenant.key, name)
    expect(result.isError).toBe(true)
    expect(errorOf(result)).toMatchObject({ code: 'connection_required', retryable: false })
    // Tokens of this integration are given by an administrator: there is no link for a person.
    const connect = (integration_id: string) =>
      callMcpTool(gateway(), tenant.key, 'platform_connect_integration', { integration_id })
    expect(errorOf(await connect(slug))).toMatchObject({ code: 'conflict', retryable: false })
    expect(errorOf(await connect('no-such'))).toMatchObject({ code: 'not_found' })
    // The account of a colleague is not the caller's, by its id neither.
    const input = { name, connection_id: connection.id }
    const delegated = await callMcpTool(gateway(), tenant.key, 'platform_execute_tool', input)
    expect(delegated._meta).toEqual({ 'service.dev/platform-tool-error': 1 })
    expect(errorOf(delegated)).toMatchObject({ code: 'not_found' })
  })

  it('is one of several only by name or by default', async () => {
    const { tenant, server, slug, name, refresh } = await createWorld()
    const first = await createConnection(gateway(), tenant, slug, { credential: { secret: 'token-one-xx' } })
    const second = await createConnection(gateway(), tenant, slug, { credential: { secret: 'token-two-xx' } })
    await refresh()
    const ambiguous = await callMcpTool(gateway(), tenant.key, name)
    expect(errorOf(ambiguous)).toMatchObject({ code: 'connection_ambiguous' })
    const ids = (errorOf(ambiguous).connections as Json[]).map(({ id }) => id)
    expect(ids.sort()).toEqual([first.id, second.id].sort())
    const execute = { name, connection_id: second.id }
    const explicit = await callMcpTool(gateway(), tenant.key, 'platform_execute_tool', execute)
    expect(explicit._meta).toMatchObject({ 'service.dev/connection-choice': 'explicit' })
    const choice = { integration_id: slug, connection_id: first.id }
    const set = await callMcpTool(gateway(), tenant.key, 'platform_set_default_connection', choice)
    expect(set.structuredContent).toEqual({ integration_config_id: slug, connection_id: first.id })
    await callMcpTool(gateway(), tenant.key, name)
    expect(await tokensOf(server)).toEqual(['Bearer token-two-xx', 'Bearer token-one-xx'])
    const listed = await callMcpTool(gateway(), tenant.key, 'platform_list_connections', {
      integration_id: slug,
    })
    const data = (listed.structuredContent as { data: Json[] }).data
    expect(data.map(({ is_preferred: isPreferred }) => isPreferred).sort()).toEqual([false, true])
  })

  it('of another organization does not exist', async () => {
    const [own, other] = [await createWorld(), await createWorld()]
    const foreign = await createConnection(gateway(), other.tenant, other.slug)
    await createConnection(gateway(), own.tenant, own.slug, { user_id: own.tenant.userId })
    await own.refresh()
    const { key } = own.tenant
    for (const id of [foreign.id, 'conn_0000000000000000000000', "' or 1=1 --"]) {
      const executed = await callMcpTool(gateway(), key, 'platform_execute_tool', {
        name: own.name,
        connection_id: id,
      })
      expect(errorOf(executed)).toMatchObject({ code: 'not_found' })
      const set = { integration_id: own.slug, connection_id: id }
      const result = await callMcpTool(gateway(), key, 'platform_set_default_connection', set)
      expect(errorOf(result)).toMatchObject({ code: 'not_found' })
    }
    expect(await own.server.calls()).toBe(0)
  })

  it('whose credential the upstream refuses is unavailable, and no other one takes its place', async () => {
    const { tenant, server, slug, name, refresh } = await createWorld()
    const user_id = tenant.userId
    await createConnection(gateway(), tenant, slug, { user_id, credential: { secret: 'token-own-xx' } })
    await createConnection(gateway(), tenant, slug, { credential: { secret: 'token-all-xx' } })
    await refresh()
    await callMcpTool(gateway(), tenant.key, name)
    await server.set({
      tools: [mcpTool('echo')],
      requires: { header: 'authorization', value: 'Bearer another' },
    })
    for (let calls = 0; calls < 2; calls++) {
      const answer = await sendMcp(gateway(), tenant.key, 'tools/call', { name })
      const error = await rpcErrorOf(Promise.resolve(answer))
      expect(error).toMatchObject({
        status: 200,
        code: -32000,
        data: { reason: 'credentials_unavailable', integrationId: slug, hint: expect.any(String) },
      })
      const entry = await auditEntryOf(gateway(), tenant, answer.headers['x-request-id'])
      expect(entry.record).toMatchObject({ errorCode: 'credentials_unavailable', cost: 0 })
    }
    // The second call finds the connection marked, and sends nothing.
    expect(await tokensOf(server)).toEqual(['Bearer token-own-xx', 'Bearer token-own-xx'])
  })

  it('that is shared with a group is used by its members, as long as they are', async () => {
    const { tenant, slug, name, server, refresh } = await createWorld()
    const { ask } = administrator(gateway())
    const colleague = await addMember(gateway(), tenant.base)
    await entitle(gateway(), tenant.base, colleague)
    const { key } = await addKey(gateway(), tenant.base, colleague)
    const connection = await createConnection(gateway(), tenant, slug, { user_id: tenant.userId })
    const group = await ask<{ id: string }>('POST', `${tenant.base}/groups`, { name: 'team' })
    await ask('PUT', `${tenant.base}/connections/${connection.id}/shares/${group.id}`, { permission: 'use' })
    await refresh()
    expect(errorOf(await callMcpTool(gateway(), key, name))).toMatchObject({ code: 'connection_required' })
    const member = `${tenant.base}/groups/${group.id}/members/${colleague}`
    await ask('PUT', member)
    expect((await callMcpTool(gateway(), key, name))._meta).toMatchObject({
      'service.dev/connection-id': connection.id,
      'service.dev/connection-choice': 'group',
    })
    await ask('DELETE', member)
    expect(errorOf(await callMcpTool(gateway(), key, name))).toMatchObject({ code: 'connection_required' })
    expect(await server.calls()).toBe(1)
  })
})
