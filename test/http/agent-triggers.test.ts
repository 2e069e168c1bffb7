import { beforeAll, describe, expect, it, vi } from 'vitest'
import { signDelivery } from '../../scripts/node/qstash/signature.ts'
import { signature } from '../../src/agents/triggers/webhook-signature.ts'
import { gateway, query } from '../harness/gateway.ts'
import { answered, inTurn } from '../harness/routed-model.ts'
import { jsonOf, send } from '../harness/send.ts'
import { addMember, administrator, createTenant, type Tenant } from '../harness/tenant.ts'
import { marker, seenRequest, seenRequests } from '../harness/upstream.ts'
import { createAgent, definitionOf, endedRun, trigger } from './support/agents.ts'
import { deliver } from './support/deliveries.ts'
import type { Json } from './support/response-calls.ts'

let tenant: Tenant

beforeAll(async () => {
  tenant = await createTenant(gateway())
})

const management = () => administrator(gateway())
const DELIVERIES = '/internal/agents/runs'

const messageOf = (runId: string, rev: number) => ({
  organization_id: tenant.organizationId,
  run_id: runId,
  rev,
})

describe.concurrent('deliveries', () => {
  it('without a valid signature of their URL and body change nothing', async () => {
    const script = await inTurn(gateway(), answered('chat', 'Done.', true))
    const agentId = await createAgent(tenant, definitionOf([{ instructions: script }]))
    const { runId } = await trigger(tenant, agentId)
    const body = messageOf(runId, 1)
    const forged = [
      await deliver(DELIVERIES, body, { key: 'sig_0000000000000000000000000000' }),
      await deliver(DELIVERIES, body, { url: `${gateway().baseUrl}/internal/agents/schedules` }),
      await deliver(DELIVERIES, body, { signed: JSON.stringify(messageOf(runId, 2)) }),
      await deliver(DELIVERIES, body, { headers: { 'upstash-signature': '' } }),
      await deliver(DELIVERIES, body, { headers: { 'upstash-signature': 'a.b.c' } }),
    ]
    for (const answer of forged) {
      expect([answer.status, jsonOf(answer)]).toEqual([
        401,
        { error: 'Unauthorized', message: expect.stringMatching(/not signed/) },
      ])
    }
    const { variables } = gateway()
    // The key of the next roll is good, too.
    const next = await deliver(DELIVERIES, body, { key: variables.QSTASH_NEXT_SIGNING_KEY ?? '' })
    expect(next.status).toBe(200)
    expect((await endedRun(tenant, runId)).status).toBe('success')
  })

  it('repeated, replayed and of other revisions do nothing', async () => {
    const text = marker()
    const script = await inTurn(gateway(), answered('chat', 'Done.', true))
    const steps = [1, 2, 3].map((number) => ({ instructions: `${script} ${text} ${number}` }))
    const { runId } = await trigger(tenant, await createAgent(tenant, definitionOf(steps)))
    const bodies = [1, 1, 1, 2, 2, 3, 3, 4, 9].map((rev) => messageOf(runId, rev))
    const answers = await Promise.all(bodies.map((body) => deliver(DELIVERIES, body)))
    expect(answers.map(({ status }) => status)).toEqual(bodies.map(() => 200))
    expect((await endedRun(tenant, runId)).status).toBe('success')
    for (const body of bodies) expect((await deliver(DELIVERIES, body)).status).toBe(200)
    expect(await seenRequests(gateway(), text)).toHaveLength(3)
    const foreign = {
      ...messageOf(runId, 1),
      organization_id: (await createTenant(gateway())).organizationId,
    }
    expect((await deliver(DELIVERIES, foreign)).status).toBe(200)
    expect((await deliver(DELIVERIES, { run_id: runId })).status).toBe(400)
  })
})

