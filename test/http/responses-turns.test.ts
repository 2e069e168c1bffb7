import { beforeAll, describe, expect, it } from 'vitest'
import { gateway, upstreamControl } from '../harness/gateway.ts'
import { openStream } from '../harness/open-stream.ts'
import { callEntries, settledCredits } from '../harness/records.ts'
import { jsonOf } from '../harness/send.ts'
import { administrator, bearer, createTenant, type Tenant, uniqueName } from '../harness/tenant.ts'
import { registerAnswers, registerScript, seenRequests } from '../harness/upstream.ts'
import { addPolicy, codePolicy, someCode } from './support/dlp.ts'
import { callTool, framesOf, say } from './support/dlp-answers.ts'
import { ask, expectJson, type Json, listItems } from './support/response-calls.ts'
import {
  bodyOf,
  CORNER_WAYS,
  checkedEvents,
  postResponse,
  respond,
  STREAMED_WAYS,
  turnsScript,
} from './support/response-streams.ts'

let tenant: Tenant

beforeAll(async () => {
  tenant = await createTenant(gateway())
})

const tool = (name: string) => ({ type: 'function', name, parameters: { type: 'object', properties: {} } })
/** A model that calls it all the same is answered by the gateway, which makes one turn after the other. */
const REFUSED_CALL = { tools: [tool('f')], tool_choice: 'none' }
const administer = (method: string, path: string, body?: unknown) =>
  administrator(gateway()).ask(method, path, body)

describe.each(CORNER_WAYS)('turns (%s)', (_, { upstream, model, stream }) => {
  it('end when the model calls what it may not three times on end', async () => {
    const owner = await createTenant(gateway())
    const input = await turnsScript(upstream, [[say('Hm. '), callTool('f', {})]])
    const { response } = await respond(owner.key, { model, stream, input, ...REFUSED_CALL })
    expect(response).toMatchObject({
      status: 'incomplete',
      incomplete_details: { reason: 'max_turns' },
      output_text: 'Hm. '.repeat(3),
    })
    expect(await seenRequests(gateway(), input)).toHaveLength(3)
    await callEntries(gateway(), owner, 3)
  })

  it('after the first one force no call of allowed tools', async () => {
    const turns = [[callTool('f', {})], [say('Done.')]]
    const input = await turnsScript(upstream, turns)
    const names = ['g', 'h']
    const choice = {
      type: 'allowed_tools',
      mode: 'required',
      tools: names.map((name) => ({ type: 'function', name })),
    }
    const tools = ['f', ...names].map(tool)
    const { response } = await respond(tenant.key, { model, stream, input, tools, tool_choice: choice })
    expect(response).toMatchObject({ status: 'completed', output_text: 'Done.', tool_choice: choice })
    const told = (await seenRequests(gateway(), input)).map((request) => bodyOf(request).tool_choice)
    const isChat = upstream === 'chat'
    expect(told[0]).toEqual(isChat ? 'required' : { type: 'any' })
    expect([undefined, 'auto', { type: 'auto' }]).toContainEqual(told[1])
  })
})

/** What changes while a response runs, and how the response ends then. */
const CHANGES: Array<[name: string, code: string, change: (owner: Tenant) => Promise<unknown>]> = [
  ['its key is revoked', 'key_revoked', ({ base, keyId }) => administer('DELETE', `${base}/keys/${keyId}`)],
  [
    'its user is disabled',
    'access_disabled',
    ({ base, userId }) => administer('PUT', `${base}/users/${userId}`, { disabled: true }),
  ],
  [
    'the model is not granted any more',
    'model_access_denied',
    async ({ base }) => {
      const { data } = (await administer('GET', `${base}/grants`)) as { data: Array<{ id: string }> }
      for (const { id } of data) await administer('DELETE', `${base}/grants/${id}`)
    },
  ],
]

