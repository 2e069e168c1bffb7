import { beforeAll, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { callEntries } from '../harness/records.ts'
import { openResponseSocket } from '../harness/response-socket.ts'
import { answered, inTurn } from '../harness/routed-model.ts'
import { jsonOf } from '../harness/send.ts'
import { addKey, addMember, administrator, createTenant, type Tenant } from '../harness/tenant.ts'
import { marker } from '../harness/upstream.ts'
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

  it('are listed for those who may run them, at once', async () => {
    const own = await createTenant(gateway())
    const member = await addMember(gateway(), own.base)
    const { key } = await addKey(gateway(), own.base, member)
    const definition = definitionOf([{ instructions: 'Hi' }])
    expect([await listed(own.key), await listed(key)]).toEqual([[], []])
    const agentId = await createAgent(own, definition)
    const id = `agent/${agentId}`
    expect([await listed(own.key), await listed(key)]).toEqual([[id], []])
    expect(await listed(own.key, gateway().llmUrl)).toEqual([])
    const readable = async (who: string) => (await ask(who, 'GET', `/v1/models/${id}`)).status
    expect([await readable(own.key), await readable(key), await readable(other.key)]).toEqual([200, 404, 404])
    const visible = { ...definition, visibility: 'organization' }
    await management().ask('PUT', `${own.base}/agents/${agentId}`, { version: 1, definition: visible })
    expect([await listed(own.key), await listed(key)]).toEqual([[id], [id]])
    const group = await management().ask<{ id: string }>('POST', `${own.base}/groups`, { name: marker() })
    const forGroup = { ...definition, visibility: 'groups', group_ids: [group.id] }
    await management().ask('PUT', `${own.base}/agents/${agentId}`, { version: 2, definition: forGroup })
    expect(await listed(key)).toEqual([])
    await management().ask('PUT', `${own.base}/groups/${group.id}/members/${member}`)
    expect(await listed(key)).toEqual([id])
    await management().ask('DELETE', `${own.base}/agents/${agentId}`)
    expect([await listed(own.key), await listed(key)]).toEqual([[], []])
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
    const scope = refused('model_access_denied', /scope agents/, 'permission_error')
    expect(await call(key, `agent/${hidden}`)).toEqual([403, scope])
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
    const refusedRead = await ask(models?.key ?? '', 'GET', runPath(runIdOf(response)))
    expect(refusedRead.status).toBe(403)
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
