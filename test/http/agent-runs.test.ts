import { beforeAll, describe, expect, it } from 'vitest'
import { gateway, query } from '../harness/gateway.ts'
import { answered, failed, inTurn } from '../harness/routed-model.ts'
import { jsonOf } from '../harness/send.ts'
import { addKey, addMember, administrator, createTenant, type Tenant } from '../harness/tenant.ts'
import { marker, seenRequest, seenRequests } from '../harness/upstream.ts'
import {
  createAgent,
  definitionOf,
  endedRun,
  evaluated,
  judgement,
  post,
  readRun,
  resultText,
  runDetails,
  trigger,
} from './support/agents.ts'
import { ask, listItems } from './support/response-calls.ts'

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

describe.concurrent('a run', () => {
  it('of one step ends with the answer of its model', async () => {
    const script = await says('Bonjour.')
    const agentId = await createAgent(tenant, definitionOf([{ instructions: `${script} Translate.` }]))
    const { runId, conversationId } = await trigger(tenant, agentId)
    const run = await endedRun(tenant, runId)
    expect(run).toEqual({
      runId,
      agentId,
      conversationId,
      createdAtUtc: expect.stringMatching(ISO),
      endedAtUtc: expect.stringMatching(ISO),
      result: JSON.stringify({ role: 'assistant', parts: [{ type: 'text', text: 'Bonjour.' }] }),
      status: 'success',
    })
    expect(conversationId).not.toBe(runId)
    const { data } = await listItems(tenant.key, `/v1/conversations/${conversationId}/items?order=asc`)
    expect(data.map(({ type, role }) => [type, role])).toEqual([
      ['message', 'user'],
      ['message', 'assistant'],
    ])
  })

  it('of several steps passes inputs and earlier outputs on, and drops unknown inputs', async () => {
    const text = marker()
    const [first, second] = await Promise.all([says('the first {{City}}'), says('the end')])
    const agentId = await createAgent(
      tenant,
      definitionOf(
        [
          { instructions: `${first} ${text}-one in {{ City }}, {{tone}}, \\{{City}}` },
          { instructions: `${second} ${text}-two after "{{steps.1.output}}"`, name: 'Second' },
        ],
        { inputs: [{ name: 'City' }, { name: 'tone', required: false, default: 'kind' }] },
      ),
    )
    const { runId } = await trigger(tenant, agentId, { City: '{{tone}} Paris', city: 'London', other: 'x' })
    expect(resultText(await endedRun(tenant, runId))).toBe('the end')
    const [one] = await seenRequests(gateway(), `${text}-one`)
    // A value is text, whatever is in it.
    expect(one?.body).toContain(`${text}-one in {{tone}} Paris, kind, {{City}}`)
    const two = (await seenRequests(gateway(), `${text}-two`)).at(-1)
    expect(two?.body).toContain('-two after \\"the first {{City}}\\"')
    expect(two?.body).not.toContain('London')
    const { attempts, cost } = await runDetails(tenant, runId)
    expect(attempts.map(({ step, attempt, status }) => [step, attempt, status])).toEqual([
      [1, 1, 'completed'],
      [2, 1, 'completed'],
    ])
    expect(cost).toBe(attempts.reduce((sum, each) => sum + Number(each.cost), 0))
    expect(Number(cost)).toBeGreaterThan(0)
  })

  it('is refused without a required input, and with a body that is not valid', async () => {
    const agentId = await createAgent(
      tenant,
      definitionOf([{ instructions: '{{City}}' }], { inputs: [{ name: 'City' }] }),
    )
    const refused = async (body: unknown) => {
      const answer = await post(tenant, '/v1/agents/runs', body)
      return [answer.status, jsonOf(answer)]
    }
    expect(await refused({ agentId, inputs: [{ name: 'city', value: 'x' }] })).toEqual([
      422,
      refusal('Unprocessable Entity', /"City"/),
    ])
    expect(await refused({ inputs: [] })).toEqual([400, refusal('Bad Request', /^agentId: /)])
    expect(await refused({ agentId: 7 })).toEqual([400, refusal('Bad Request', /^agentId: /)])
    expect(await refused({ agentId, inputs: [{ name: 'City' }] })).toEqual([
      400,
      refusal('Bad Request', /^inputs\.0\.value: /),
    ])
    expect(await refused([])).toEqual([400, refusal('Bad Request', /object/)])
    expect(await refused({ agentId: UNKNOWN })).toEqual([
      404,
      refusal('Not found', `Agent ${UNKNOWN} not found.`),
    ])
    expect(await refused({ agentId: 'x' })).toEqual([404, refusal('Not found', 'Agent x not found.')])
    const broken = await ask(tenant.key, 'POST', '/v1/agents/runs', { body: '{"agentId"' })
    expect([broken.status, jsonOf(broken)]).toEqual([400, refusal('Bad Request', /JSON/)])
  })

  it('is its user’s alone', async () => {
    const script = await says('Mine.')
    const definition = definitionOf([{ instructions: script }], { visibility: 'organization' })
    const agentId = await createAgent(tenant, definition)
    const colleague = await addMember(gateway(), tenant.base)
    const { key } = await addKey(gateway(), tenant.base, colleague)
    const { runId, conversationId } = await trigger({ key }, agentId)
    expect(resultText(await endedRun({ key }, runId))).toBe('Mine.')
    await listItems(key, `/v1/conversations/${conversationId}/items`)
    const missing = { status: 404, body: refusal('Not found', `Run ${runId} not found.`) }
    for (const stranger of [tenant.key, other.key]) {
      expect(await get(`/v1/runs/${runId}`, stranger)).toEqual(missing)
      expect(await get(`/v1/runs/${runId}/evals`, stranger)).toEqual(missing)
      const restarted = await post({ key: stranger }, `/v1/runs/${runId}/restart`, {})
      expect([restarted.status, jsonOf(restarted)]).toEqual([404, missing.body])
    }
    expect(await get(`/v1/agents/${agentId}`)).toMatchObject({ body: { recentRunIds: [] } })
  })

  it('has the errors of the interface for ids', async () => {
    for (const path of ['/v1/runs/x', '/v1/runs/x/evals', `/v1/runs/${UNKNOWN}0`]) {
      expect(await get(path)).toEqual({ status: 400, body: refusal('Bad Request', /UUID/) })
    }
    for (const path of [`/v1/runs/${UNKNOWN}`, `/v1/runs/${UNKNOWN}/evals`]) {
      expect(await get(path)).toEqual({
        status: 404,
        body: refusal('Not found', `Run ${UNKNOWN} not found.`),
      })
    }
    const restarted = await post(tenant, '/v1/runs/x/restart', {})
    expect([restarted.status, jsonOf(restarted)]).toEqual([404, refusal('Not found', 'Run x not found.')])
    expect(await get('/v1/agents/x')).toEqual({
      status: 404,
      body: refusal('Not found', 'Agent x not found.'),
    })
  })

  it('fails with its provider, and its failed step can be repeated', async () => {
    const text = marker()
    const script = await inTurn(
      gateway(),
      failed(400, '{"error":{"message":"not today","code":"no"}}'),
      answered('chat', 'Now.', true),
    )
    const [first, judge] = await Promise.all([
      says('One.'),
      says(judgement({ quote: 'Say now.', met: true })),
    ])
    const objective = `Say now. ${judge}`
    const agentId = await createAgent(
      tenant,
      definitionOf([{ instructions: first }, { instructions: `${script} ${text}`, objective }]),
    )
    const { runId } = await trigger(tenant, agentId)
    const failedRun = await endedRun(tenant, runId)
    expect(failedRun).toMatchObject({
      status: 'failure',
      result: null,
      endedAtUtc: expect.stringMatching(ISO),
    })
    expect((await get(`/v1/runs/${runId}/evals`)).body).toEqual({
      runId,
      result: 'skipped',
      steps: [
        { stepNumber: 1, name: null, result: 'not_evaluated', explanation: null },
        { stepNumber: 2, name: null, result: 'not_evaluated', explanation: null },
      ],
    })
    const rerun = await management().ask('POST', `${tenant.base}/runs/${runId}/rerun`)
    expect(rerun).toMatchObject({ status: 'in_progress', step: 2, attempt: 2, error: null, ended_at: null })
    expect(rerun).not.toHaveProperty('warning')
    expect(resultText(await endedRun(tenant, runId))).toBe('Now.')
    const { attempts } = await runDetails(tenant, runId)
    expect(attempts.map(({ step, attempt, status }) => [step, attempt, status])).toEqual([
      [1, 1, 'completed'],
      [2, 1, 'failed'],
      [2, 2, 'completed'],
    ])
    expect(await evaluated(tenant, runId)).toMatchObject({ result: 'pass', steps: [{}, { result: 'pass' }] })
    const again = await management().call('POST', `${tenant.base}/runs/${runId}/rerun`)
    expect([again.status, jsonOf(again)]).toEqual([422, refusal('Unprocessable Entity', /success/)])
  })

  it('can repeat its first step after retention has deleted its conversation', async () => {
    const script = await inTurn(gateway(), failed(400), answered('chat', 'At last.', true))
    const agentId = await createAgent(tenant, definitionOf([{ instructions: script }]))
    const { runId, conversationId } = await trigger(tenant, agentId)
    expect(await endedRun(tenant, runId)).toMatchObject({ status: 'failure' })
    for (const [table, column] of [
      ['conversation_items', 'conversation_id'],
      ['responses', 'conversation_id'],
      ['conversations', 'id'],
    ]) {
      await query(gateway(), `DELETE FROM ${table} WHERE ${column} = $1`, [conversationId])
    }
    await management().ask('POST', `${tenant.base}/runs/${runId}/rerun`)
    expect(resultText(await endedRun(tenant, runId))).toBe('At last.')
    expect(await listItems(tenant.key, `/v1/conversations/${conversationId}/items`)).toMatchObject({
      data: [{}, {}],
    })
  })

  it('repeats an attempt by itself as often as its step allows', async () => {
    const script = await inTurn(gateway(), failed(400), answered('chat', 'Second.', true))
    const agentId = await createAgent(tenant, definitionOf([{ instructions: script, max_attempts: 2 }]))
    const { runId } = await trigger(tenant, agentId)
    expect(resultText(await endedRun(tenant, runId))).toBe('Second.')
  })

  it('checks an output against its schema', async () => {
    const schema = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] }
    const output = { format: 'json_schema', schema }
    const run = async (answer: string) => {
      const definition = definitionOf([{ instructions: await says(answer), output }])
      const { runId } = await trigger(tenant, await createAgent(tenant, definition))
      return [(await endedRun(tenant, runId)).status, (await runDetails(tenant, runId)).error]
    }
    expect(await run('{"n":1}')).toEqual(['success', null])
    const invalid = { code: 'invalid_output', message: expect.any(String) }
    expect(await run('{"n":"one"}')).toEqual(['failure', invalid])
    expect(await run('one')).toEqual(['failure', invalid])
  })

  it('is restarted with its inputs on the latest version', async () => {
    const text = marker()
    const script = await says('Done.')
    const inputs = [{ name: 'City' }]
    const definition = definitionOf([{ instructions: `${script} ${text} v1 {{City}}` }], { inputs })
    const agentId = await createAgent(tenant, definition)
    const source = await trigger(tenant, agentId, { City: 'Paris' })
    await endedRun(tenant, source.runId)
    const before = await readRun(tenant, source.runId)
    await management().ask('PUT', `${tenant.base}/agents/${agentId}`, {
      version: 1,
      definition: {
        ...definition,
        ...definitionOf([{ instructions: `${script} ${text} v2 {{City}}` }], { inputs }),
      },
    })
    const answer = await ask(tenant.key, 'POST', `/v1/runs/${source.runId}/restart`)
    expect(answer.status).toBe(202)
    const restarted = jsonOf(answer) as { runId: string; conversationId: string }
    expect(Object.keys(restarted)).toEqual(['runId', 'conversationId'])
    expect(restarted.runId).not.toBe(source.runId)
    expect(restarted.conversationId).not.toBe(source.conversationId)
    expect(await endedRun(tenant, restarted.runId)).toMatchObject({ status: 'success' })
    expect((await seenRequest(gateway(), `${text} v2`)).body).toContain('v2 Paris')
    expect(await readRun(tenant, source.runId)).toEqual(before)
  })

  it('is begun once for an Idempotency-Key', async () => {
    const agentId = await createAgent(
      tenant,
      definitionOf([{ instructions: `${await says('Once.')} {{a}}` }], { inputs: [{ name: 'a' }] }),
    )
    const headers = { 'idempotency-key': marker() }
    const [first, ...same] = await Promise.all(
      [1, 2, 3, 4].map(() => trigger(tenant, agentId, { a: '1' }, { headers })),
    )
    expect(same).toEqual([first, first, first])
    const otherKey = await trigger(tenant, agentId, { a: '1' }, { headers: { 'idempotency-key': marker() } })
    expect(otherKey.runId).not.toBe(first?.runId)
    const body = { agentId, inputs: [{ name: 'a', value: '2' }] }
    const reused = await post(tenant, '/v1/agents/runs', body, { headers })
    expect([reused.status, jsonOf(reused)]).toEqual([422, refusal('Unprocessable Entity', /Idempotency-Key/)])
    const restart = (runId: string) => post(tenant, `/v1/runs/${runId}/restart`, {}, { headers })
    const [one, two] = [await restart(first?.runId ?? ''), await restart(first?.runId ?? '')]
    expect(jsonOf(two)).toEqual(jsonOf(one))
    expect(jsonOf(one).runId).not.toBe(first?.runId)
    const empty = await post(tenant, '/v1/agents/runs', body, { headers: { 'idempotency-key': ' ' } })
    expect(empty.status).toBe(400)
  })

  it('stays visible when its agent is deleted', async () => {
    const agentId = await createAgent(tenant, definitionOf([{ instructions: await says('Kept.') }]))
    const { runId } = await trigger(tenant, agentId)
    await endedRun(tenant, runId)
    await management().ask('DELETE', `${tenant.base}/agents/${agentId}`)
    expect(await readRun(tenant, runId)).toMatchObject({ runId, agentId: null, status: 'success' })
    expect((await get(`/v1/agents/${agentId}`)).status).toBe(404)
    expect((await post(tenant, '/v1/agents/runs', { agentId })).status).toBe(404)
    const restarted = await post(tenant, `/v1/runs/${runId}/restart`, {})
    expect([restarted.status, jsonOf(restarted)]).toEqual([
      404,
      refusal('Not found', `Agent ${agentId} not found.`),
    ])
  })
})
