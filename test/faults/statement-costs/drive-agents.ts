import { randomUUID } from 'node:crypto'
import { signDelivery } from '../../../scripts/node/qstash/signature.ts'
import { signature } from '../../../src/agents/triggers/webhook-signature.ts'
import { bearer } from '../../harness/tenant.ts'
import { definitionOf, endedRun, evaluated } from '../../http/support/agents.ts'
import type { Json } from './surfaces.ts'
import type { World } from './world.ts'

/** Agents from their definition to the verdicts of their runs. @returns an agent with runs. */
export async function driveAgents(world: World): Promise<string> {
  const { surfaces, tenant, unique } = world
  const { base, key } = tenant
  const definition = definitionOf(
    [
      { instructions: 'Greet Ada. {{City}}', objective: 'The greeting names "Ada".' },
      { instructions: 'Say more.' },
    ],
    {
      name: unique('agent'),
      inputs: [{ name: 'City', required: false }],
      triggers: [
        { kind: 'schedule', name: 'daily', cron: '0 6 * * *' },
        { kind: 'webhook', name: 'hook' },
      ],
    },
  )
  const created = await surfaces.manage<{ id: string }>('POST', `${base}/agents`, {
    created_by: tenant.userId,
    definition,
  })
  const path = `${base}/agents/${created.id}`
  await surfaces.manage('GET', path)
  await surfaces.manage('GET', `${base}/agents?limit=2`)
  await surfaces.manage('GET', `${base}/agents?name=${definition.name}`)
  await surfaces.manage('PUT', path, { version: 1, definition: { ...definition, description: 'Another.' } })
  await surfaces.manage('GET', `${path}/versions?limit=1`)
  await surfaces.manage('GET', `${path}/versions/1`)
  await surfaces.ask(key, 'GET', '/v1/agents/list')
  await surfaces.ask(key, 'GET', '/v1/agents/list?search=agent')
  await surfaces.ask(key, 'GET', `/v1/agents/${created.id}`)
  await driveRuns(world, created.id)
  await driveTriggers(world, created.id)
  const removed = await surfaces.manage<{ id: string }>('POST', `${base}/agents`, {
    created_by: tenant.userId,
    definition: { ...definition, name: unique('removed') },
  })
  await surfaces.manage('DELETE', `${base}/agents/${removed.id}`)
  return created.id
}

async function driveRuns({ surfaces, tenant }: World, agentId: string): Promise<void> {
  const { base, key } = tenant
  const { baseUrl } = surfaces.address
  const begin = (headers = {}) =>
    surfaces.ask<{ runId: string }>(key, 'POST', '/v1/agents/runs', { agentId, inputs: [] }, headers)
  const { runId } = await begin({ 'idempotency-key': randomUUID() })
  await endedRun(tenant, runId, { baseUrl, timeout: 60_000 })
  await surfaces.ask(key, 'GET', `/v1/runs/${runId}`)
  await evaluated(tenant, runId, { baseUrl, timeout: 60_000 })
  await surfaces.ask(key, 'GET', `/v1/runs/${runId}/evals`)
  await surfaces.manage('GET', `${base}/runs/${runId}`)
  await surfaces.manage('GET', `${base}/agents/${agentId}/runs?limit=2`)
  await surfaces.manage('GET', `${base}/agents/${agentId}/runs?limit=2&status=failure`)
  const restarted = await surfaces.ask<{ runId: string }>(key, 'POST', `/v1/runs/${runId}/restart`)
  await endedRun(tenant, restarted.runId, { baseUrl, timeout: 60_000 })
  await surfaces.request('POST', `/api${base}/runs/${runId}/rerun`, {
    headers: bearer(surfaces.address.adminToken),
    body: { step: 1 },
  })
  await endedRun(tenant, runId, { baseUrl, timeout: 60_000 })
  const cancelled = await begin()
  await surfaces.manage('POST', `${base}/runs/${cancelled.runId}/cancel`)
  await surfaces.request('GET', `/v1/runs/${randomUUID()}`, { headers: bearer(key) })
  // An agent as a model.
  await surfaces.ask(key, 'POST', '/v1/responses', { model: `agent/${agentId}`, input: 'Hello.' })
}

async function driveTriggers({ surfaces, tenant }: World, agentId: string): Promise<void> {
  const { variables, baseUrl } = surfaces.address
  const deliver = (path: string, body: Json) => {
    const text = JSON.stringify(body)
    const signed = signDelivery(variables.QSTASH_CURRENT_SIGNING_KEY ?? '', baseUrl + path, Buffer.from(text))
    const headers = { 'upstash-signature': signed, 'upstash-message-id': randomUUID() }
    return surfaces.request('POST', path, { headers, body: text })
  }
  const of = { organization_id: tenant.organizationId }
  await deliver('/internal/agents/schedules', { ...of, agent_id: agentId, trigger: 'daily' })
  await deliver('/internal/agents/runs', { ...of, run_id: randomUUID(), rev: 1 })
  await deliver('/internal/agents/verdicts', { ...of, run_id: randomUUID(), number: 1 })
  const secretPath = `${tenant.base}/agents/${agentId}/triggers/hook/secret`
  const { secret } = await surfaces.manage<{ secret: string }>('POST', secretPath)
  const [id, timestamp, body] = [randomUUID(), String(Math.floor(Date.now() / 1_000)), '{"inputs":[]}']
  const headers = {
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': `v1,${signature(secret, { id, timestamp }, body)}`,
  }
  await surfaces.request('POST', `/v1/agents/${agentId}/triggers/hook`, { headers, body })
}