describe.each(STREAMED_WAYS)('a turn after %s', (_, { upstream, model }) => {
  /** A first turn that goes on when it is told to, and a second that would end the response. */
  async function twoTurns(owner: Tenant, second = 'Done.') {
    const signal = uniqueName('turn')
    const parts = [say('Hm. '), callTool('f', {})]
    const [beginning, whole] = [
      framesOf(upstream, [say('Hm. ')], undefined, false),
      framesOf(upstream, parts),
    ]
    const input = await registerAnswers(gateway(), [
      {
        steps: [
          { sse: beginning.slice(0, -1) },
          { waitForSignal: signal },
          { sse: whole.slice(beginning.length - 1) },
        ],
      },
      { steps: [{ sse: framesOf(upstream, [say(second)]) }] },
    ])
    const body = JSON.stringify({ model, stream: true, input, ...REFUSED_CALL })
    const open = await openStream(`${gateway().baseUrl}/v1/responses`, bearer(owner.key), body)
    await open.until((text) => text.includes('"delta":"'))
    return { input, open, release: () => upstreamControl(gateway()).release(signal) }
  }

  it.each(CHANGES)('is not made when %s', async (_name, code, change) => {
    const owner = await createTenant(gateway())
    const { input, open, release } = await twoTurns(owner)
    await change(owner)
    await release()
    const last = checkedEvents(await open.end()).at(-1)
    expect(last).toMatchObject({
      event: 'response.failed',
      data: { response: { status: 'failed', error: { code }, output_text: 'Hm. ' } },
    })
    expect(last?.data.response).toMatchObject({ usage: { input_tokens: 3, output_tokens: 5 } })
    expect(await seenRequests(gateway(), input)).toHaveLength(1)
    await settledCredits(gateway(), owner)
  })

  it('keeps to the policies that came meanwhile', async () => {
    const owner = await createTenant(gateway())
    const { open, release } = await twoTurns(owner, `The code is ${someCode()}.`)
    await addPolicy(owner, codePolicy('block'))
    await release()
    const last = checkedEvents(await open.end()).at(-1)
    expect(last?.data.response).toMatchObject({ status: 'failed', output_text: 'Hm. The code is ' })
    expect(open.text()).not.toContain('KX-')
  })

  it('is made when nothing changed', async () => {
    const { open, release } = await twoTurns(await createTenant(gateway()))
    await release()
    const last = checkedEvents(await open.end()).at(-1)
    expect(last?.data.response).toMatchObject({ status: 'completed', output_text: 'Hm. Done.' })
  })
})

describe.each(STREAMED_WAYS)('an upstream (%s)', (_, { upstream, model }) => {
  it('that filters what it says ends the response by that', async () => {
    const frames = framesOf(upstream, [say('So far.')]).map((frame) =>
      frame
        .replace('"finish_reason":"stop"', '"finish_reason":"content_filter"')
        .replace('"stop_reason":"end_turn"', '"stop_reason":"refusal"'),
    )
    const input = await registerScript(gateway(), [{ sse: frames }])
    const { response } = await respond(tenant.key, { model, input })
    expect(response).toMatchObject({
      status: 'incomplete',
      incomplete_details: { reason: 'content_filter' },
      output: [{ type: 'message', status: 'incomplete' }],
      output_text: 'So far.',
    })
  })

  it.each(['7', '1'])('that asks to come back after %s has its Retry-After forwarded', async (after) => {
    const steps = [{ status: 429, headers: { 'retry-after': after }, body: '{"error":{"message":"Slow."}}' }]
    const input = await registerScript(gateway(), steps)
    const answer = await postResponse(tenant.key, { model, input })
    expect(answer.status).toBe(429)
    expect(answer.headers['retry-after']).toBe(after)
    expect(jsonOf(answer)).toMatchObject({
      error: { code: 'rate_limit_exceeded', message: "A limit of the model's provider is reached: Slow." },
    })
  })

  it('whose ids are no text gets on, and its response is stored', async () => {
    const frames = framesOf(upstream, [callTool('f', {})]).map((frame) =>
      frame.replace('"call_0"', '"a\\ud800"').replace('"toolu_0"', '"a\\u0000"'),
    )
    const input = await registerAnswers(gateway(), [
      { steps: [{ sse: frames }] },
      { steps: [{ sse: framesOf(upstream, [say('Done.')]) }] },
    ])
    const { response } = await respond(tenant.key, { model, input, tools: [tool('f')] })
    const [call] = response.output
    expect(call).toMatchObject({ type: 'function_call', call_id: expect.stringMatching(/^call_\w+$/) })
    const path = `/v1/conversations/${response.conversation?.id}/items`
    expect((await listItems(tenant.key, path)).data.map(({ type }) => type)).toContain('function_call')
    const output = { type: 'function_call_output', call_id: call?.call_id, output: 'half \ud800 of a pair' }
    const { response: next } = await respond(tenant.key, {
      model,
      previous_response_id: response.id,
      input: [output],
      tools: [tool('f')],
    })
    expect(next).toMatchObject({ status: 'completed', output_text: 'Done.' })
    const read = expectJson<Json>(await ask(tenant.key, 'GET', `/v1/responses/${next.id}/input_items`))
    expect(JSON.stringify(read)).toContain('half \\ud800 of a pair')
  })
})
