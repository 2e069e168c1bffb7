import { beforeAll, describe, expect, it, vi } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { answered, inTurn } from '../harness/routed-model.ts'
import { jsonOf } from '../harness/send.ts'
import { addKey, addMember, administrator, createTenant, type Tenant, uniqueName } from '../harness/tenant.ts'
import { marker } from '../harness/upstream.ts'
import { createAgent, definitionOf, endedRun, post, trigger } from './support/agents.ts'
import { ask, type Json } from './support/response-calls.ts'

let tenant: Tenant
let other: Tenant

beforeAll(async () => {
  ;[tenant, other] = await Promise.all([createTenant(gateway()), createTenant(gateway())])
})

const management = () => administrator(gateway())
const get = async (path: string, key = tenant.key) => {
  const answer = await ask(key, 'GET', path)
  return { status: answer.status, body: jsonOf(answer) }
}
const UNKNOWN = '00000000-0000-4000-8000-00000000000a'
const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/
const refusal = (error: string, message: string | RegExp) => ({
  error,
  message: typeof message === 'string' ? message : expect.stringMatching(message),
})
const says = (text: string) => inTurn(gateway(), answered('chat', text, true))

describe.concurrent('agents', () => {
  it('are listed with their total, by search, limit and offset', async () => {
    const own = await createTenant(gateway())
    const names = ['Alpha', 'beta', 'Gamma translator']
    for (const name of names) {
      const definition = definitionOf([{ instructions: 'Hello.' }], { name, metadata: { team: 'x' } })
      await createAgent(own, definition)
    }
    const { status, body } = await get('/v1/agents/list', own.key)
    expect(status).toBe(200)
    expect(body.total).toBe(3)
    expect((body.items as Json[]).map(({ name }) => name)).toEqual(names)
    expect((body.items as Json[])[0]).toEqual({
      agentId: expect.stringMatching(/^[0-9a-f-]{36}$/),
      name: 'Alpha',
      description: 'Made by a test.',
      createdAt: expect.stringMatching(ISO),
      creatorName: 'Test user',
      metadata: { team: 'x' },
    })
    const page = await get('/v1/agents/list?limit=1&offset=1', own.key)
    expect(page.body).toMatchObject({ total: 3, items: [{ name: 'beta' }] })
    const found = await get('/v1/agents/list?search=TRANSLATOR&unknown=1', own.key)
    expect(found.body).toMatchObject({ total: 1, items: [{ name: 'Gamma translator' }] })
    expect((await get('/v1/agents/list?limit=0', own.key)).body).toEqual(refusal('Bad Request', /^limit: /))
  })

  it('have a detail with their inputs, models and recent runs', async () => {
    const script = await says('Done.')
    const definition = definitionOf(
      [{ instructions: `${script} {{City}}` }, { instructions: script, model: 'scripted-messages' }],
      {
        inputs: [{ name: 'City' }, { name: 'tone', required: false }],
        triggers: [{ kind: 'webhook', name: 'hook' }],
      },
    )
    const agentId = await createAgent(tenant, definition)
    const before = await get(`/v1/agents/${agentId.toUpperCase()}`)
    expect(before).toEqual({
      status: 200,
      body: {
        agentId,
        name: definition.name,
        description: 'Made by a test.',
        inputs: ['City', 'tone'],
        hasTriggers: true,
        modelsInUse: ['scripted-chat', 'scripted-messages'],
        recentRunIds: [],
        lastRunAtUtc: null,
        metadata: {},
      },
    })
    const { runId } = await trigger(tenant, agentId, { City: 'Paris' })
    const { body } = await get(`/v1/agents/${agentId}`)
    expect(body).toMatchObject({ recentRunIds: [runId], lastRunAtUtc: expect.stringMatching(ISO) })
  })

  it('are missing for those who may not see them', async () => {
    const [colleague, member] = await Promise.all([
      addMember(gateway(), tenant.base),
      addMember(gateway(), tenant.base),
    ])
    const group = await management().ask<{ id: string }>('POST', `${tenant.base}/groups`, {
      name: uniqueName('group'),
    })
    await management().ask('PUT', `${tenant.base}/groups/${group.id}/members/${member}`)
    const keys = {
      creator: tenant.key,
      colleague: (await addKey(gateway(), tenant.base, colleague)).key,
      member: (await addKey(gateway(), tenant.base, member)).key,
      stranger: other.key,
    }
    const script = await says('Done.')
    const seenBy = async (more: Json) => {
      const agentId = await createAgent(tenant, definitionOf([{ instructions: script }], more))
      const seen: string[] = []
      for (const [name, key] of Object.entries(keys)) {
        const { status, body } = await get(`/v1/agents/${agentId}`, key)
        const started = await post({ key }, '/v1/agents/runs', { agentId })
        const { body: list } = await get('/v1/agents/list', key)
        const isListed = (list.items as Json[]).some((item) => item.agentId === agentId)
        expect([started.status, isListed]).toEqual(status === 200 ? [202, true] : [404, false])
        if (status === 200) seen.push(name)
        else expect(body).toEqual(refusal('Not found', `Agent ${agentId} not found.`))
      }
      return seen
    }
    expect(await seenBy({})).toEqual(['creator'])
    expect(await seenBy({ visibility: 'groups', group_ids: [group.id] })).toEqual(['creator', 'member'])
    expect(await seenBy({ visibility: 'organization' })).toEqual(['creator', 'colleague', 'member'])
  })

  it('do not exist for a key without their scope, nor do their runs', async () => {
    const agentId = await createAgent(tenant, definitionOf([{ instructions: await says('Done.') }]))
    const { runId } = await trigger(tenant, agentId)
    const { key } = await addKey(gateway(), tenant.base, tenant.userId, { scopes: ['models', 'mcp'] })
    const unknown = '00000000-0000-4000-8000-00000000000b'
    const missing = (entity: string, id: string) => ({
      status: 404,
      body: refusal('Not found', `${entity} ${id} not found.`),
    })
    expect(await get('/v1/agents/list', key)).toEqual({ status: 200, body: { items: [], total: 0 } })
    for (const id of [agentId, unknown]) {
      expect(await get(`/v1/agents/${id}`, key)).toEqual(missing('Agent', id))
      const started = await post({ key }, '/v1/agents/runs', { agentId: id })
      expect({ status: started.status, body: jsonOf(started) }).toEqual(missing('Agent', id))
    }
    for (const id of [runId, unknown]) {
      for (const path of [`/v1/runs/${id}`, `/v1/runs/${id}/evals`]) {
        expect(await get(path, key)).toEqual(missing('Run', id))
      }
      const restarted = await post({ key }, `/v1/runs/${id}/restart`, {})
      expect({ status: restarted.status, body: jsonOf(restarted) }).toEqual(missing('Run', id))
    }
    // A malformed request is refused for every key.
    expect((await get('/v1/runs/x', key)).status).toBe(400)
    expect((await post({ key }, '/v1/agents/runs', {})).status).toBe(400)
  })
})

