import { describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import {
  createIntegration,
  grantIntegration,
  mcpTool,
  refreshIntegration,
  startMcpServer,
} from '../harness/integrations.ts'
import { createMcpTenant, listMcpTools, rpcErrorOf, sendMcp } from '../harness/mcp.ts'
import { auditEntries } from '../harness/records.ts'
import { administrator, createTenant } from '../harness/tenant.ts'

const api = () => administrator(gateway())
const twoTools = () => startMcpServer(gateway(), { tools: [mcpTool('echo'), mcpTool('add')] })

describe('the management of integrations', () => {
  it('takes effect on the next call', async () => {
    const tenant = await createMcpTenant(gateway())
    const server = await twoTools()
    const integration = await createIntegration(gateway(), tenant, { url: server.url, grant: false })
    const path = `${tenant.base}/integrations/${integration.id}`
    const own = async () =>
      (await listMcpTools(gateway(), tenant.key))
        .map(({ name }) => name)
        .filter((name) => name.startsWith(integration.slug))
    const call = () => sendMcp(gateway(), tenant.key, 'tools/call', { name: `${integration.slug}_echo` })

    expect(await own()).toEqual([])
    expect(await rpcErrorOf(call())).toMatchObject({ code: -32602 })
    const grant = await grantIntegration(gateway(), tenant, {
      integration: integration.slug,
      tools: ['echo'],
    })
    expect(await own()).toEqual([`${integration.slug}_echo`])
    await api().ask('POST', `${path}/tools/disable`, { tools: ['echo'] })
    expect(await own()).toEqual([])
    expect(await rpcErrorOf(call())).toMatchObject({ code: -32601 })
    await api().ask('POST', `${path}/tools/enable`, { tools: ['echo'] })
    await api().ask('PUT', path, { disabled: true })
    expect(await own()).toEqual([])
    expect(await rpcErrorOf(call())).toMatchObject({ code: -32601 })
    await api().ask('PUT', path, { disabled: false })
    expect(await own()).toEqual([`${integration.slug}_echo`])
    await api().ask('DELETE', `${tenant.base}/integration-grants/${grant.id}`)
    expect(await rpcErrorOf(call())).toMatchObject({ code: -32602 })
    await api().ask('DELETE', path)
    expect((await api().call('GET', path)).status).toBe(404)

    const actions = (await auditEntries(gateway(), tenant))
      .map(({ action }) => action)
      .filter((action) => action.startsWith('integration'))
    expect(actions.reverse()).toEqual([
      'integration.created',
      'integration.tools_changed',
      'integration_grant.created',
      'integration.tools_disabled',
      'integration.tools_enabled',
      'integration.disabled',
      'integration.updated',
      'integration_grant.deleted',
      'integration.deleted',
    ])
  })

  it('approves and rejects what it was asked about, and no more', async () => {
    const tenant = await createTenant(gateway())
    const server = await twoTools()
    const integration = await createIntegration(gateway(), tenant, { url: server.url, approval: 'manual' })
    const path = `${tenant.base}/integrations/${integration.id}/tools`
    const states = async () => {
      const { data } = await api().ask<{ data: Array<{ name: string; state: string }> }>('GET', path)
      return Object.fromEntries(data.map(({ name, state }) => [name, state]))
    }
    expect(await states()).toEqual({ add: 'pending', echo: 'pending' })
    await api().ask('POST', `${path}/reject`, { tools: ['add'] })
    await api().ask('POST', `${path}/approve`, {})
    expect(await states()).toEqual({ add: 'rejected', echo: 'approved' })
    await server.set({ tools: [mcpTool('echo', { title: 'New' })] })
    await refreshIntegration(gateway(), tenant, integration)
    expect(await states()).toEqual({ add: 'removed', echo: 'changed' })
    expect((await api().call('POST', `${path}/approve`, { tools: ['none'] })).status).toBe(404)
    expect(
      (await api().call('POST', `${path}/approve`, { tools: ['echo'], hash: 'a'.repeat(64) })).status,
    ).toBe(422)
  })

  it('shows no secret, and takes no address that may not be called', async () => {
    const tenant = await createTenant(gateway())
    const authorization = {
      kind: 'oauth',
      client_id: 'client',
      client_secret: 'secret-of-the-client',
      scopes: ['a'],
    }
    const body = { kind: 'mcp', slug: 'service', url: 'https://mcp.example.com/mcp', authorization }
    const created = await api().call('POST', `${tenant.base}/integrations`, body)
    expect(created.status).toBe(201)
    const listed = await api().call('GET', `${tenant.base}/integrations?slug=service`)
    for (const { text } of [created, listed]) {
      expect(text).toContain('"client_secret_set":true')
      expect(text).not.toContain('secret-of-the-client')
    }
    const trail = JSON.stringify(await auditEntries(gateway(), tenant))
    expect(trail).not.toContain('secret-of-the-client')
    for (const url of [
      'http://mcp.example.com/',
      'https://10.1.1.1/',
      'https://169.254.169.254/',
      'https://a.internal/',
    ]) {
      const refused = await api().call('POST', `${tenant.base}/integrations`, { ...body, slug: 'other', url })
      expect([url, refused.status]).toEqual([url, 422])
    }
    expect((await api().call('POST', `${tenant.base}/integrations`, body)).status).toBe(422)
    for (const slug of ['platform', 'With-Capitals', 'a_b', 'a--b', 'x'.repeat(41)]) {
      const refused = await api().call('POST', `${tenant.base}/integrations`, { ...body, slug })
      expect([slug, refused.status]).toEqual([slug, 400])
    }
  })

  it('finds nothing of another organization', async () => {
    const [tenant, other] = await Promise.all([createTenant(gateway()), createTenant(gateway())])
    const server = await twoTools()
    const { id, slug } = await createIntegration(gateway(), tenant, { url: server.url, grant: false })
    const grant = await grantIntegration(gateway(), tenant, { integration: slug })
    const path = `${other.base}/integrations/${id}`
    const attempts: Array<[method: string, path: string, body?: unknown]> = [
      ['GET', path],
      ['PUT', path, { disabled: true }],
      ['DELETE', path],
      ['POST', `${path}/refresh`, {}],
      ['GET', `${path}/tools`],
      ['POST', `${path}/tools/approve`, {}],
      ['POST', `${path}/tools/disable`, { tools: ['echo'] }],
      ['DELETE', `${other.base}/integration-grants/${grant.id}`],
      ['POST', `${other.base}/integration-grants`, { subject_type: 'organization', integration: slug }],
      [
        'POST',
        `${tenant.base}/integration-grants`,
        { subject_type: 'user', subject_id: other.userId, integration: slug },
      ],
    ]
    for (const [method, address, body] of attempts) {
      expect([method, address, (await api().call(method, address, body)).status]).toEqual([
        method,
        address,
        404,
      ])
    }
    expect((await api().ask('GET', `${tenant.base}/integrations/${id}`)).disabled_at).toBeNull()
  })
})
