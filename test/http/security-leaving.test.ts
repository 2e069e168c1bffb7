import { beforeAll, describe, expect, it } from 'vitest'
import { gateway, upstreamControl } from '../harness/gateway.ts'
import { beginRequest } from '../harness/open-stream.ts'
import { auditEntries, settledCredits } from '../harness/records.ts'
import { createRoutedModel, type RoutedModel } from '../harness/routed-model.ts'
import { bearer, createTenant, type Tenant, uniqueName } from '../harness/tenant.ts'
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
async function readUntil(script: string, text: string, more: object = {}): Promise<void> {
  const messages = [{ role: 'user', content: script }]
  const body = JSON.stringify({ model: model.id, stream: true, max_tokens: 1_000, messages, ...more })
  const { outgoing, answered } = beginRequest(
    `${gateway().baseUrl}/v1/chat/completions`,
    bearer(tenant.key),
    body,
  )
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