describe.concurrent('definitions', () => {
  const create = (definition: Json, created_by = tenant.userId) =>
    management().call('POST', `${tenant.base}/agents`, { created_by, definition })

  it('that contradict themselves are refused by name', async () => {
    const faults: Array<[Json, RegExp]> = [
      [
        definitionOf([{ instructions: 'Hello {{nobody}}' }]),
        /steps\.0\.instructions: there is no input "nobody"/,
      ],
      [definitionOf([{ instructions: '{{steps.1.output}}' }]), /output of step 1 is not known before step 1/],
      [definitionOf([{ instructions: 'x' }], { visibility: 'groups' }), /group_ids/],
      [definitionOf([{ instructions: 'x' }], { inputs: [{ name: 'a' }, { name: 'a' }] }), /inputs\.1\.name/],
      [
        definitionOf([{ instructions: 'x' }], {
          inputs: [{ name: 'a' }],
          triggers: [{ kind: 'schedule', name: 's', cron: '0 9 * * *' }],
        }),
        /the input "a" is missing/,
      ],
      [
        definitionOf([{ instructions: 'x' }], {
          triggers: [{ kind: 'schedule', name: 's', cron: '0 25 * * *' }],
        }),
        /the field of the hour is not valid/,
      ],
      [
        definitionOf([
          {
            instructions: 'x',
            output: { format: 'json_schema', schema: { properties: { a: { pattern: '(a+)+' } } } },
          },
        ]),
        /regular expressions are not supported/,
      ],
    ]
    for (const [definition, message] of faults) {
      const answer = await create(definition)
      expect([answer.status, jsonOf(answer).message]).toEqual([422, expect.stringMatching(message)])
    }
    const misshapen: typeof faults = [
      [definitionOf([]), /steps: must hold at least one step/],
      [definitionOf([{ instructions: 'x', modle: 'y' }]), /modle/],
    ]
    for (const [definition, message] of misshapen) {
      const answer = await create(definition)
      expect([answer.status, jsonOf(answer).message]).toEqual([400, expect.stringMatching(message)])
    }
    const group_ids = [UNKNOWN]
    const ghost = await create(definitionOf([{ instructions: 'x' }], { visibility: 'groups', group_ids }))
    expect([ghost.status, jsonOf(ghost)]).toEqual([404, refusal('Not found', `Group ${UNKNOWN} not found.`)])
    expect((await create(definitionOf([{ instructions: 'x' }]), other.userId)).status).toBe(404)
  })

  it('have immutable versions, and a change names the one that it is made for', async () => {
    const definition = definitionOf([{ instructions: 'One' }])
    const agentId = await createAgent(tenant, definition)
    const path = `${tenant.base}/agents/${agentId}`
    const next = { ...definition, description: 'Changed.' }
    const changed = await management().ask('PUT', path, { version: 1, definition: next })
    expect(changed).toMatchObject({ version: 2, description: 'Changed.' })
    const late = await management().call('PUT', path, { version: 1, definition })
    expect([late.status, jsonOf(late)]).toEqual([422, refusal('Unprocessable Entity', /its version is 2/)])
    const racing = await Promise.all(
      ['a', 'b', 'c'].map((description) =>
        management().call('PUT', path, { version: 2, definition: { ...definition, description } }),
      ),
    )
    expect(racing.map(({ status }) => status).sort()).toEqual([200, 422, 422])
    const versions = await management().ask<{ data: Json[] }>('GET', `${path}/versions`)
    expect(versions.data.map(({ version, author }) => [version, author])).toEqual([
      [3, 'admin_token'],
      [2, 'admin_token'],
      [1, 'admin_token'],
    ])
    const first = await management().ask('GET', `${path}/versions/1`)
    expect(first.definition).toMatchObject({ description: 'Made by a test.' })
    expect((await management().call('GET', `${path}/versions/9`)).status).toBe(404)
    const foreign = `${other.base}/agents/${agentId}`
    for (const [method, target] of [
      ['GET', foreign],
      ['DELETE', foreign],
      ['GET', `${foreign}/versions`],
      ['GET', `${foreign}/runs`],
    ] as const) {
      expect((await management().call(method, target)).status).toBe(404)
    }
    const taken = await create(definition)
    expect(taken.status).toBe(422)
    await management().ask('DELETE', path)
    expect((await create(definition)).status).toBe(201)
  })
})

