import { beforeAll, describe, expect, it, vi } from 'vitest'
import { gateway, query, upstreamControl } from '../harness/gateway.ts'
import { createIntegration, mcpTool, startMcpServer } from '../harness/integrations.ts'
import { ANSWER_COST, answered, createRoutedModel, failed, inTurn } from '../harness/routed-model.ts'
import { administrator, createTenant, type Tenant, uniqueName } from '../harness/tenant.ts'
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
import { callTool, say } from './support/dlp-answers.ts'
import type { Json } from './support/response-calls.ts'
import { turnsScript } from './support/response-streams.ts'

let tenant: Tenant

beforeAll(async () => {
  tenant = await createTenant(gateway())
})

const sql = (text: string, parameters: unknown[]) => query(gateway(), text, parameters)
const management = () => administrator(gateway())
const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/
const says = (text: string) => inTurn(gateway(), answered('chat', text, true))

describe.concurrent('a run', () => {
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
    ['its step', { timeout_seconds: 3 }, {}, 'failure', 'step_timeout'],
    ['the run', {}, { timeout_seconds: 3 }, 'cancelled', 'timeout'],
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

  it('ends before the call that could exceed its credit limit', async () => {
    const own = await createTenant(gateway())
    const { id: model } = await createRoutedModel(gateway(), ['openai-compatible'])
    const mark = marker()
    const steps = [await says('One.'), await says('Two.')].map((script) => ({
      ...{ instructions: `${script} ${mark}`, model, max_attempts: 3 },
    }))
    const runWith = async (limit: number) => {
      const definition = definitionOf(steps, { limits: { max_credits: limit } })
      const { runId } = await trigger(own, await createAgent(own, definition))
      expect((await endedRun(own, runId)).status).toBe('failure')
      return runDetails(own, runId)
    }
    const none = await runWith(1)
    expect(none).toMatchObject({ step: 1, attempt: 1, cost: 0, error: { code: 'max_credits' } })
    expect(await seenRequests(gateway(), mark)).toEqual([])
    // Exactly what the first call can cost: the second one has less left.
    const reserve = Number(/up to (\d+) micro-credits/.exec((none.error as Json).message as string)?.[1])
    const one = await runWith(reserve)
    expect(one).toMatchObject({ step: 2, attempt: 1, cost: ANSWER_COST, error: { code: 'max_credits' } })
    expect(await seenRequests(gateway(), mark)).toHaveLength(1)
  })

  it('ends within a step at its credit limit, and calls no tool beyond it', async () => {
    const own = await createTenant(gateway())
    const { id: model } = await createRoutedModel(gateway(), ['openai-compatible'])
    const server = await startMcpServer(gateway(), { tools: [mcpTool('add')] })
    const { slug } = await createIntegration(gateway(), own, { url: server.url, price: 100_000 })
    const runWith = async (limit: number) => {
      const mark = marker()
      const script = await turnsScript('chat', [[callTool(`${slug}_add`, { text: 'a' })], [say('Done.')]])
      const tools = { hosted: [], integrations: [{ integration: slug }] }
      const step = { instructions: `${script} ${mark}`, model, tools, max_output_tokens: 100 }
      const definition = definitionOf([step], { limits: { max_credits: limit } })
      const { runId } = await trigger(own, await createAgent(own, definition))
      const { status } = await endedRun(own, runId)
      const [requests, calls] = [(await seenRequests(gateway(), mark)).length, await server.calls('add')]
      const { cost, error } = await runDetails(own, runId)
      return { cost, error, status, requests, calls }
    }
    // The turns fit, the tool does not: the model answers without it.
    const poor = await runWith(50_000)
    expect(poor).toMatchObject({ status: 'success', requests: 2, calls: 0 })
    expect(poor.cost).toBeLessThan(50_000)
    // The tool fits, and the turn after it does not.
    const late = await runWith(101_000)
    expect(late).toMatchObject({ status: 'failure', requests: 1, calls: 1, error: { code: 'max_credits' } })
    expect(late.cost).toBeLessThanOrEqual(101_000)
    expect(await runWith(200_000)).toMatchObject({ status: 'success', requests: 2, calls: 2 })
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
    // The database has no text that was not inspected.
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
