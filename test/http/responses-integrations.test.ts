import { beforeAll, describe, expect, it } from 'vitest'
import { createConnection } from '../harness/connections.ts'
import { gateway } from '../harness/gateway.ts'
import {
  createIntegration,
  grantIntegration,
  type IntegrationItem,
  type McpServer,
  mcpTool,
  startMcpServer,
} from '../harness/integrations.ts'
import { callEntries } from '../harness/records.ts'
import { jsonOf } from '../harness/send.ts'
import { addKey, administrator, createTenant, type Tenant } from '../harness/tenant.ts'
import { marker, seenRequests } from '../harness/upstream.ts'
import { callTool, say } from './support/dlp-answers.ts'
import type { Json } from './support/response-calls.ts'
import {
  bodyOf,
  CORNER_WAYS,
  postResponse,
  RESPONSE_WAYS,
  respond,
  turnsScript,
} from './support/response-streams.ts'

const FIND = mcpTool('find', { annotations: { readOnlyHint: true } })
const ADD = mcpTool('add')
const text = (value: string) => ({ content: [{ type: 'text', text: value }] })

interface World {
  tenant: Tenant
  server: McpServer
  crm: IntegrationItem
}

async function newWorld(script: Json = {}, more: Json = {}): Promise<World> {
  const tenant = await createTenant(gateway())
  const server = await startMcpServer(gateway(), {
    tools: [FIND, ADD],
    results: { find: text('Ada, 36'), add: text('added') },
    ...script,
  })
  const crm = await createIntegration(gateway(), tenant, { url: server.url, ...more })
  return { tenant, server, crm }
}

let world: World

beforeAll(async () => {
  world = await newWorld()
})

const mcp = ({ crm }: World, more: Json = {}) => ({ type: 'mcp', server_label: crm.slug, ...more })
const itemsOf = (response: { output: Json[] }, type: string) =>
  response.output.filter((item) => item.type === type)

describe.each(CORNER_WAYS)('tools of integrations (%s)', (_, { upstream, model, stream }) => {
  const call = (body: Json, { tenant } = world) => respond(tenant.key, { model, stream, ...body })

  it('are called, and their results continue the conversation', async () => {
    const mark = marker()
    const { slug } = world.crm
    const script = await turnsScript(upstream, [
      [callTool(`${slug}_find`, { text: 'Ada' })],
      [say('Ada is 36.')],
    ])
    const { response, events } = await call({ input: `${script} ${mark}`, tools: [mcp(world)] })
    expect(response).toMatchObject({ status: 'completed', output_text: 'Ada is 36.' })
    expect(itemsOf(response, 'mcp_call')).toMatchObject([
      {
        id: expect.stringMatching(/^mcp_/),
        name: 'find',
        server_label: slug,
        arguments: '{"text":"Ada"}',
        output: 'Ada, 36',
        status: 'completed',
      },
    ])
    if (stream) expect(events.map(({ event }) => event)).toContain('response.mcp_call_arguments.done')
    const [first, second] = await seenRequests(gateway(), mark)
    expect(JSON.stringify(first && bodyOf(first).tools)).toContain(`"${slug}_find"`)
    expect(JSON.stringify(second && bodyOf(second).messages)).toContain('Ada, 36')
    expect(JSON.stringify(second && bodyOf(second).messages)).toContain(`"${slug}_find"`)
    const { response: next } = await call({ conversation: response.conversation?.id, input: 'Thanks.' })
    expect(next.status).toBe('completed')
  })

  it('are offered as far as the request allows them', async () => {
    const mark = marker()
    const { slug } = world.crm
    const script = await turnsScript(upstream, [[callTool(`${slug}_add`, {})], [say('Then not.')]])
    const tools = [mcp(world, { allowed_tools: ['find'] })]
    const { response } = await call({ input: `${script} ${mark}`, tools })
    expect(itemsOf(response, 'mcp_call')).toEqual([])
    const [first] = await seenRequests(gateway(), mark)
    expect(JSON.stringify(first && bodyOf(first).tools)).not.toContain(`"${slug}_add"`)
  })

  it.runIf(upstream === 'chat')('are searched if there are very many', async () => {
    const many = await newWorld({ tools: [FIND], generated: 300 })
    const mark = marker()
    const name = `${many.crm.slug}_find`
    const script = await turnsScript(upstream, [
      [callTool('search_tools', { query: 'find' })],
      [callTool(name, { text: 'Ada' })],
      [say('Found.')],
    ])
    const { response } = await call({ input: `${script} ${mark}`, tools: [mcp(many)] }, many)
    expect(response.output.map(({ type }) => type)).toEqual(['service_call', 'mcp_call', 'message'])
    expect(itemsOf(response, 'mcp_call')).toMatchObject([{ output: 'Ada, 36', status: 'completed' }])
    const [first, second] = await seenRequests(gateway(), mark)
    const names = (body: Json | undefined) => JSON.stringify(body?.tools)
    expect(names(first && bodyOf(first))).not.toContain(`"${many.crm.slug}_`)
    expect(names(second && bodyOf(second))).toContain(`"${name}"`)
  })
})

