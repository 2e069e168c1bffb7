import { beforeAll, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { callEntries, settledCredits } from '../harness/records.ts'
import { failed } from '../harness/routed-model.ts'
import { CHAT_MODEL, MESSAGES_MODEL, newestOpenAi, openAiClients, openAiUrl } from '../harness/sdk-clients.ts'
import { jsonOf } from '../harness/send.ts'
import { createTenant, type Tenant } from '../harness/tenant.ts'
import { marker, registerScript } from '../harness/upstream.ts'
import {
  assistant,
  kindsOf,
  LONG_TEXT,
  longConversation,
  modelWithWindow,
  sentWith,
  user,
} from './support/compactions.ts'
import { codePolicy, governedTenant, someCode } from './support/dlp.ts'
import { callTool, say } from './support/dlp-answers.ts'
import { ask, createResponse, type Json, listItems, type ToldResponse } from './support/response-calls.ts'
import { CORNER_WAYS, postResponse, respond, turnsScript } from './support/response-streams.ts'

const SUMMARY = '## Goals\nLaunch on Tuesday.'
const MANAGED = { context_management: [{ type: 'compaction', compact_threshold: 2_000 }] }

let tenant: Tenant
beforeAll(async () => {
  tenant = await createTenant(gateway())
})

const itemsOf = async (key: string, { conversation }: ToldResponse) =>
  (await listItems(key, `/v1/conversations/${conversation?.id}/items?order=asc&limit=100`)).data

describe.each(CORNER_WAYS)('context_management (%s)', (_, { upstream, model, stream }) => {
  const call = (body: Json, key = tenant.key) => respond(key, { model, stream, ...body })

  it('compacts a conversation over the threshold before its turn, and later turns start there', async () => {
    const owner = await createTenant(gateway())
    const [text, next, last] = [marker(), marker(), marker()]
    const { response: first } = await call({ input: longConversation(text) }, owner.key)
    const instructions = await turnsScript(upstream, [[say(SUMMARY)], [say('Answered.')]])
    const second = await call(
      { ...MANAGED, instructions, conversation: first.conversation?.id, input: next, max_output_tokens: 16 },
      owner.key,
    )
    const { response } = second
    expect(response).toMatchObject({ status: 'completed', output_text: 'Answered.' })
    expect(kindsOf(response.output)).toEqual(['compaction', 'assistant'])
    expect(response.output[0]?.encrypted_content).toMatch(/^hgc1_/)
    expect(response.usage).toMatchObject({ input_tokens: 6, output_tokens: 10, total_tokens: 16 })
    const [asked, answered] = await sentWith(next)
    expect(asked).toContain('discussed at length')
    expect(answered).toMatch(new RegExp(`Launch on Tuesday.*notify support first.*${next}`))
    expect(answered).not.toContain('discussed at length')

    const { response: third } = await call({ previous_response_id: response.id, input: last }, owner.key)
    const [continued] = await sentWith(last)
    expect(continued).toMatch(new RegExp(`Launch on Tuesday.*${next}.*Answered\\..*${last}`))
    expect(continued).not.toContain('discussed at length')
    const items = await itemsOf(owner.key, third)
    expect(kindsOf(items)).toEqual([
      'user',
      'assistant',
      'user',
      'assistant',
      'user',
      'compaction',
      'assistant',
      'user',
      'assistant',
    ])
    expect(JSON.stringify(items)).toContain('discussed at length')
    const calls = await callEntries(gateway(), owner, 4, ({ action }) => action === 'POST /v1/responses')
    const settled = calls.reduce((sum, { credits_settled }) => sum + credits_settled, 0)
    expect((await settledCredits(gateway(), owner)).balance).toBe(1_000_000_000 - settled)
  })

  it('is a part of the stream and of every replay of it', async () => {
    const instructions = await turnsScript(upstream, [[say(SUMMARY)], [say('Answered.')]])
    const { response, events } = await call({ ...MANAGED, instructions, input: longConversation(marker()) })
    const [item] = response.output
    if (stream) {
      expect(events.map(({ event }) => event).slice(2, 4)).toEqual([
        'response.output_item.added',
        'response.output_item.done',
      ])
    }
    const replay = await ask(tenant.key, 'GET', `/v1/responses/${response.id}?stream=true`)
    expect(replay.text).toContain(String(item?.encrypted_content))
    const whole = jsonOf(await ask(tenant.key, 'GET', `/v1/responses/${response.id}`)) as ToldResponse
    expect(whole.output).toEqual(response.output)
  })

  it('continues without a store, with or without the items before it', async () => {
    const [next, last] = [marker(), marker()]
    const input = longConversation(marker())
    const instructions = await turnsScript(upstream, [[say(SUMMARY)], [say('Answered.')]])
    const { response } = await call({ ...MANAGED, instructions, store: false, input })
    await call({ store: false, input: [...input, ...response.output, user(next)] })
    await call({ store: false, input: [...response.output, user(last)] })
    for (const text of [next, last]) {
      const [continued] = await sentWith(text)
      expect(continued).toMatch(/Launch on Tuesday.*Answered\./)
      expect(continued).not.toContain('discussed at length')
    }
  })

  it('leaves a context below the threshold, or without anything to summarize, as it is', async () => {
    const text = marker()
    const { response } = await call({ ...MANAGED, input: [user('Hi'), assistant('Hello'), user(text)] })
    expect(kindsOf(response.output)).toEqual(['assistant'])
    const { response: long } = await call({ ...MANAGED, input: `${text} ${LONG_TEXT}` })
    expect(kindsOf(long.output)).toEqual(['assistant'])
    expect(await sentWith(text)).toHaveLength(2)
  })

  it('keeps a conversation within the window of its model, whatever the threshold is', async () => {
    const small = await modelWithWindow(upstream, 8_000)
    const next = marker()
    const instructions = await turnsScript(upstream, [[say(SUMMARY)]])
    const input = [
      ...Array.from({ length: 12 }, () => [user('Go on.'), assistant(LONG_TEXT)]).flat(),
      user(next),
    ]
    for (const entry of [{ type: 'compaction', compact_threshold: 1_000_000 }, { type: 'compaction' }]) {
      const { response } = await call({
        ...{ model: small, instructions, input, context_management: [entry], truncation: 'auto' },
      })
      expect(kindsOf(response.output)).toEqual(['compaction', 'assistant'])
    }
    const sent = await sentWith(next)
    expect(sent.at(-1)).toContain('Launch on Tuesday')
    for (const body of sent) expect(body.length).toBeLessThan(8_000 * 4.5)
  })

  it('counts the turns of a response after its compaction', async () => {
    const refused = {
      tools: [{ type: 'function', name: 'f', parameters: { type: 'object', properties: {} } }],
      tool_choice: 'none',
    }
    const turns = [[say(SUMMARY)], [callTool('f', {})], [say('Done.')]]
    const instructions = await turnsScript(upstream, turns)
    const { response } = await call({
      ...MANAGED,
      ...refused,
      instructions,
      input: longConversation(marker()),
    })
    expect(response).toMatchObject({ status: 'completed', output_text: 'Done.' })
    expect(kindsOf(response.output)).toEqual(['compaction', 'assistant'])
  })

  it('compacts on a compaction_trigger, without an answer', async () => {
    const [text, next] = [marker(), marker()]
    const { response: first } = await call({ input: longConversation(text) })
    const instructions = await turnsScript(upstream, [[say(SUMMARY)]])
    const trigger = { type: 'compaction_trigger' }
    const { response, events } = await call({
      ...{ instructions, previous_response_id: first.id, input: [trigger] },
    })
    expect(response).toMatchObject({ status: 'completed', output_text: '' })
    expect(kindsOf(response.output)).toEqual(['compaction'])
    if (stream) {
      expect(events.map(({ event }) => event)).toEqual([
        'response.created',
        'response.in_progress',
        'response.output_item.added',
        'response.compaction.compacting',
        'response.output_item.done',
        'response.completed',
      ])
    }
    await call({ previous_response_id: response.id, input: next })
    expect((await sentWith(next))[0]).toContain('Launch on Tuesday')
    const answer = await postResponse(tenant.key, { model, stream, input: [trigger, user('Hello')] })
    expect(answer.status).toBe(400)
    expect(answer.text).toContain('input[0]: a compaction_trigger must be the last item.')
  })
})

describe.each(openAiClients)('%s', (_name, Client) => {
  it.each(Client === newestOpenAi ? ['headgate', 'open-responses'] : ['headgate'])(
    'streams a triggered compaction in the form of %s',
    async (form) => {
      const instructions = await turnsScript('chat', [[say(SUMMARY)]])
      const client = new Client({ apiKey: tenant.key, baseURL: openAiUrl(), maxRetries: 0 })
      const stream = client.responses.stream(
        {
          ...{ model: CHAT_MODEL, instructions, store: false },
          input: [...longConversation(marker()), { type: 'compaction_trigger' }] as never,
        },
        { headers: { 'x-headgate-compatibility': form } },
      )
      const final = await stream.finalResponse()
      expect(final).toMatchObject({ status: 'completed', output: [{ type: 'compaction' }] })
    },
  )

  it.each(Client === newestOpenAi ? [CHAT_MODEL, MESSAGES_MODEL] : [MESSAGES_MODEL])(
    'streams a compacted response of %s',
    async (model) => {
      const upstream = model === CHAT_MODEL ? 'chat' : 'messages'
      const client = new Client({ apiKey: tenant.key, baseURL: openAiUrl(), maxRetries: 0 })
      const instructions = await turnsScript(upstream, [[say(SUMMARY)], [say('Answered.')]])
      const stream = client.responses.stream({
        ...{ model, instructions, context_management: [{ type: 'compaction', compact_threshold: 2_000 }] },
        input: longConversation(marker()) as never,
      })
      const final = await stream.finalResponse()
      expect(final.output.map(({ type }) => type)).toEqual(['compaction', 'message'])
      expect(final.output_text).toBe('Answered.')
    },
  )
})

describe('a compaction that fails', () => {
  it('is an HTTP error before anything was generated', async () => {
    const instructions = await registerScript(gateway(), failed(429, undefined, { 'retry-after': '7' }))
    const answer = await postResponse(tenant.key, {
      ...MANAGED,
      instructions,
      input: longConversation(marker()),
    })
    expect([answer.status, answer.headers['retry-after']]).toEqual([429, '7'])
  })

  it('fails the response when a policy blocks the summary', async () => {
    const governed = await governedTenant(codePolicy('block', { directions: ['response'] }))
    const code = someCode()
    const instructions = await turnsScript('chat', [[say(`It is ${code}.`)], [say('Answered.')]])
    const { response, answer } = await respond(governed.key, {
      ...{ ...MANAGED, model: CHAT_MODEL, instructions, input: longConversation(marker()) },
    })
    expect(response).toMatchObject({ status: 'failed', output: [] })
    expect(answer.text).not.toContain(code)
  })

  it('leaves nothing in the conversation', async () => {
    const { conversation } = await createResponse(tenant.key, { input: longConversation(marker()) })
    const instructions = await turnsScript('chat', [[callTool('f', {})]])
    const { response } = await respond(tenant.key, {
      ...MANAGED,
      model: CHAT_MODEL,
      instructions,
      conversation: conversation?.id,
      input: 'And now?',
    })
    expect(response).toMatchObject({ status: 'failed', error: { code: 'upstream_empty_body' } })
    const next = marker()
    const again = await createResponse(tenant.key, { conversation: conversation?.id, input: next })
    const kinds = kindsOf(await itemsOf(tenant.key, again))
    expect(kinds).toEqual(['user', 'assistant', 'user', 'assistant', 'user', 'assistant'])
  })
})

it('is named when a conversation is too long for its model', async () => {
  const error = { message: 'too long', type: 'invalid_request_error', code: 'context_length_exceeded' }
  const script = await registerScript(gateway(), failed(400, JSON.stringify({ error })))
  const answer = await postResponse(tenant.key, { model: CHAT_MODEL, input: script })
  expect(answer.status).toBe(400)
  expect(jsonOf(answer)).toMatchObject({
    error: {
      code: 'context_length_exceeded',
      message: expect.stringMatching(/^too long.*context_management/),
    },
  })
})
