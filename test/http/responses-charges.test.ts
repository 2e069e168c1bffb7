import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { upstreamControl } from '../harness/gateway.ts'
import { openStream } from '../harness/open-stream.ts'
import { auditEntries, callEntries } from '../harness/records.ts'
import { jsonOf } from '../harness/send.ts'
import { type StartedWorker, startWorker } from '../harness/start-worker.ts'
import { bearer, createTenant, type Tenant, uniqueName } from '../harness/tenant.ts'
import { registerScript } from '../harness/upstream.ts'
import { framesOf, say } from './support/dlp-answers.ts'
import { ask, expectJson, type Json, type ToldResponse } from './support/response-calls.ts'
import { respond, STREAMED_WAYS } from './support/response-streams.ts'

let address: StartedWorker

beforeAll(async () => {
  address = await startWorker({ RESPONSE_TIME_LIMIT_MS: '1000' })
}, 60_000)
afterAll(() => address?.stop())

const chargeOf = async (owner: Tenant): Promise<Json | null> => {
  const calls = await vi.waitFor(async () => {
    const found = (await auditEntries(address, owner)).filter(({ action }) => action === 'POST /v1/responses')
    expect(found).toHaveLength(1)
    return found
  })
  return calls[0]?.record.usage as Json | null
}

/** The usage that a response tells for what a call was charged. */
const told = (usage: Json | null) => ({
  input_tokens: Number(usage?.input),
  output_tokens: Number(usage?.output),
})

it('charges a cancelled turn that reasons by the usage that its provider reports later', async () => {
  const owner = await createTenant(address)
  const signal = uniqueName('usage')
  const chunk = (choices: object[], more: object = {}) =>
    `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices, ...more })}\n\n`
  const choice = (delta: object, finish_reason: string | null = null) =>
    chunk([{ index: 0, delta, finish_reason }])
  const usage = { prompt_tokens: 5, completion_tokens: 900, total_tokens: 905 }
  const script = await registerScript(address, [
    { sse: [choice({ role: 'assistant', content: 'Some words.' })] },
    { waitForSignal: signal },
    { sse: [choice({}, 'stop'), chunk([], { usage }), 'data: [DONE]\n\n'] },
    { end: true },
  ])
  const body = JSON.stringify({ model: 'scripted-chat-reasoning', stream: true, input: script })
  const open = await openStream(`${address.baseUrl}/v1/responses`, bearer(owner.key), body)
  const [id] = /resp_\w+/.exec(await open.until((text) => text.includes('"delta":"'))) ?? []
  const cancelled = expectJson<ToldResponse>(
    await ask(owner.key, 'POST', `/v1/responses/${id}/cancel`, address),
  )
  expect(cancelled).toMatchObject({ status: 'incomplete' })
  await upstreamControl(address).release(signal)
  expect(await chargeOf(owner)).toMatchObject({ input: 5, output: 900 })
})

it('ends a compaction whose time is over, and charges it', async () => {
  const owner = await createTenant(address)
  const instructions = await registerScript(address, [
    { sse: framesOf('chat', [say('A summary that')], undefined, false) },
    { waitForSignal: uniqueName('never') },
  ])
  const input = [
    { role: 'user', content: 'Hello' },
    { role: 'assistant', content: 'It was discussed at length. '.repeat(300) },
  ]
  const body = JSON.stringify({ model: 'scripted-chat', instructions, input })
  const answer = await ask(owner.key, 'POST', '/v1/responses/compact', { ...address, body })
  expect([answer.status, jsonOf(answer)]).toEqual([
    504,
    { error: expect.objectContaining({ message: expect.stringMatching(/took longer/) }) },
  ])
  const [call] = await callEntries(address, owner, 1)
  expect(call?.credits_settled).toBeGreaterThan(0)
})

describe.concurrent.each(STREAMED_WAYS)(
  'a response tells what it was charged for (%s)',
  (_, { upstream, model }) => {
    /** A model that says something and then stands still. */
    const standingStill = (end: 'waits' | 'breaks off') =>
      registerScript(address, [
        { sse: framesOf(upstream, [say('Some words that cost.')], undefined, false) },
        end === 'waits' ? { waitForSignal: uniqueName('never') } : { destroy: true },
      ])

    it('when it was cancelled', async () => {
      const owner = await createTenant(address)
      const body = JSON.stringify({ model, stream: true, input: await standingStill('waits') })
      const open = await openStream(`${address.baseUrl}/v1/responses`, bearer(owner.key), body)
      const [id] = /resp_\w+/.exec(await open.until((text) => text.includes('"delta":"'))) ?? []
      const path = `/v1/responses/${id}/cancel`
      const cancelled = expectJson<ToldResponse>(await ask(owner.key, 'POST', path, address))
      const usage = await chargeOf(owner)
      expect(usage).toMatchObject({ output: expect.any(Number) })
      expect(told(usage).output_tokens).toBeGreaterThan(0)
      expect(cancelled).toMatchObject({ status: 'incomplete', usage: told(usage) })
    })

    it.each([
      ['its time was over', 'waits', 'incomplete'],
      ['its model broke off', 'breaks off', 'failed'],
    ] as const)('when %s', async (_name, end, status) => {
      const owner = await createTenant(address)
      const { response } = await respond(owner.key, { model, input: await standingStill(end) }, address)
      const usage = await chargeOf(owner)
      expect(told(usage).output_tokens).toBeGreaterThan(0)
      expect(response).toMatchObject({ status, usage: told(usage) })
    })

    it('when its model never told', async () => {
      const owner = await createTenant(address)
      const frames = framesOf(upstream, [say('Words without an account.')])
      const sse = frames.filter((frame) => !frame.includes('"prompt_tokens"'))
      const { response } = await respond(
        owner.key,
        { model, input: await registerScript(address, [{ sse }]) },
        address,
      )
      const usage = await chargeOf(owner)
      expect(told(usage).output_tokens).toBeGreaterThan(0)
      expect(response).toMatchObject({ status: 'completed', usage: told(usage) })
    })
  },
)
