import { callMcpTool, sendMcp } from '../../harness/mcp.ts'
import { bearer } from '../../harness/tenant.ts'
import { longConversation } from '../../http/support/compactions.ts'
import { COMPACT_ROUTE, MODEL_ROUTES, RESPONSES_ROUTE } from '../../matrices/routes.ts'
import type { Json } from './surfaces.ts'
import { TOOL, type World } from './world.ts'

interface Response extends Json {
  id: string
  conversation: { id: string }
  output: Array<{ id: string }>
}

/** Model calls, with those that are refused. */
export async function driveCalls({ surfaces, tenant }: World): Promise<void> {
  const { key } = tenant
  for (const route of MODEL_ROUTES) {
    await surfaces.ask(key, 'POST', route.path, route.request('script:canned'))
    if (route.generates)
      await surfaces.ask(key, 'POST', route.path, route.request('script:canned', { stream: true }))
  }
  const { models } = await surfaces
    .ask<{ data: Array<{ id: string }> }>(key, 'GET', '/v1/models')
    .then(({ data }) => ({ models: data.map(({ id }) => id) }))
  await surfaces.ask(key, 'GET', `/v1/models/${models.find((id) => !id.startsWith('agent/'))}`)
  await surfaces.request('GET', '/v1/models', { headers: bearer('hg_unknown_key') })
  await surfaces.request('GET', '/api/hello')
  await surfaces.request('HEAD', '/api/hello')
  await surfaces.request('GET', '/health')
  await surfaces.request('GET', '/health/ready')
  await surfaces.request('GET', '/.well-known/oauth-protected-resource')
  await surfaces.request('GET', '/.well-known/oauth-protected-resource/v1/mcp')
}

/** Responses that begin, continue, fork, fail, are read, cancelled and deleted. */
export async function driveResponses(world: World): Promise<void> {
  const { surfaces, tenant, toolTurn } = world
  const { key } = tenant
  const create = (text: string, more: Json = {}) =>
    surfaces.ask<Response>(key, 'POST', '/v1/responses', RESPONSES_ROUTE.request(text, more))
  const first = await create('script:canned')
  const second = await create('script:canned', { previous_response_id: first.id })
  const forked = await create('script:canned', { previous_response_id: first.id })
  const conversation = `/v1/conversations/${second.conversation.id}`
  await create('script:canned', { conversation: second.conversation.id })
  const [item] = second.output
  await create('script:canned', {
    input: [
      { type: 'item_reference', id: item?.id },
      { role: 'user', content: 'script:canned' },
    ],
  })
  await create(await toolTurn(), { stream: true })
  await surfaces.request('POST', '/v1/responses', {
    headers: bearer(key),
    body: RESPONSES_ROUTE.request('script:canned', { previous_response_id: `${first.id.slice(0, -1)}A` }),
  })
  await surfaces.request('POST', '/v1/responses', {
    headers: bearer(key),
    body: RESPONSES_ROUTE.request('x', { conversation: 'conv_0000000000000000000000' }),
  })
  await surfaces.ask(key, 'GET', `/v1/responses/${second.id}`)
  await surfaces.ask(key, 'GET', `/v1/responses/${second.id}?stream=true&starting_after=2`)
  await surfaces.ask(key, 'GET', `/v1/responses/${second.id}/input_items?limit=1`)
  const items = await surfaces.ask<{ data: Array<{ id: string }> }>(
    key,
    'GET',
    `${conversation}/items?limit=2`,
  )
  await surfaces.ask(key, 'GET', `${conversation}/items?limit=2&after=${items.data[0]?.id}`)
  await surfaces.ask(key, 'GET', `${conversation}/items/${items.data[0]?.id}`)
  await surfaces.ask(key, 'GET', `${conversation}/files`)
  await surfaces.request('GET', `${conversation}/files/none.txt`, { headers: bearer(key) })
  await surfaces.request('GET', '/v1/responses', { headers: bearer(key) })
  await surfaces.ask(key, 'POST', COMPACT_ROUTE.path, {
    model: RESPONSES_ROUTE.model,
    input: longConversation('script:canned'),
  })
  const background = await create('script:long-stream tokens=50', { background: true })
  await surfaces.request('POST', `/v1/responses/${background.id}/cancel`, { headers: bearer(key) })
  await surfaces.ask(key, 'DELETE', `/v1/responses/${forked.id}`)
  await driveApproval(world)
  // A response whose conversation another response continues.
  await surfaces.ask(key, 'DELETE', `/v1/responses/${first.id}`)
}

/** A call that waits for the approval of its caller, and is made with it. */
async function driveApproval({ surfaces, tenant, integration, effectTurn }: World): Promise<void> {
  const create = (more: Json) =>
    surfaces.ask<{ id: string; output: Array<{ id: string; type: string }> }>(
      tenant.key,
      'POST',
      '/v1/responses',
      {
        ...RESPONSES_ROUTE.request('', { tools: [{ type: 'mcp', server_label: integration.slug }] }),
        ...more,
      },
    )
  // Another surface replaces the rules by none.
  await surfaces.manage('PUT', `${tenant.base}/tools`, {
    approvals: [{ integration: integration.slug, calls: 'effects' }],
  })
  const waiting = await create({ input: await effectTurn() })
  const request = waiting.output.find(({ type }) => type === 'mcp_approval_request')
  const approval = { type: 'mcp_approval_response', approval_request_id: request?.id, approve: true }
  await create({ previous_response_id: waiting.id, input: [approval] })
}

/** The MCP gateway with its own tools and those of an integration. */
export async function driveMcp({ surfaces, tenant, integration }: World, agentId: string): Promise<void> {
  const { address } = surfaces
  const { key } = tenant
  const call = (name: string, input: Json = {}) => callMcpTool(address, key, name, input)
  // These requests are not made by `surfaces`, which has to know their route.
  await surfaces.request('POST', '/v1/mcp', { headers: bearer(key), body: '{}' })
  await sendMcp(address, key, 'tools/list')
  await call(`${integration.slug}_${TOOL}`, { text: 'Ada' })
  await call('platform_search_tools', { query: 'find' })
  await call('platform_get_tool_schemas', { tools: [`${integration.slug}_${TOOL}`] })
  for (const name of ['whoami', 'list_models', 'list_integrations', 'list_connections', 'list_agents'])
    await call(`platform_${name}`)
  for (const group_by of ['model', 'key', 'day']) await call('platform_get_usage', { group_by })
  await call('platform_list_agents', { search: 'a' })
  await call('platform_get_agent', { agent_id: agentId, agentId })
}
