import { beforeAll, describe, expect, it } from 'vitest'
import { gateway, upstreamControl } from '../harness/gateway.ts'
import { beginRequest } from '../harness/open-stream.ts'
import { auditEntries, settledCredits } from '../harness/records.ts'
import { createRoutedModel, PRICES, type RoutedModel } from '../harness/routed-model.ts'
import { administrator, bearer, createTenant, type Tenant, uniqueName } from '../harness/tenant.ts'
import { marker, registerScript, seenRequest } from '../harness/upstream.ts'

const CREDITS = 1_000_000_000
const frame = (data: unknown) => `data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`
const chunk = (choices: object[], more: object = {}) =>
  frame({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices, ...more })
const delta = (text: string) => chunk([{ index: 0, delta: { content: text }, finish_reason: null }])
const stop = chunk([{ index: 0, delta: {}, finish_reason: 'stop' }])
const usage = (prompt: number, completion: number) => ({
  usage: { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion },
})

let tenant: Tenant
let model: RoutedModel

beforeAll(async () => {
  model = await createRoutedModel(gateway(), ['openai-compatible'])
})

/** Streams until a text has come, and then resets the connection. */
async function readUntil(
  script: string,
  text: string,
  more: object = {},
  path = '/v1/chat/completions',
): Promise<void> {
  const messages = [{ role: 'user', content: script }]
  const body = JSON.stringify({ model: model.id, stream: true, max_tokens: 1_000, messages, ...more })
  const { outgoing, answered } = beginRequest(gateway().baseUrl + path, bearer(tenant.key), body)
  outgoing.on('error', () => {})
  const incoming = await answered
  let seen = ''
  await new Promise<void>((resolve) => {
    incoming.on('error', () => {})
    incoming.on('data', (part) => {
      seen += part
      if (seen.includes(text)) resolve()
    })
  })
  // A reset, since workerd takes a mere close for a client that only ended its sending.
  outgoing.socket?.resetAndDestroy()
}

async function charged() {
  const { balance } = await settledCredits(gateway(), tenant)
  const [call] = (await auditEntries(gateway(), tenant)).filter(({ kind }) => kind === 'call')
  return { cost: CREDITS - balance, status: call?.status, provenance: call?.record.provenance }
}

describe('who leaves before an answer', () => {
  it.each([false, true])('pays for the pictures that were linked (streamed: %s)', async (stream) => {
    tenant = await createTenant(gateway(), { credits: CREDITS })
    const text = marker()
    const image = { type: 'image_url', image_url: { url: 'https://example.com/a.png' } }
    const content = [{ type: 'text', text: `${text} script:slow-headers signal=${text}` }, image, image]
    const body = JSON.stringify({
      model: model.id,
      stream,
      max_tokens: 1_000,
      messages: [{ role: 'user', content }],
    })
    const url = `${gateway().baseUrl}/v1/chat/completions`
    const { outgoing } = beginRequest(url, bearer(tenant.key), body)
    outgoing.on('error', () => {})
    await seenRequest(gateway(), text)
    outgoing.socket?.resetAndDestroy()
    const cost = Math.ceil(body.length / 3) + 2_000
    expect(await charged()).toEqual({ cost, status: 499, provenance: 'estimated' })
  })
})

describe('a call that reasons, whose caller leaves', () => {
  const usageOfReasoning = { steps: [chunk([], usage(50, 900)), frame('[DONE]')] }

  it.each([
    ['by its request', delta('42'), { enable_thinking: true }],
    [
      'by what it streams',
      chunk([{ index: 0, delta: { reasoning_content: '42' }, finish_reason: null }]),
      {},
    ],
  ])('is read on to its usage where it streams (%s)', async (_, first, more) => {
    tenant = await createTenant(gateway(), { credits: CREDITS })
    const signal = uniqueName('usage')
    const script = await registerScript(gateway(), [
      { headers: { 'content-type': 'text/event-stream' } },
      { sse: [first] },
      { waitForSignal: signal },
      { sse: [delta('word '), stop, ...usageOfReasoning.steps] },
      { end: true },
    ])
    await readUntil(script, '42', more)
    await upstreamControl(gateway()).release(signal)
    expect(await charged()).toEqual({ cost: 50 + 900 * 5, status: 499, provenance: 'reported' })
  })

  it.each([true, false])(
    'is read on to its usage before an answer has come (streamed: %s)',
    async (stream) => {
      tenant = await createTenant(gateway(), { credits: CREDITS })
      const signal = uniqueName('answer')
      const answer = {
        id: 'c',
        object: 'chat.completion',
        created: 1,
        model: 'm',
        choices: [{ index: 0, message: { role: 'assistant', content: '42' }, finish_reason: 'stop' }],
        ...usage(50, 900),
      }
      const events = [{ headers: { 'content-type': 'text/event-stream' } }, { sse: [delta('42'), stop] }]
      const text = await registerScript(gateway(), [
        { waitForSignal: signal },
        ...(stream
          ? [...events, { sse: usageOfReasoning.steps }, { end: true as const }]
          : [{ json: answer }]),
      ])
      const messages = [{ role: 'user', content: text }]
      const body = JSON.stringify({
        model: model.id,
        stream,
        max_tokens: 1_000,
        enable_thinking: true,
        messages,
      })
      const { outgoing } = beginRequest(`${gateway().baseUrl}/v1/chat/completions`, bearer(tenant.key), body)
      outgoing.on('error', () => {})
      await seenRequest(gateway(), text)
      outgoing.socket?.resetAndDestroy()
      await upstreamControl(gateway()).release(signal)
      expect(await charged()).toEqual({ cost: 50 + 900 * 5, status: 499, provenance: 'reported' })
    },
  )
})

