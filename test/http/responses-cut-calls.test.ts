import { beforeAll, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { openStream } from '../harness/open-stream.ts'
import { jsonOf } from '../harness/send.ts'
import { bearer, createTenant, type Tenant, uniqueName } from '../harness/tenant.ts'
import { registerAnswers, registerScript } from '../harness/upstream.ts'
import { refusalBody } from '../matrices/envelopes.ts'
import { callTool, framesOf, say } from './support/dlp-answers.ts'
import { ask, expectJson, type Json, type ToldResponse } from './support/response-calls.ts'
import {
  checkedEvents,
  postResponse,
  RESPONSE_WAYS,
  type ResponseWay,
  respond,
  STREAMED_WAYS,
} from './support/response-streams.ts'

let tenant: Tenant

beforeAll(async () => {
  tenant = await createTenant(gateway())
})

const TOOL = {
  type: 'function',
  name: 'find',
  parameters: { type: 'object', properties: { city: { type: 'string' } } },
}
const CUT_CALL = { type: 'function_call', name: 'find', status: 'incomplete', arguments: '{"city":"Par' }

/** An answer up to the middle of the arguments of its call. */
const upToArguments = (upstream: ResponseWay['upstream']) =>
  framesOf(upstream, [say('So: '), callTool('find', { city: 'Paris' })], [6], false).slice(0, -1)

const event = (data: Json & { type: string }) => `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`
/** Ends an answer because it is as long as it may be. */
const LIMIT_REACHED = {
  chat: [
    'data: {"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}\n\n',
    'data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":5,"total_tokens":8}}\n\n',
    'data: [DONE]\n\n',
  ],
  messages: [
    event({ type: 'content_block_stop', index: 1 }),
    event({
      type: 'message_delta',
      delta: { stop_reason: 'max_tokens', stop_sequence: null },
      usage: { output_tokens: 5 },
    }),
    event({ type: 'message_stop' }),
  ],
}

/** Goes on after a response with nothing but words. */
async function goOn(model: string, { id, conversation }: ToldResponse): Promise<void> {
  const { response: next } = await respond(tenant.key, {
    model,
    tools: [TOOL],
    previous_response_id: id,
    input: 'And?',
  })
  expect(next).toMatchObject({ status: 'completed', conversation })
}

describe.each(RESPONSE_WAYS)('a call that is cut off by the limit of tokens (%s)', (_, way) => {
  const { upstream, model, stream } = way

  it.each(['', 'open-responses'])('is none to answer, compatibility %j', async (compatibility) => {
    const sse = [...upToArguments(upstream), ...LIMIT_REACHED[upstream]]
    const input = await registerAnswers(gateway(), [
      { steps: [{ sse }] },
      { steps: [{ sse: answerOf(upstream) }] },
    ])
    const headers = { 'x-headgate-compatibility': compatibility }
    const { response } = await respond(tenant.key, { model, stream, input, tools: [TOOL] }, { headers })
    expect(response).toMatchObject({
      status: 'incomplete',
      incomplete_details: { reason: 'max_output_tokens' },
      completed_at: null,
      output: [{ type: 'message', status: 'completed' }, CUT_CALL],
      usage: { input_tokens: 3, output_tokens: 5 },
    })
    await goOn(model, response)
  })
})

const answerOf = (upstream: ResponseWay['upstream']) => framesOf(upstream, [say('So it is.')])

describe.each(STREAMED_WAYS)('a response that is cancelled (%s)', (_, { upstream, model }) => {
  it('in the middle of a call continues without that call', async () => {
    const never = uniqueName('never')
    const input = await registerScript(gateway(), [
      { sse: upToArguments(upstream) },
      { waitForSignal: never },
    ])
    const body = JSON.stringify({ model, stream: true, tools: [TOOL], input })
    const open = await openStream(`${gateway().baseUrl}/v1/responses`, bearer(tenant.key), body)
    const begun = await open.until((text) => text.includes('"delta":"y\\":\\"Pa') || text.includes('"Par'))
    const [id] = /resp_\w+/.exec(begun) ?? []
    const cancelled = expectJson<ToldResponse>(await ask(tenant.key, 'POST', `/v1/responses/${id}/cancel`))
    expect(cancelled).toMatchObject({
      status: 'incomplete',
      incomplete_details: { reason: 'cancelled' },
      output: [{ type: 'message', status: 'completed' }, CUT_CALL],
    })
    expect(checkedEvents(await open.end()).at(-1)?.data.response).toEqual(cancelled)
    await goOn(model, cancelled)
  })

  it('can be gone on from when it has ended, and not before', async () => {
    const never = uniqueName('never')
    // The next turn may select it once more: some protocols join messages of the user.
    const input = await registerAnswers(gateway(), [
      { steps: [{ waitForSignal: never }] },
      { steps: [{ sse: answerOf(upstream) }] },
    ])
    const begun = (await respond(tenant.key, { model, input, background: true })).response
    const locked = refusalBody('responses', { status: 400, code: 'conversation_locked' })
    for (const by of [{ previous_response_id: begun.id }, { conversation: begun.conversation?.id }]) {
      const answer = await postResponse(tenant.key, { model, input: 'And?', stream: true, ...by })
      expect(jsonOf(answer)).toEqual(locked)
      expect(answer.status).toBe(400)
    }
    const cancelled = await ask(tenant.key, 'POST', `/v1/responses/${begun.id}/cancel`)
    await goOn(model, expectJson<ToldResponse>(cancelled))
  })

  it('that has failed is continued with its input', async () => {
    const input = 'script:mid-stream-error'
    const { response } = await respond(tenant.key, { model, input, stream: true })
    expect(response.status).toBe('failed')
    const next = { model, input: 'And?', previous_response_id: response.id, stream: true }
    expect((await respond(tenant.key, next)).response).toMatchObject({ status: 'completed' })
  })
})
