import { beforeAll, describe, expect, it, vi } from 'vitest'
import { gateway, query, upstreamControl } from '../harness/gateway.ts'
import { answered, failed, inTurn } from '../harness/routed-model.ts'
import { jsonOf } from '../harness/send.ts'
import { addKey, addMember, administrator, createTenant, type Tenant, uniqueName } from '../harness/tenant.ts'
import { marker, registerScript, seenRequest, seenRequests } from '../harness/upstream.ts'
import {
  createAgent,
  definitionOf,
  endedRun,
  post,
  readRun,
  resultText,
  runDetails,
  trigger,
} from './support/agents.ts'
import { ask, type Json, listItems } from './support/response-calls.ts'

let tenant: Tenant
let other: Tenant

beforeAll(async () => {
  ;[tenant, other] = await Promise.all([createTenant(gateway()), createTenant(gateway())])
})

const sql = (text: string, parameters: unknown[]) => query(gateway(), text, parameters)
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

  it('need a key of their scope', async () => {
    const { key } = await addKey(gateway(), tenant.base, tenant.userId, { scopes: ['models'] })
    expect(await get('/v1/agents/list', key)).toEqual({
      status: 403,
      body: refusal('Forbidden', /scope agents/),
    })
  })
})

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
    const first = await says('One.')
    const agentId = await createAgent(
      tenant,
      definitionOf([{ instructions: first }, { instructions: `${script} ${text}`, objective: 'Say now.' }]),
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
    // Awaited until its verdict is written.
    expect((await get(`/v1/runs/${runId}/evals`)).body).toMatchObject({ result: 'pending' })
    const again = await management().call('POST', `${tenant.base}/runs/${runId}/rerun`)
    expect([again.status, jsonOf(again)]).toEqual([422, refusal('Unprocessable Entity', /success/)])
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

  it('is cancelled together with the turn in flight', async () => {
    const text = marker()
    const signal = marker()
    const script = await registerScript(gateway(), [
      { headers: { 'content-type': 'text/event-stream' } },
      { waitForSignal: signal },
    ])
    const agentId = await createAgent(tenant, definitionOf([{ instructions: `${script} ${text}` }]))
    const { runId } = await trigger(tenant, agentId)
    await seenRequest(gateway(), text)
    const cancelled = await management().ask('POST', `${tenant.base}/runs/${runId}/cancel`)
    expect(cancelled).toMatchObject({ status: 'cancelled', error: { code: 'cancelled' } })
    expect(await readRun(tenant, runId)).toMatchObject({
      status: 'cancelled',
      result: null,
      endedAtUtc: expect.stringMatching(ISO),
    })
    await seenRequest(gateway(), text, ({ clientClosedAt }) => clientClosedAt !== null)
    await upstreamControl(gateway()).release(signal)
    const again = await management().call('POST', `${tenant.base}/runs/${runId}/cancel`)
    expect(again.status).toBe(422)
    expect((await readRun(tenant, runId)).status).toBe('cancelled')
  })

  it.each([
    ['its step', { timeout_seconds: 1 }, {}, 'failure', 'step_timeout'],
    ['the run', {}, { timeout_seconds: 1 }, 'cancelled', 'timeout'],
  ] as const)('ends with the time of %s, and its turn with it', async (_, step, limits, status, code) => {
    const text = marker()
    const script = await registerScript(gateway(), [
      { headers: { 'content-type': 'text/event-stream' } },
      { waitForSignal: marker() },
    ])
    const definition = definitionOf([{ instructions: `${script} ${text}`, ...step }], { limits })
    const { runId } = await trigger(tenant, await createAgent(tenant, definition))
    expect((await endedRun(tenant, runId)).status).toBe(status)
    expect((await runDetails(tenant, runId)).error).toMatchObject({ code })
    await seenRequest(gateway(), text, ({ clientClosedAt }) => clientClosedAt !== null)
  })

  it('ends at its credit limit', async () => {
    const [one, two] = await Promise.all([says('One.'), says('Two.')])
    const steps = [{ instructions: one }, { instructions: two }]
    const definition = definitionOf(steps, { limits: { max_credits: 1 } })
    const { runId } = await trigger(tenant, await createAgent(tenant, definition))
    expect((await endedRun(tenant, runId)).status).toBe('failure')
    const { error, step } = await runDetails(tenant, runId)
    expect([error, step]).toEqual([{ code: 'max_credits', message: expect.any(String) }, 2])
  })

  it('fails without credits, without the model, and without its user', async () => {
    const poor = await createTenant(gateway(), { credits: 0 })
    const barred = await createTenant(gateway(), { models: [] })
    const script = await says('Never.')
    const codeOf = async (who: Tenant, key = who.key) => {
      const definition = definitionOf([{ instructions: script }], { visibility: 'organization' })
      const { runId } = await trigger({ key }, await createAgent(who, definition))
      expect((await endedRun({ key }, runId)).status).toBe('failure')
      return ((await runDetails(who, runId)).error as Json).code
    }
    expect(await codeOf(poor)).toBe('insufficient_credits')
    expect(await codeOf(barred)).toBe('model_access_denied')
  })

  it('waits for the limits of its user', async () => {
    const limited = await createTenant(gateway(), { organization: { rate_limit_per_minute: 1 } })
    const text = marker()
    const agentId = await createAgent(
      limited,
      definitionOf([{ instructions: `${await says('Never.')} ${text}` }]),
    )
    const { runId } = await trigger(limited, agentId)
    await vi.waitFor(async () => {
      const [message] = await sql(
        'SELECT rev, due_at - now() > $2 AS later FROM run_outbox WHERE run_id = $1',
        [runId, '1 second'],
      )
      expect(message).toEqual({ rev: 2, later: true })
    })
    expect(await runDetails(limited, runId)).toMatchObject({ status: 'in_progress', step: 1, attempt: 1 })
    expect(await seenRequests(gateway(), text)).toEqual([])
    await management().ask('POST', `${limited.base}/runs/${runId}/cancel`)
  })

  it('waits for its conversation, in which its user may respond too', async () => {
    const [text, signal] = [marker(), marker()]
    const slow = await registerScript(gateway(), [
      { waitForSignal: signal },
      ...answered('chat', 'Mine.', true),
    ])
    const agentId = await createAgent(
      tenant,
      definitionOf([
        { instructions: `${await inTurn(gateway(), failed(400), answered('chat', 'Run.', true))} ${text}` },
      ]),
    )
    const { runId, conversationId } = await trigger(tenant, agentId)
    expect((await endedRun(tenant, runId)).status).toBe('failure')
    const own = {
      model: 'scripted-chat',
      input: `${slow} ${text}-own`,
      conversation: conversationId,
      background: true,
    }
    expect((await post(tenant, '/v1/responses', own)).status).toBe(200)
    await seenRequest(gateway(), `${text}-own`)
    await management().ask('POST', `${tenant.base}/runs/${runId}/rerun`)
    await vi.waitFor(async () => {
      // Failed, repeated, and once or more often postponed.
      const [run] = await sql('SELECT rev >= 4 AS postponed, status FROM runs WHERE id = $1', [runId])
      expect(run).toEqual({ postponed: true, status: 'in_progress' })
    })
    await upstreamControl(gateway()).release(signal)
    expect(resultText(await endedRun(tenant, runId))).toBe('Run.')
  })

  it('is under the policies of data-loss prevention, when it is made and when it is read', async () => {
    const own = await createTenant(gateway())
    const policy = (direction: string, action: string) =>
      management().ask('POST', `${own.base}/dlp/policies`, {
        name: uniqueName('policy'),
        directions: [direction],
        rules: [{ detector: 'email', action }],
      })
    const text = marker()
    const definition = definitionOf(
      [{ instructions: `${await says('Ask ann@example.com.')} ${text} {{who}}` }],
      {
        inputs: [{ name: 'who' }],
      },
    )
    const agentId = await createAgent(own, definition)
    await policy('request', 'redact')
    const { runId } = await trigger(own, agentId, { who: 'bob@example.com' })
    expect(resultText(await endedRun(own, runId))).toBe('Ask ann@example.com.')
    expect((await seenRequest(gateway(), text)).body).not.toContain('bob@')
    // Nor is what was not inspected anywhere in the database.
    const stored = await sql(
      `SELECT r::text || s::text || coalesce((SELECT string_agg(i.body, '') FROM response_items i
         WHERE i.organization_id = r.organization_id), '') AS row
       FROM runs r JOIN run_steps s ON s.run_id = r.id WHERE r.id = $1`,
      [runId],
    )
    expect(JSON.stringify(stored)).not.toContain('bob@')
    await policy('response', 'redact')
    await vi.waitFor(async () =>
      expect(resultText(await readRun(own, runId))).toMatch(/^Ask (?!ann@example\.com).+\.$/),
    )
    await policy('request', 'block')
    const blocked = await trigger(own, agentId, { who: 'bob@example.com' })
    expect((await endedRun(own, blocked.runId)).status).toBe('failure')
    const { error } = await runDetails(own, blocked.runId)
    expect(error).toMatchObject({ code: expect.stringMatching(/dlp/) })
  })

  it('goes on with the rights of each moment', async () => {
    const own = await createTenant(gateway(), { models: [] })
    const grant = await management().ask<{ id: string }>('POST', `${own.base}/grants`, {
      subject_type: 'organization',
      model_id: 'scripted-chat',
    })
    const signal = marker()
    const text = marker()
    const script = await registerScript(gateway(), [
      { waitForSignal: signal },
      ...answered('chat', 'One.', true),
    ])
    const second = marker()
    const agentId = await createAgent(
      own,
      definitionOf([{ instructions: `${script} ${text}` }, { instructions: second }]),
    )
    const { runId } = await trigger(own, agentId)
    await seenRequest(gateway(), text)
    await management().ask('DELETE', `${own.base}/grants/${grant.id}`)
    await upstreamControl(gateway()).release(signal)
    expect((await endedRun(own, runId)).status).toBe('failure')
    expect(await runDetails(own, runId)).toMatchObject({ step: 2, error: { code: 'model_access_denied' } })
    expect(await seenRequests(gateway(), second)).toEqual([])
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
      [definitionOf([]), /steps: must hold at least one step/],
      [definitionOf([{ instructions: 'x', modle: 'y' }]), /modle/],
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
