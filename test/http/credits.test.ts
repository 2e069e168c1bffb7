import { describe, expect, it, vi } from 'vitest'
import { gateway, upstreamControl } from '../harness/gateway.ts'
import { auditEntries, credits, flush, readList, settledCredits } from '../harness/records.ts'
import { createRoutedModel } from '../harness/routed-model.ts'
import { type Answer, jsonOf, send } from '../harness/send.ts'
import { administrator, bearer, createTenant, type Tenant, uniqueName } from '../harness/tenant.ts'
import { registerScript, seenRequest } from '../harness/upstream.ts'
import { MODEL_ROUTES, type ModelRoute } from '../matrices/routes.ts'

const route = MODEL_ROUTES[0] as ModelRoute
const messages = MODEL_ROUTES[2] as ModelRoute

function call(tenant: Tenant, text: string, more = {}, of = route): Promise<Answer> {
  const body = JSON.stringify(of.request(text, more))
  return send(gateway().baseUrl + of.path, { method: 'POST', headers: bearer(tenant.key), body })
}

const grant = (tenant: Tenant, amount: number, id?: string) =>
  administrator(gateway()).ask('POST', `${tenant.base}/credits`, {
    amount,
    reason: 'test',
    ...(id && { id }),
  })

/** Reservation of a call with this text, read from its refusal. */
async function reservationOf(tenant: Tenant, text: string): Promise<number> {
  const { error } = jsonOf(await call(tenant, text)) as { error: { message: string } }
  return Number(/up to (\d+) micro-credits/.exec(error.message)?.[1])
}

describe('a balance', () => {
  it('is never overdrawn by calls at the same time', async () => {
    const tenant = await createTenant(gateway(), { credits: 0 })
    const signal = uniqueName('signal')
    const text = `script:slow-headers signal=${signal} prompt=5`
    const reserve = await reservationOf(tenant, text)
    expect(reserve).toBeGreaterThan(0)
    // For five calls and a half.
    await grant(tenant, Math.floor(5.5 * reserve))
    const calls = Array.from({ length: 16 }, () => call(tenant, text))
    await vi.waitFor(
      async () => {
        expect((await upstreamControl(gateway()).waiting())[signal]).toBe(5)
        expect(await credits(gateway(), tenant)).toMatchObject({
          reserved: 5 * reserve,
          available: Math.floor(5.5 * reserve) - 5 * reserve,
        })
      },
      { timeout: 5_000, interval: 20 },
    )
    await upstreamControl(gateway()).release(signal)
    const statuses = (await Promise.all(calls)).map(({ status }) => status).sort()
    expect(statuses).toEqual([...Array(5).fill(200), ...Array(11).fill(429)])
    // Unused reservations are released: each call used five input and eleven output tokens.
    const { balance, available } = await settledCredits(gateway(), tenant)
    expect(balance).toBe(Math.floor(5.5 * reserve) - 5 * (5 + 5 * 11))
    expect(available).toBe(balance)
  })

  it('is the sum of its entries, grants and withdrawals among them', async () => {
    const tenant = await createTenant(gateway(), { credits: 0 })
    await grant(tenant, 10_000)
    await grant(tenant, -2_500)
    await grant(tenant, 5_000, 'once')
    await grant(tenant, 5_000, 'once')
    const replies = await Promise.all([
      call(tenant, 'script:canned prompt=7'),
      call(tenant, 'script:canned prompt=7', { stream: true }),
      call(tenant, 'script:canned prompt=7', {}, messages),
      call(tenant, 'script:error-500'),
    ])
    expect(replies.map(({ status }) => status)).toEqual([200, 200, 200, 500])
    const spent = 3 * (7 + 5 * 11)
    const { balance } = await settledCredits(gateway(), tenant)
    expect(balance).toBe(12_500 - spent)
    await flush(gateway(), tenant)
    const entries = await readList<{ kind: string; amount: number }>(gateway(), `${tenant.base}/credits`)
    expect(entries.reduce((sum, { amount }) => sum + amount, 0)).toBe(balance)
    expect(entries.filter(({ kind }) => kind === 'grant').map(({ amount }) => amount)).toEqual([
      5_000, -2_500, 10_000,
    ])
  })

  it('pays cached and reasoning tokens at their own prices', async () => {
    const tenant = await createTenant(gateway())
    const system = [{ type: 'text', text: 'word '.repeat(3_000), cache_control: { type: 'ephemeral' } }]
    const costs: number[] = []
    for (let times = 0; times < 2; times += 1) {
      const before = (await settledCredits(gateway(), tenant)).balance
      const answer = await call(tenant, uniqueName('cached'), { system }, messages)
      const usage = jsonOf(answer).usage as Record<string, number>
      const { input_tokens, cache_creation_input_tokens, cache_read_input_tokens, output_tokens } = usage
      costs.push(before - (await settledCredits(gateway(), tenant)).balance)
      const written = 1.25 * Number(cache_creation_input_tokens)
      const read = 0.1 * Number(cache_read_input_tokens)
      expect(costs.at(-1)).toBe(Math.ceil(Number(input_tokens) + written + read + 5 * Number(output_tokens)))
    }
    expect(costs[1]).toBeLessThan(Number(costs[0]) / 3)
    const [second, first] = (await auditEntries(gateway(), tenant)).filter(({ kind }) => kind === 'call')
    expect(first?.record.usage).toMatchObject({ cacheRead: 0, cacheWrite5Minutes: expect.any(Number) })
    expect(second?.record.usage).toMatchObject({ cacheWrite5Minutes: 0, cacheRead: expect.any(Number) })
  })
})