describe('schedules', () => {
  it('begin runs with the rights of the agent’s creator, once for each message', async () => {
    const text = marker()
    const script = await inTurn(gateway(), answered('chat', 'Morning.', true))
    // Ten minutes from now and then in an hour, so that the time which the test takes begins no other run.
    const cron = `${new Date((await advance(0)) + 600_000).getUTCMinutes()} * * * *`
    const definition = definitionOf([{ instructions: `${script} ${text} {{City}}` }], {
      inputs: [{ name: 'City' }],
      triggers: [{ kind: 'schedule', name: 'hourly', cron, inputs: [{ name: 'City', value: 'Paris' }] }],
    })
    const agentId = await createAgent(tenant, definition)
    const path = `${tenant.base}/agents/${agentId}`
    expect(await management().ask('GET', path)).toMatchObject({
      triggers: [{ name: 'hourly', kind: 'schedule', cron, active: true }],
    })
    await advance(600_000)
    expect((await seenRequest(gateway(), text)).body).toContain('Paris')
    const runs = () => management().ask<{ data: Json[] }>('GET', `${path}/runs`)
    const [run] = (await runs()).data
    expect(run).toMatchObject({ origin: 'schedule', user_id: tenant.userId })
    await endedRun(tenant, String(run?.id))

    const body = { organization_id: tenant.organizationId, agent_id: agentId, trigger: 'hourly' }
    const schedules = '/internal/agents/schedules'
    const first = { headers: { 'upstash-message-id': marker() } }
    for (let times = 0; times < 3; times++) {
      expect((await deliver(schedules, body, first)).status).toBe(200)
    }
    expect((await runs()).data).toHaveLength(2)
    // A replay under another message id has the signature of the first.
    const key = gateway().variables.QSTASH_CURRENT_SIGNING_KEY ?? ''
    const signed = signDelivery(key, gateway().baseUrl + schedules, Buffer.from(JSON.stringify(body)))
    for (const id of [marker(), marker(), marker()]) {
      const headers = { 'upstash-signature': signed, 'upstash-message-id': id }
      expect((await deliver(schedules, body, { headers })).status).toBe(200)
    }
    expect((await runs()).data).toHaveLength(3)

    await management().ask('PUT', path, { version: 1, definition: { ...definition, triggers: [] } })
    expect(await management().ask('GET', path)).toMatchObject({ triggers: [] })
    expect((await deliver(schedules, body)).status).toBe(200)
    await advance(3_600_000)
    expect((await runs()).data).toHaveLength(3)
    expect(await query(gateway(), 'SELECT * FROM agent_triggers WHERE agent_id = $1', [agentId])).toEqual([])
  })

  it('store nothing while the agent’s creator is disabled', async () => {
    const userId = await addMember(gateway(), tenant.base)
    const script = await inTurn(gateway(), answered('chat', 'Morning.', true))
    const triggers = [{ kind: 'schedule', name: 'yearly', cron: '0 0 1 1 *' }]
    const definition = definitionOf([{ instructions: script }], { triggers })
    const agentId = await createAgent(tenant, definition, gateway(), userId)
    const body = { organization_id: tenant.organizationId, agent_id: agentId, trigger: 'yearly' }
    const fire = () =>
      deliver('/internal/agents/schedules', body, { headers: { 'upstash-message-id': marker() } })
    const stored = async () =>
      (
        await query(
          gateway(),
          `SELECT 'run' FROM runs WHERE user_id = $1 UNION ALL SELECT 'conversation' FROM conversations
            WHERE user_id = $1 UNION ALL SELECT 'request' FROM run_requests WHERE user_id = $1`,
          [userId],
        )
      ).length
    const user = `${tenant.base}/users/${userId}`
    await management().ask('PUT', user, { disabled: true })
    expect((await fire()).status).toBe(200)
    expect(await stored()).toBe(0)
    await management().ask('PUT', user, { disabled: false })
    expect((await fire()).status).toBe(200)
    expect(await stored()).toBeGreaterThan(0)
  })
})

/** Moves the clock of QStash. @returns its time in milliseconds since 1970 */
async function advance(milliseconds: number): Promise<number> {
  const body = JSON.stringify({ milliseconds })
  const answer = await send(`${gateway().standIns.qstash}/control/advance`, { method: 'POST', body })
  expect(answer.status).toBe(200)
  return Number(jsonOf(answer).now)
}

