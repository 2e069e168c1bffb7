import { beforeAll, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { answered, inTurn } from '../harness/routed-model.ts'
import { createTenant, type Tenant } from '../harness/tenant.ts'
import { createAgent, definitionOf, endedRun, trigger } from './support/agents.ts'
import { listItems } from './support/response-calls.ts'

let tenant: Tenant

beforeAll(async () => {
  tenant = await createTenant(gateway())
})

describe('a run', () => {
  it('of one step ends with the answer of its model', async () => {
    const script = await inTurn(gateway(), answered('chat', 'Bonjour.', true))
    const agentId = await createAgent(tenant, definitionOf([{ instructions: `${script} Translate.` }]))
    const { runId, conversationId } = await trigger(tenant, agentId)
    const run = await endedRun(tenant, runId)
    expect(run).toEqual({
      runId,
      agentId,
      conversationId,
      createdAtUtc: expect.stringMatching(/^\d{4}-.*Z$/),
      endedAtUtc: expect.stringMatching(/^\d{4}-.*Z$/),
      result: JSON.stringify({ role: 'assistant', parts: [{ type: 'text', text: 'Bonjour.' }] }),
      status: 'success',
    })
    const { data } = await listItems(tenant.key, `/v1/conversations/${conversationId}/items?order=asc`)
    expect(data.map(({ type, role }) => [type, role])).toEqual([
      ['message', 'user'],
      ['message', 'assistant'],
    ])
  })
})