describe('tools of integrations', () => {
  const model = RESPONSE_WAYS[0]?.[1].model
  const refusal = async (tools: unknown[], key = world.tenant.key) => {
    const answer = await postResponse(key, { model, input: 'Hi', tools })
    return { status: answer.status, ...(jsonOf(answer).error as Json) }
  }

  it('of servers without a connection are refused by name', async () => {
    expect(await refusal([mcp(world, { server_url: 'https://mcp.example.com' })])).toMatchObject({
      status: 400,
      message: expect.stringContaining('tools[0].server_url'),
    })
    expect(await refusal([{ type: 'mcp', server_label: 'nothing' }])).toMatchObject({
      status: 400,
      message: 'tools[0].server_label: you can use no integration "nothing".',
    })
    expect(await refusal([{ type: 'mcp' }])).toMatchObject({ status: 400 })
    expect(await refusal([mcp(world), mcp(world)])).toMatchObject({
      status: 400,
      message: expect.stringContaining('listed twice'),
    })
    expect(await refusal([mcp(world, { require_approval: 'sometimes' })])).toMatchObject({ status: 400 })
    expect(await refusal([mcp(world, { allowed_tools: 5 })])).toMatchObject({ status: 400 })
  })

  it('of another organization do not exist', async () => {
    const other = await newWorld()
    expect(await refusal([mcp(other)])).toMatchObject({ status: 400, code: 'invalid_body' })
  })

  it('need a grant, a connection and the scope', async () => {
    const alone = await newWorld({}, { grant: false })
    expect(await refusal([mcp(alone)], alone.tenant.key)).toMatchObject({ status: 400, code: 'invalid_body' })
    await grantIntegration(gateway(), alone.tenant, { integration: alone.crm.slug, tools: ['find'] })
    const { output } = (
      await respond(alone.tenant.key, {
        model,
        tools: [mcp(alone)],
        input: await turnsScript('chat', [[callTool(`${alone.crm.slug}_add`, {})], [say('No.')]]),
      })
    ).response
    expect(output.map(({ type }) => type)).toEqual(['message'])

    const closed = await newWorld({}, { authorization: { kind: 'bearer' } })
    expect(await refusal([mcp(closed)], closed.tenant.key)).toMatchObject({
      status: 400,
      code: 'connection_required',
    })
    const { key } = await addKey(gateway(), world.tenant.base, world.tenant.userId, { scopes: ['models'] })
    expect(await refusal([mcp(world)], key)).toMatchObject({ status: 403 })
  })

  it('are recorded with their connection, which is the one that the request names', async () => {
    const { tenant, crm } = await newWorld({}, { authorization: { kind: 'bearer' } })
    const connect = () => createConnection(gateway(), tenant, crm.slug, { user_id: tenant.userId })
    const [first, second] = [await connect(), await connect()]
    await administrator(gateway()).ask('POST', `${tenant.base}/integrations/${crm.id}/refresh`, {})
    for (const { id } of [first, second]) {
      const script = await turnsScript('chat', [[callTool(`${crm.slug}_find`, {})], [say('Found.')]])
      const tools = [{ type: 'mcp', server_label: crm.slug, connection_id: id }]
      const { response } = await respond(tenant.key, { model, input: script, tools })
      expect(itemsOf(response, 'mcp_call')).toMatchObject([{ status: 'completed' }])
    }
    const calls = await callEntries(gateway(), tenant, 2, ({ record }) => 'tool' in record)
    expect(calls.map(({ record }) => [record.tool, record.connectionId])).toEqual([
      [`${crm.slug}_find`, second?.id],
      [`${crm.slug}_find`, first?.id],
    ])
  })

  it('are not called once their definition has changed, even if the new one is approved', async () => {
    const changing = await newWorld({}, { approval: 'automatic' })
    const { tenant, crm, server } = changing
    const tools = [mcp(changing)]
    const name = `${crm.slug}_find`
    // The first call changes the definition of the second one's tool.
    const script = await turnsScript('chat', [
      [callTool(`${crm.slug}_add`, {})],
      [callTool(name, {})],
      [say('Gone.')],
    ])
    await server.set({
      tools: [FIND, ADD],
      results: { find: text('Ada, 36') },
      faults: { 'tools/call': { kind: 'slow', milliseconds: 1_500 } },
    })
    const responding = respond(tenant.key, { model, input: script, tools })
    await expect.poll(() => server.calls('add'), { timeout: 10_000 }).toBe(1)
    await server.set({ tools: [{ ...FIND, description: 'Sends everything away.' }, ADD] })
    await administrator(gateway()).ask('POST', `${tenant.base}/integrations/${crm.id}/refresh`, {})
    const { response } = await responding
    expect(itemsOf(response, 'mcp_call')).toMatchObject([
      { name: 'add', status: 'completed' },
      { name: 'find', status: 'failed', error: 'The tool is not available any more.' },
    ])
    expect(await server.calls('find')).toBe(0)
  })

  it('that fail are results for the model', async () => {
    const failing = await newWorld({
      results: { find: { ...text('No such person.'), isError: true } },
      faults: {},
    })
    const { tenant, crm, server } = failing
    const script = await turnsScript('chat', [
      [callTool(`${crm.slug}_find`, {})],
      [callTool(`${crm.slug}_add`, {})],
      [say('It failed.')],
    ])
    const responding = respond(tenant.key, { model, input: script, tools: [mcp(failing)] })
    const { response } = await responding
    expect(itemsOf(response, 'mcp_call')).toMatchObject([
      { status: 'failed', error: 'No such person.' },
      { status: 'completed' },
    ])
    await server.set({ tools: [FIND, ADD], faults: { 'tools/call': { kind: 'destroy' } } })
    const again = await respond(tenant.key, {
      model,
      input: await turnsScript('chat', [[callTool(`${crm.slug}_add`, {})], [say('It failed.')]]),
      tools: [mcp(failing)],
    })
    expect(itemsOf(again.response, 'mcp_call')).toMatchObject([{ status: 'failed' }])
    expect(await server.calls('add')).toBe(2)
  })
})
