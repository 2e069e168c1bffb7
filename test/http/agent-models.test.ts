import { beforeAll, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { callEntries } from '../harness/records.ts'
import { openResponseSocket } from '../harness/response-socket.ts'
import { answered, inTurn } from '../harness/routed-model.ts'
import { jsonOf } from '../harness/send.ts'
import { addKey, administrator, createTenant, type Tenant } from '../harness/tenant.ts'
import { callAgent, readRunResponse, refused, runPath } from './support/agent-responses.ts'
import { createAgent, definitionOf } from './support/agents.ts'
import { ask, expectJson, type Json, type ToldResponse } from './support/response-calls.ts'

let tenant: Tenant
let other: Tenant

beforeAll(async () => {
  ;[tenant, other] = await Promise.all([createTenant(gateway()), createTenant(gateway())])
})

const management = () => administrator(gateway())
const says = (text: string) => inTurn(gateway(), answered('chat', text, true))
const runIdOf = ({ id }: { id: string }) => id.slice('resp_run_'.length)

describe.concurrent('agents as models', () => {
  const listed = async (key: string, baseUrl = gateway().baseUrl) => {
    const { data } = expectJson<{ data: Array<{ id: string }> }>(
      await ask(key, 'GET', '/v1/models', { baseUrl }),
    )
    return data.map(({ id }) => id).filter((id) => id.startsWith('agent/'))
  }

  it('are in no list of models, whose ids every surface takes, and in the list of agents', async () => {
    const own = await createTenant(gateway())
    const agentId = await createAgent(own, definitionOf([{ instructions: 'Hi' }]))
    const summaries = async () => {
      const answer = await ask(own.key, 'GET', '/v1/agents/list')
      return expectJson<{ items: Array<{ agentId: string }> }>(answer).items.map((agent) => agent.agentId)
    }
    expect(await summaries()).toEqual([agentId])
    expect([await listed(own.key), await listed(own.key, gateway().llmUrl)]).toEqual([[], []])
    expect((await ask(own.key, 'GET', `/v1/models/agent/${agentId}`)).status).toBe(404)
  })

  it('are unknown where they may not be run', async () => {
    const hidden = await createAgent(tenant, definitionOf([{ instructions: 'Hi' }]))
    const call = async (key: string, model: string, path = '/v1/responses', more: Json = { input: '' }) => {
      const answer = await ask(key, 'POST', path, { body: JSON.stringify({ model, ...more }) })
      return [answer.status, jsonOf(answer)]
    }
    const unknown = [400, refused('model_not_found', /does not exist/)]
    expect(await call(other.key, `agent/${hidden}`)).toEqual(unknown)
    expect(await call(tenant.key, 'agent/x')).toEqual(unknown)
    expect(await call(tenant.key, 'agent/')).toEqual(unknown)
    const { key } = await addKey(gateway(), tenant.base, tenant.userId, { scopes: ['models'] })
    // The answer is that of a missing agent (interface, Authentication 6).
    expect(await call(key, `agent/${hidden}`)).toEqual(unknown)
    expect(await listed(key)).toEqual([])
    const messages = [{ role: 'user', content: 'Hi' }]
    expect(await call(tenant.key, `agent/${hidden}`, '/v1/chat/completions', { messages })).toEqual([
      400,
      refused('model_not_found', /agent .* POST \/v1\/responses/),
    ])
    const [status, body] = await call(tenant.key, `agent/${hidden}`, '/v1/messages', {
      messages,
      max_tokens: 10,
    })
    expect([status, (body as Json).error]).toMatchObject([404, { type: 'not_found_error' }])
    const compacted = await call(tenant.key, `agent/${hidden}`, '/v1/responses/compact', { input: 'Hi' })
    expect(compacted).toEqual([400, refused('model_not_found', /agent/)])
  })

  it('are run and read by keys of agents', async () => {
    const agentId = await createAgent(tenant, definitionOf([{ instructions: await says('Scoped.') }]))
    const [agents, models] = await Promise.all(
      [['agents'], ['models']].map((scopes) => addKey(gateway(), tenant.base, tenant.userId, { scopes })),
    )
    const { response } = await callAgent({ key: agents?.key ?? '' }, agentId)
    expect(await readRunResponse({ key: agents?.key ?? '' }, runIdOf(response))).toEqual(response)
    const key = models?.key ?? ''
    const message = `Response resp_run_${runIdOf(response)} not found.`
    for (const [method, rest] of [
      ['GET', ''],
      ['GET', '?stream=true'],
      ['GET', '/input_items'],
      ['POST', '/cancel'],
      ['DELETE', ''],
    ] as const) {
      const answer = await ask(key, method, runPath(runIdOf(response), rest))
      expect([answer.status, (jsonOf(answer).error as Json).message]).toEqual([404, message])
    }
  })
})

describe('a call of an agent', () => {
  it('is counted and recorded as a call of its surface', async () => {
    const own = await createTenant(gateway())
    const agentId = await createAgent(own, definitionOf([{ instructions: await says('Counted.') }]))
    await callAgent(own, agentId)
    const body = JSON.stringify({ model: `agent/${agentId}`, temperature: 1 })
    expect((await ask(own.key, 'POST', '/v1/responses', { body })).status).toBe(400)
    const isMeant = ({ action }: { action: string }) => action === 'POST /v1/responses'
    const records = await callEntries(gateway(), own, 2, isMeant)
    expect(records.map(({ status, model, credits_settled }) => [status, model, credits_settled])).toEqual([
      [400, null, 0],
      [200, null, 0],
    ])
  })

  it('is refused at the limit of its caller', async () => {
    const limited = await createTenant(gateway(), { organization: { rate_limit_per_minute: 1 } })
    const agentId = await createAgent(limited, definitionOf([{ instructions: 'Hi' }]))
    const body = JSON.stringify({ model: `agent/${agentId}`, background: true })
    const [first, second] = [
      await ask(limited.key, 'POST', '/v1/responses', { body }),
      await ask(limited.key, 'POST', '/v1/responses', { body }),
    ]
    expect([first?.status, second?.status]).toEqual([200, 429])
    expect(second?.headers['retry-after']).toMatch(/^[1-9]/)
    const runId = runIdOf(jsonOf(first as never) as unknown as ToldResponse)
    await management().ask('POST', `${limited.base}/runs/${runId}/cancel`)
  })

  it('is not served on a WebSocket', async () => {
    const agentId = await createAgent(tenant, definitionOf([{ instructions: 'Hi' }]))
    const socket = await openResponseSocket(gateway(), tenant.key)
    const [event] = await socket.create({ model: `agent/${agentId}`, input: 'Hi' })
    expect(event).toMatchObject({
      type: 'error',
      status: 400,
      error: { code: 'model_not_found', message: expect.stringContaining('over HTTP') },
    })
    socket.close()
  })
})