describe('a model that thinks without being asked, whose caller leaves', () => {
  const event = (data: { type: string; [member: string]: unknown }) => `event: ${data.type}\n${frame(data)}`
  const message = {
    ...{ id: 'msg', type: 'message', role: 'assistant', model: 'm', content: [], stop_reason: null },
    usage: { input_tokens: 50, output_tokens: 1 },
  }

  /** A model behind the messages protocol. */
  async function createThinking(capabilities: string[]): Promise<string> {
    const { id, providers } = await createRoutedModel(gateway(), ['anthropic'])
    const { ask } = administrator(gateway())
    const { data } = await ask<{ data: Array<{ id: string; name: string }> }>('GET', '/providers?limit=200')
    const provider = data.find(({ name }) => name === providers[0])
    await ask('PUT', `/models/${id}`, {
      ...{
        owned_by: 'test',
        context_window: 100_000,
        max_output_tokens: 1_000,
        prices: PRICES,
        capabilities,
      },
      routes: [{ provider_id: provider?.id, upstream_model: 'thinker' }],
    })
    return id
  }

  it.each([
    ['by the catalogue', ['reasoning', 'thinks_by_default'], 'reported', 50 + 900 * 5],
    // Opus 4.8 thinks on request only: what it has not been asked for is not charged.
    ['on request only', ['reasoning', 'adaptive_thinking'], 'estimated', 50 + 2 * 5],
  ])(
    'after the visible text pays for hidden reasoning as well (%s)',
    async (_, capabilities, provenance, cost) => {
      tenant = await createTenant(gateway(), { credits: CREDITS })
      const thinker = await createThinking(capabilities)
      const signal = uniqueName('usage')
      const script = await registerScript(gateway(), [
        { headers: { 'content-type': 'text/event-stream' } },
        {
          sse: [
            event({ type: 'message_start', message }),
            event({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }),
            event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: '4242' } }),
          ],
        },
        { waitForSignal: signal },
        {
          sse: [
            event({ type: 'content_block_stop', index: 0 }),
            event({
              type: 'message_delta',
              delta: { stop_reason: 'end_turn' },
              usage: { output_tokens: 900 },
            }),
            event({ type: 'message_stop' }),
          ],
        },
        { end: true },
      ])
      await readUntil(script, '4242', { model: thinker }, '/v1/messages')
      await upstreamControl(gateway()).release(signal)
      expect(await charged()).toEqual({ cost, status: 499, provenance })
    },
  )
})

describe('who leaves a stream', () => {
  it('after the whole answer, but before its usage, pays what the upstream reports', async () => {
    tenant = await createTenant(gateway(), { credits: CREDITS })
    const signal = uniqueName('usage')
    const script = await registerScript(gateway(), [
      { headers: { 'content-type': 'text/event-stream' } },
      { sse: [delta('42'), stop] },
      { waitForSignal: signal },
      { sse: [chunk([], usage(5_000, 900)), frame('[DONE]')] },
      { end: true },
    ])
    await readUntil(script, '"stop"')
    await upstreamControl(gateway()).release(signal)
    expect(await charged()).toEqual({ cost: 5_000 + 900 * 5, status: 499, provenance: 'reported' })
  })

  it('waits for nobody when the usage never comes', async () => {
    tenant = await createTenant(gateway(), { credits: CREDITS })
    const script = await registerScript(gateway(), [
      { headers: { 'content-type': 'text/event-stream' } },
      { sse: [delta('42'), stop] },
      { waitForSignal: uniqueName('never') },
    ])
    await readUntil(script, '"stop"')
    expect(await charged()).toMatchObject({ status: 499, provenance: 'estimated' })
  })

  it('does not pay by figures that came before the text', async () => {
    tenant = await createTenant(gateway(), { credits: CREDITS })
    const script = await registerScript(gateway(), [
      { headers: { 'content-type': 'text/event-stream' } },
      { sse: [chunk([{ index: 0, delta: { content: '' }, finish_reason: null }], usage(10, 0))] },
      { sse: [delta('word '.repeat(120)), delta('last')] },
      { waitForSignal: uniqueName('never') },
    ])
    await readUntil(script, 'last')
    // 604 bytes of text, estimated at three to the token.
    expect(await charged()).toEqual({ cost: 10 + 202 * 5, status: 499, provenance: 'estimated' })
  })
})