describe('runs of an agent', () => {
  it('are listed for administrators without what people wrote', async () => {
    const text = marker()
    const agentId = await createAgent(
      tenant,
      definitionOf([{ instructions: `${await says(`Answer ${text}`)} {{a}}` }], { inputs: [{ name: 'a' }] }),
    )
    const { runId } = await trigger(tenant, agentId, { a: text })
    await endedRun(tenant, runId)
    const list = await management().call('GET', `${tenant.base}/agents/${agentId}/runs?status=success`)
    expect(jsonOf(list)).toMatchObject({ data: [{ id: runId, origin: 'api', status: 'success' }] })
    const one = await management().call('GET', `${tenant.base}/runs/${runId}`)
    expect(list.text + one.text).not.toContain(text)
    expect((await management().call('GET', `${other.base}/runs/${runId}`)).status).toBe(404)
    expect((await management().call('POST', `${other.base}/runs/${runId}/cancel`)).status).toBe(404)
    await vi.waitFor(async () => {
      const audit = await management().ask<{ data: Json[] }>(
        'GET',
        `${tenant.base}/audit?surface=agents&limit=200`,
      )
      const calls = audit.data.filter(({ action }) => String(action).includes(runId))
      expect(calls.map(({ action }) => action)).toContain(`RUN /v1/runs/${runId} step 1 attempt 1`)
    })
  })
})