describe.concurrent('webhooks', () => {
  const webhook = async (more: Json = {}) => {
    const script = await inTurn(gateway(), answered('chat', 'Hooked.', true))
    const definition = definitionOf([{ instructions: `${script} {{City}}` }], {
      inputs: [{ name: 'City' }],
      triggers: [{ kind: 'webhook', name: 'hook' }],
      ...more,
    })
    const agentId = await createAgent(tenant, definition)
    const path = `${tenant.base}/agents/${agentId}`
    const { secret } = await management().ask<{ secret: string }>('POST', `${path}/triggers/hook/secret`)
    return { agentId, path, secret }
  }

  const PARIS = JSON.stringify({ inputs: [{ name: 'City', value: 'Paris' }] })

  const call = (
    { agentId, secret }: { agentId: string; secret: string },
    { id = marker(), at = Date.now(), body = PARIS, sent = '', name = 'hook' } = {},
  ) => {
    const timestamp = String(Math.floor(at / 1_000))
    const headers = {
      'webhook-id': id,
      'webhook-timestamp': timestamp,
      'webhook-signature': `v1,AAAA ${signature(secret, { id, timestamp }, body)}`,
    }
    const url = `${gateway().baseUrl}/v1/agents/${agentId}/triggers/${name}`
    return send(url, { method: 'POST', headers, body: sent || body })
  }

  it('begin a run for each id, as the agent’s creator', async () => {
    const hook = await webhook()
    const id = marker()
    const [first, second] = [await call(hook, { id }), await call(hook, { id })]
    expect(first.status).toBe(202)
    expect(jsonOf(second)).toEqual(jsonOf(first))
    const { runId } = jsonOf(first) as { runId: string }
    expect((await endedRun(tenant, runId)).status).toBe('success')
    const otherBody = JSON.stringify({ inputs: [{ name: 'City', value: 'Rome' }] })
    expect((await call(hook, { id, body: otherBody })).status).toBe(422)
    expect((await call(hook, { body: '{}' })).status).toBe(422)
    expect((await call(hook, { body: '[' })).status).toBe(400)
    await vi.waitFor(async () => {
      const audit = await management().ask<{ data: Json[] }>(
        'GET',
        `${tenant.base}/audit?surface=agents&limit=200`,
      )
      const actions = audit.data.map(({ action, status }) => `${action} ${status}`)
      expect(actions).toContain(`POST /v1/agents/${hook.agentId}/triggers/hook 202`)
    })
  })

  it('without a valid signature are refused alike', async () => {
    const hook = await webhook()
    const { secret: old } = hook
    const refused = [
      await call({ ...hook, secret: `whsec_${Buffer.alloc(32).toString('base64')}` }),
      await call(hook, { sent: JSON.stringify({ inputs: [] }) }),
      await call(hook, { at: Date.now() - 600_000 }),
      await call(hook, { at: Date.now() + 600_000 }),
      await call(hook, { name: 'other' }),
      await call({ ...hook, agentId: '00000000-0000-4000-8000-00000000000a' }),
      await call({ ...hook, agentId: 'x' }),
    ]
    await management().ask('POST', `${hook.path}/triggers/hook/secret`)
    refused.push(await call({ ...hook, secret: old }))
    for (const answer of refused) {
      expect([answer.status, jsonOf(answer)]).toEqual([
        401,
        { error: 'Unauthorized', message: 'A valid webhook signature is required.' },
      ])
    }
    const shown = await management().call('GET', hook.path)
    expect(shown.text).not.toContain('whsec_')
    expect(jsonOf(shown)).toMatchObject({ triggers: [{ name: 'hook', kind: 'webhook', secret_set: true }] })
  })

  it('count against the limits of their agent’s creator', async () => {
    const limited = await createTenant(gateway(), { organization: { rate_limit_per_minute: 2 } })
    const script = await inTurn(gateway(), answered('chat', 'Hooked.', true))
    const agentId = await createAgent(
      limited,
      definitionOf([{ instructions: script }], { triggers: [{ kind: 'webhook', name: 'hook' }] }),
    )
    const { secret } = await management().ask<{ secret: string }>(
      'POST',
      `${limited.base}/agents/${agentId}/triggers/hook/secret`,
    )
    const statuses: number[] = []
    for (let times = 0; times < 4; times++) {
      const answer = await call({ agentId, secret }, { body: '{}' })
      statuses.push(answer.status)
      if (answer.status === 429) expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0)
    }
    expect(statuses).toContain(429)
  })
})