describe('a search at the provider without a limit', () => {
  const tools = [{ type: 'web_search_20250305', name: 'web_search' }]
  const answer = {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'm',
    content: [{ type: 'text', text: 'Found.' }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: { input_tokens: 10, output_tokens: 2, server_tool_use: { web_search_requests: 1 } },
  }
  /** Prices of Claude Sonnet. */
  const prices = {
    input: 3_000_000,
    output: 15_000_000,
    cache_read: 300_000,
    cache_write_5_minutes: 3_750_000,
    cache_write_1_hour: 6_000_000,
    units: { web_search: 10_000_000_000 },
  }

  it('gets one, which a header shows, and fits into a balance of three dollars', async () => {
    const { ask } = administrator(gateway())
    const model = await createRoutedModel(gateway(), ['anthropic'])
    const owner = await createTenant(gateway(), { credits: 3_000_000 })
    const stored = await ask('GET', `/models/${model.id}`)
    const [{ provider_id }] = stored.routes as [{ provider_id: string }]
    await ask('PUT', `/models/${model.id}`, {
      owned_by: 'test',
      context_window: 1_000_000,
      max_output_tokens: 64_000,
      prices: { ...(stored.prices as object), ...prices },
      routes: [{ provider_id, upstream_model: 'm' }],
    })
    for (const [path, more] of [
      [messages, { tools }],
      [route, { web_search_options: {}, max_tokens: 1_000 }],
    ] as const) {
      const text = await registerScript(gateway(), [{ json: answer }])
      const found = await call(owner, text, { model: model.id, ...more }, path)
      expect(found, found.text).toMatchObject({ status: 200 })
      expect(found.headers['x-headgate-max-uses']).toBe('web_search=5')
      const { body } = await seenRequest(gateway(), text)
      expect(JSON.parse(body)).toMatchObject({ tools: [{ ...tools[0], max_uses: 5 }] })
    }
  })
})

describe('what a request selects besides tokens', () => {
  it('is refused without a price, flagged where the provider allows it, and charged at its price', async () => {
    const { ask } = administrator(gateway())
    const model = await createRoutedModel(gateway(), ['anthropic'])
    const owner = await createTenant(gateway())
    const text = await registerScript(gateway(), [
      {
        json: {
          id: 'msg_1',
          type: 'message',
          role: 'assistant',
          model: 'm',
          content: [{ type: 'text', text: 'Found.' }],
          stop_reason: 'end_turn',
          stop_sequence: null,
          usage: { input_tokens: 10, output_tokens: 2, server_tool_use: { web_search_requests: 3 } },
        },
      },
    ])
    const tools = [{ type: 'web_search_20250305', name: 'web_search', max_uses: 3 }]
    const search = () => call(owner, text, { model: model.id, tools }, messages)
    const lastCall = async () =>
      (await auditEntries(gateway(), owner)).find(({ kind, status }) => kind === 'call' && status === 200)

    const refused = await search()
    expect(refused.status).toBe(400)
    expect(refused.text).toContain('tools (web_search): the model')

    const stored = await ask('GET', `/models/${model.id}`)
    const [{ provider_id }] = stored.routes as [{ provider_id: string }]
    await ask('PUT', `/providers/${provider_id}`, { allow_unpriced: true })
    expect((await search()).status).toBe(200)
    await settledCredits(gateway(), owner)
    expect(await lastCall()).toMatchObject({ credits_settled: 20, record: { flags: ['unpriced'] } })

    const units = { web_search: 10_000_000_000 }
    await ask('PUT', `/models/${model.id}`, {
      owned_by: 'test',
      context_window: 100_000,
      max_output_tokens: 1_000,
      prices: { ...(stored.prices as object), units },
      routes: [{ provider_id, upstream_model: 'm' }],
    })
    expect((await search()).status).toBe(200)
    await settledCredits(gateway(), owner)
    const usage = expect.objectContaining({ units: { web_search: 3 } })
    expect(await lastCall()).toMatchObject({ credits_settled: 20 + 30_000, record: { flags: [], usage } })
  })
})
