import { setTimeout as pause } from 'node:timers/promises'
import { createConnection, createUnreadIntegration } from '../../test/harness/connections.ts'
import { grantIntegration, startMcpServer } from '../../test/harness/integrations.ts'
import { entitle } from '../../test/harness/mcp.ts'
import type { GatewayAddress } from '../../test/harness/start-gateway.ts'
import { administrator, bearer, createTenant, type Tenant, uniqueName } from '../../test/harness/tenant.ts'
import { workspaceCaller } from '../../test/harness/workspaces.ts'

const MODEL = 'scripted-chat'
const TRIGGER = 'hook'
const FILE = 'notes.txt'

/** An organization with one object of each kind, all of them of one user. */
export interface OwnedObjects {
  tenant: Tenant
  /** The user's key. */
  key: string
  /** Signs calls of the agent's webhook. */
  webhookSecret: string
  /** Values of the parameters of paths in the management API, by name; `grantId` also by the path before it. */
  management: Readonly<Record<string, string>>
  /** The same of the public API. */
  public: Readonly<Record<string, string>>
}

type Created = { id: string }

/** Creates them through the APIs alone. */
export async function createObjects(gateway: GatewayAddress): Promise<OwnedObjects> {
  const { ask } = administrator(gateway)
  const tenant = await createTenant(gateway, { models: [] })
  const { base, userId, key } = tenant
  await entitle(gateway, base, userId)
  const group = await ask<Created>('POST', `${base}/groups`, { name: 'Group' })
  await ask('PUT', `${base}/groups/${group.id}/members/${userId}`)
  // Of the user alone, so that a colleague may use no model.
  const subject = { subject_type: 'user', subject_id: userId }
  const grant = await ask<Created>('POST', `${base}/grants`, { ...subject, model_id: '*' })
  const policy = await ask<Created>('POST', `${base}/dlp/policies`, POLICY)
  const catalogue = await createModel(gateway)
  const tools = await createTools(gateway, tenant, group.id)
  const agent = await ask<Created>('POST', `${base}/agents`, { created_by: userId, definition: AGENT })
  const hook = await ask<{ secret: string }>('POST', `${base}/agents/${agent.id}/triggers/${TRIGGER}/secret`)
  const made = await createConversation(gateway, tenant)
  const run = await call<{ runId: string }>(gateway, key, '/v1/agents/runs', { agentId: agent.id })
  const callId = await latestCall(gateway, tenant)
  const both = { agentId: agent.id, runId: run.runId, groupId: group.id, connectionId: tools.connectionId }
  return {
    tenant,
    key,
    webhookSecret: hook.secret,
    management: {
      ...both,
      callId,
      organizationId: tenant.organizationId,
      userId,
      createdBy: userId,
      keyId: tenant.keyId,
      policyId: policy.id,
      'grants/grantId': grant.id,
      'integration-grants/grantId': tools.grantId,
      integrationId: tools.integrationId,
      ...catalogue,
      entitlement: 'personal_api_key_access',
      version: '1',
      trigger: TRIGGER,
    },
    public: { ...both, ...made, integrationId: tools.slug, modelId: MODEL, name: TRIGGER, path: FILE },
  }
}

const POLICY = { name: 'Policy', directions: ['response'], rules: [{ category: 'secret', action: 'warn' }] }
const AGENT = {
  name: 'Agent',
  description: 'Answers.',
  steps: [{ instructions: 'Answer.', model: MODEL, tools: { hosted: [] } }],
  triggers: [{ kind: 'webhook', name: TRIGGER }],
}

/** A call of the tenant: those of its conversation have been made, but their records come after the answers. */
async function latestCall(gateway: GatewayAddress, { base }: Tenant): Promise<string> {
  const { ask } = administrator(gateway)
  for (let attempt = 0; attempt < 50; attempt++) {
    await ask('POST', `${base}/ledger/flush`)
    const [call] = (await ask<{ data: Created[] }>('GET', `${base}/calls?limit=1`)).data
    if (call) return call.id
    await pause(100)
  }
  throw new Error('no call was recorded')
}

/** A provider and a model of it that nothing else uses. */
async function createModel(gateway: GatewayAddress): Promise<{ providerId: string; modelId: string }> {
  const { ask } = administrator(gateway)
  const { id: providerId } = await ask<Created>('POST', '/providers', {
    name: uniqueName('provider'),
    kind: 'openai-compatible',
    base_url: `${gateway.standIns.modelUpstream}/v1`,
    credential: 'unused',
  })
  const modelId = uniqueName('model')
  await ask('PUT', `/models/${modelId}`, {
    owned_by: 'test',
    context_window: 1_000,
    max_output_tokens: 100,
    prices: { input: 1, output: 1 },
    routes: [{ provider_id: providerId, upstream_model: MODEL }],
  })
  return { providerId, modelId }
}

/** An integration whose server runs, a grant of it, and a connection that is shared with a group. */
async function createTools(gateway: GatewayAddress, tenant: Tenant, groupId: string) {
  const { ask } = administrator(gateway)
  const server = await startMcpServer(gateway, { tools: [{ name: 'echo', inputSchema: { type: 'object' } }] })
  const slug = await createUnreadIntegration(gateway, tenant, { url: server.url, granted: false })
  const grant = await grantIntegration(gateway, tenant, { integration: slug })
  const connection = await createConnection(gateway, tenant, slug, { user_id: tenant.userId })
  await ask('PUT', `${tenant.base}/connections/${connection.id}/shares/${groupId}`, { permission: 'use' })
  const list = await ask<{ data: Array<Created & { slug: string }> }>('GET', `${tenant.base}/integrations`)
  const integrationId = list.data.find((item) => item.slug === slug)?.id ?? ''
  return { slug, integrationId, grantId: grant.id, connectionId: connection.id }
}

/** A stored response with its conversation, an item of it, and a file. */
async function createConversation(gateway: GatewayAddress, tenant: Tenant) {
  const response = await call<{ id: string; conversation: Created; output: Created[] }>(
    gateway,
    tenant.key,
    '/v1/responses',
    { model: MODEL, input: 'Hello.', store: true },
  )
  const conversationId = response.conversation.id
  const { organizationId, userId } = tenant
  const files = workspaceCaller(gateway.toolsUrl, { organizationId, userId, workspaceId: conversationId })
  await files.call('write_file', { path: FILE, content: 'Hello.' })
  return { responseId: response.id, conversationId, itemId: response.output[0]?.id ?? '' }
}

/** Calls the public API. @throws unless the answer is a success. */
async function call<Body>(gateway: GatewayAddress, key: string, path: string, body: object): Promise<Body> {
  const answer = await fetch(gateway.baseUrl + path, {
    method: 'POST',
    headers: bearer(key),
    body: JSON.stringify(body),
  })
  if (!answer.ok) throw new Error(`POST ${path}: ${answer.status} ${await answer.text()}`)
  return (await answer.json()) as Body
}
