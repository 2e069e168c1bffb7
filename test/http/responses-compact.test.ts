import type OpenAI from 'openai'
import { beforeAll, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { openResponsesItemSchema } from '../harness/open-responses.ts'
import { callEntries, credits, settledCredits } from '../harness/records.ts'
import { CHAT_MODEL, MESSAGES_MODEL, newestOpenAi, openAiClients, openAiUrl } from '../harness/sdk-clients.ts'
import { jsonOf } from '../harness/send.ts'
import { addKey, addMember, administrator, createTenant, type Tenant } from '../harness/tenant.ts'
import { marker, registerScript } from '../harness/upstream.ts'
import { refusalBody } from '../matrices/envelopes.ts'
import {
  assistant,
  compact,
  compacted,
  kindsOf,
  LONG_TEXT,
  longConversation,
  modelWithWindow,
  sentWith,
  user,
} from './support/compactions.ts'
import { addPolicy, codePolicy, governedTenant, someCode } from './support/dlp.ts'
import { callTool, say, think } from './support/dlp-answers.ts'
import { createResponse, type Json } from './support/response-calls.ts'
import { postResponse, type ResponseWay, turnsScript } from './support/response-streams.ts'

const WAYS: ReadonlyArray<readonly [ResponseWay['upstream'], string]> = [
  ['chat', CHAT_MODEL],
  ['messages', MESSAGES_MODEL],
]
const SUMMARY = '## Goals\nLaunch on Tuesday.'
const SUMMARY_HEAD = 'Summary of the conversation before this point'

let tenant: Tenant
beforeAll(async () => {
  tenant = await createTenant(gateway())
})

describe.each(WAYS)('a compaction on %s', (upstream, model) => {
  it('summarizes long items, and keeps instructions and messages of the user', async () => {
    const [text, next] = [marker(), marker()]
    const instructions = await turnsScript(upstream, [[think('Hm.'), say(SUMMARY)]])
    const result = await compacted(tenant.key, {
      model,
      instructions,
      input: [{ role: 'developer', content: 'Be brief.' }, ...longConversation(text)],
    })
    expect(result).toMatchObject({
      id: expect.stringMatching(/^resp_/),
      object: 'response.compaction',
      created_at: expect.any(Number),
      usage: { input_tokens: 3, output_tokens: 5, total_tokens: 8 },
    })
    expect(kindsOf(result.output)).toEqual(['developer', 'user', 'user', 'compaction'])
    expect(JSON.stringify(result)).not.toContain('Launch on Tuesday')
    const [asked] = await sentWith(text)
    expect(asked).toContain('discussed at length')
    expect(asked).not.toContain('Be brief')

    await createResponse(tenant.key, { model, input: [...result.output, user(next)] })
    const [continued] = await sentWith(next)
    expect(continued).toMatch(new RegExp(`${SUMMARY_HEAD}.*Launch on Tuesday.*notify support first.*${next}`))
    expect(continued).toContain('Be brief')
    expect(continued).not.toMatch(/discussed at length|hgc1_/)
  })

  it.runIf(upstream === 'chat')('returns a short conversation unchanged, without a model call', async () => {
    const owner = await createTenant(gateway())
    const text = marker()
    const input = [user(`Remember ${text}.`), assistant('I will.')]
    const result = await compacted(owner.key, { model, input })
    expect(kindsOf(result.output)).toEqual(['user', 'assistant', 'compaction'])
    expect(result.usage).toMatchObject({ input_tokens: 0, output_tokens: 0, total_tokens: 0 })
    expect(await sentWith(text)).toEqual([])
    const [entry] = await callEntries(gateway(), owner, 1)
    expect(entry).toMatchObject({
      action: 'POST /v1/responses/compact',
      status: 200,
      model,
      credits_settled: 0,
    })
    const next = marker()
    await createResponse(owner.key, { model, input: [...result.output, user(next)] })
    const [continued] = await sentWith(next)
    expect(continued).toMatch(new RegExp(`${text}.*I will\\..*${next}`))
    expect(continued).not.toContain(SUMMARY_HEAD)
  })

  it.runIf(upstream === 'chat')(
    'summarizes a conversation far over the window of its model in parts, and charges each',
    async () => {
      const owner = await createTenant(gateway())
      const small = await modelWithWindow(upstream, 8_000)
      const [first, last] = [marker(), marker()]
      const answers = ['Part one.', 'Part two.', 'Part three.', 'All parts.']
      const instructions = await turnsScript(
        upstream,
        answers.map((text) => [say(text)]),
      )
      const exchange = (index: number) => [user(`Question ${index}`), assistant(LONG_TEXT.slice(0, 4_000))]
      const many = Array.from({ length: 40 }, (_, index) => exchange(index)).flat()
      const input = [user(first), assistant(LONG_TEXT.repeat(20)), ...many, user(last)]
      const result = await compacted(owner.key, { model: small, instructions, input })
      const calls = await callEntries(gateway(), owner, 11, ({ action }) => action.endsWith('/compact'))
      expect(calls.every(({ status }) => status === 200)).toBe(true)
      const charged = (member: string) =>
        calls.reduce((sum, { record }) => sum + Number((record.usage as Json)[member]), 0)
      expect(result.usage).toMatchObject({ input_tokens: charged('input'), output_tokens: charged('output') })
      const settled = calls.reduce((sum, { credits_settled }) => sum + credits_settled, 0)
      expect((await settledCredits(gateway(), owner)).balance).toBe(1_000_000_000 - settled)
      // An item longer than the window loses its middle.
      const [opening] = await sentWith(first)
      expect(opening).toContain('characters are left out here')
      const closing = (await sentWith(last))[0] ?? ''
      expect(closing).toContain('All parts.')
      expect(closing.length).toBeLessThan(8_000 * 4)
      expect(result.output.at(-1)).toMatchObject({ type: 'compaction' })
      const next = marker()
      await createResponse(owner.key, { model: small, input: [...result.output, user(next)] })
    },
  )

  it('keeps calls that the model has not continued after', async () => {
    const text = marker()
    const call = (id: string) => ({
      type: 'function_call',
      call_id: id,
      name: 'look_up',
      arguments: '{"a":1}',
    })
    const output = (id: string, result: string) => ({
      type: 'function_call_output',
      call_id: id,
      output: result,
    })
    const instructions = await turnsScript(upstream, [[callTool('look_up', {}), say(SUMMARY)]])
    const input = [
      user(text),
      call('call_1'),
      output('call_1', `Early. ${LONG_TEXT}`),
      call('call_2'),
      output('call_2', 'Late.'),
    ]
    const result = await compacted(tenant.key, { model, instructions, input })
    expect(kindsOf(result.output)).toEqual(['user', 'compaction', 'function_call', 'function_call_output'])
    expect(result.output.slice(2)).toMatchObject([{ call_id: 'call_2' }, { call_id: 'call_2' }])
    const [asked] = await sentWith(text)
    expect(asked).toContain('Early.')
    expect(asked).not.toContain('Late.')
    expect(asked).toContain('"tools":[')
    const next = marker()
    const tools = [{ type: 'function', name: 'look_up', parameters: { type: 'object' } }]
    await createResponse(tenant.key, { model, tools, input: [...result.output, user(next)] })
    expect((await sentWith(next))[0]).toMatch(/Launch on Tuesday.*Late\./)

    const open = await compacted(tenant.key, {
      model,
      instructions,
      input: [user('Hi'), assistant(LONG_TEXT), user('Look.'), call('call_3')],
    })
    expect(kindsOf(open.output)).toEqual(['user', 'user', 'compaction', 'function_call'])
    const answered = [...open.output, output('call_3', marker())]
    expect(await createResponse(tenant.key, { model, tools, input: answered })).toMatchObject({
      status: 'completed',
    })
  })

  it.runIf(upstream === 'chat')('returns items in the form of the key, or of the header', async () => {
    const strict = await createTenant(gateway(), { key: { compatibility: 'open_responses' } })
    const text = marker()
    const call = { type: 'shell_call', call_id: 'call_1', action: { commands: ['ls'] }, status: 'completed' }
    const image = { type: 'input_image', image_url: 'data:image/png;base64,iVBORw0KGgo=' }
    const body = {
      model,
      input: [
        { role: 'user', content: [{ type: 'input_text', text }, image] },
        { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Hm.' }] },
        { ...call, output: [{ stdout: 'a', stderr: '', outcome: { type: 'exit', exit_code: 0 } }] },
      ],
    }
    const form = (name: string) => ({ headers: { 'x-headgate-compatibility': name } })
    const [byKey, byHeader, own, mine] = await Promise.all([
      compacted(strict.key, body),
      compacted(tenant.key, body, form('open-responses')),
      compacted(strict.key, body, form('headgate')),
      compacted(tenant.key, body),
    ])
    for (const { output } of [byKey, byHeader]) {
      expect(output.map(({ type }) => type)).toEqual([
        'message',
        'message',
        'headgate:shell_call',
        'compaction',
      ])
      for (const item of output) expect(openResponsesItemSchema.safeParse(item).error).toBeUndefined()
    }
    for (const { output } of [own, mine]) expect(output[2]).toMatchObject({ type: 'shell_call' })
    const next = marker()
    await createResponse(strict.key, { model, input: [...byKey.output, user(next)] })
    const [continued] = await sentWith(next)
    expect(continued).toContain(text)
    expect(continued).not.toContain('headgate:')
  })

  it.runIf(upstream === 'messages')('compacts a stored conversation again and again', async () => {
    const [text, more] = [marker(), marker()]
    const first = await createResponse(tenant.key, { model, input: longConversation(text) })
    const stored = await compacted(tenant.key, {
      model,
      instructions: await turnsScript(upstream, [[say('First summary.')]]),
      previous_response_id: first.id,
      input: [user('What else?'), assistant(LONG_TEXT)],
    })
    expect(kindsOf(stored.output)).toEqual(['user', 'user', 'user', 'compaction'])
    const again = await compacted(tenant.key, {
      model,
      instructions: await turnsScript(upstream, [[say('Second summary.')]]),
      input: [...stored.output, assistant(LONG_TEXT), user(more)],
    })
    expect(kindsOf(again.output)).toEqual(['user', 'user', 'user', 'user', 'compaction'])
    expect((await sentWith(more))[0]).toContain('First summary.')
    const next = marker()
    await createResponse(tenant.key, { model, input: [...again.output, user(next)] })
    const [continued] = await sentWith(next)
    expect(continued).toContain('Second summary.')
    expect(continued).not.toContain('First summary.')
  })

  it.each([
    ['says nothing', [think('Hm.')], 502],
    ['only calls a tool', [callTool('f', {})], 502],
  ])('fails when the model %s', async (_, parts, status) => {
    const instructions = await turnsScript(upstream, [parts])
    const answer = await compact(tenant.key, { model, instructions, input: longConversation(marker()) })
    expect([answer.status, jsonOf(answer)]).toEqual([
      status,
      {
        error: expect.objectContaining({
          code: 'upstream_empty_body',
          message: expect.stringMatching(/summary/),
        }),
      },
    ])
  })
})

describe.each(openAiClients)('%s', (_name, Client) => {
  it.each(Client === newestOpenAi ? WAYS : WAYS.slice(0, 1))(
    'compacts and continues on %s',
    async (upstream, model) => {
      const client = new Client({ apiKey: tenant.key, baseURL: openAiUrl(), maxRetries: 0 })
      const result = await client.responses.compact({
        model,
        instructions: await turnsScript(upstream, [[say(SUMMARY)]]),
        input: longConversation(marker()) as OpenAI.Responses.ResponseInput,
      })
      expect(result.output.at(-1)?.type).toBe('compaction')
      const next = marker()
      const input = [...result.output, user(next)] as OpenAI.Responses.ResponseInput
      const response = await client.responses.create({ model, input })
      expect(response.output_text).toContain(next)
      expect((await sentWith(next))[0]).toContain('Launch on Tuesday')
    },
  )
})

describe('a compaction item', () => {
  let item: Json
  let stranger: Tenant
  let colleague: string

  beforeAll(async () => {
    stranger = await createTenant(gateway())
    colleague = (await addKey(gateway(), tenant.base, await addMember(gateway(), tenant.base))).key
    const instructions = await turnsScript('chat', [[say(SUMMARY)]])
    const { output } = await compacted(tenant.key, { instructions, input: longConversation(marker()) })
    item = output.at(-1) ?? {}
  })

  const changed = () => String(item.encrypted_content).replace(/.$/, (last) => (last === 'A' ? 'B' : 'A'))
  const reasoning = () => String(item.encrypted_content).replace('hgc1_', 'hgr1_')

  it('opens with every model of its owner', async () => {
    for (const [, model] of WAYS) {
      const next = marker()
      await createResponse(tenant.key, { model, input: [item, user(next)] })
      expect((await sentWith(next))[0]).toContain('Launch on Tuesday')
    }
  })

  it.each([
    ['of another organization', () => stranger.key, () => item],
    ['of a colleague', () => colleague, () => item],
    ['that was changed', () => tenant.key, () => ({ ...item, encrypted_content: changed() })],
    ['of another kind', () => tenant.key, () => ({ ...item, encrypted_content: reasoning() })],
    ['of another service', () => tenant.key, () => ({ ...item, encrypted_content: 'gAAAAABpM0Yj' })],
  ])('is refused when it is one %s', async (_, key, sent) => {
    const text = marker()
    const refusal = refusalBody('responses', {
      status: 400,
      code: 'invalid_encrypted_content',
      message: /encrypted_content of a compaction item cannot be opened/,
    })
    for (const answer of [
      await postResponse(key(), { input: [sent(), user(text)] }),
      await compact(key(), { input: [sent(), user(text)] }),
    ]) {
      expect([answer.status, jsonOf(answer)]).toEqual([400, refusal])
    }
    expect(await sentWith(text)).toEqual([])
  })
})

describe('who may compact', () => {
  it('needs a model and something to compact', async () => {
    const bodies = [
      { input: 'x', model: undefined },
      { input: 'x', model: null },
      {},
      { input: null },
      { input: [] },
    ]
    for (const body of bodies) {
      const answer = await compact(tenant.key, body)
      expect([answer.status, jsonOf(answer)]).toEqual([
        400,
        refusalBody('responses', { status: 400, code: 'invalid_body', message: /^(model|input): / }),
      ])
    }
  })

  it('refuses conversations of others', async () => {
    const stranger = await createTenant(gateway())
    const { id, conversation } = await createResponse(tenant.key, { input: 'Mine.' })
    for (const body of [{ previous_response_id: id }, { conversation: conversation?.id }]) {
      expect((await compact(stranger.key, body)).status).toBe(404)
      expect(kindsOf((await compacted(tenant.key, body)).output)).toEqual(['user', 'assistant', 'compaction'])
    }
  })

  it('refuses a revoked key, a model that is not granted, and a caller without credits', async () => {
    const text = marker()
    const input = longConversation(text)
    const revoked = await addKey(gateway(), tenant.base, tenant.userId)
    await administrator(gateway()).ask('DELETE', `${tenant.base}/keys/${revoked.id}`)
    expect((await compact(revoked.key, { input })).status).toBe(401)
    const other = await createTenant(gateway(), { models: [MESSAGES_MODEL] })
    expect((await compact(other.key, { input })).status).toBe(403)
    expect((await compact(other.key, { input: 'Hello' })).status).toBe(403)
    const poor = await createTenant(gateway(), { credits: 0 })
    const answer = await compact(poor.key, { input })
    expect([answer.status, answer.headers['x-headgate-limit']]).toEqual([429, 'credits'])
    expect(await sentWith(text)).toEqual([])
  })

  it('stops between two parts when the credits are used up, and charges the first', async () => {
    const owner = await createTenant(gateway(), { credits: 20_000 })
    const model = await modelWithWindow('chat', 8_000)
    const usage = { prompt_tokens: 6_000, completion_tokens: 2_000, total_tokens: 8_000 }
    const chunk = (choices: object[], more: object = {}) =>
      `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices, ...more })}\n\n`
    const instructions = await registerScript(gateway(), [
      {
        sse: [
          chunk([{ index: 0, delta: { role: 'assistant', content: 'One.' }, finish_reason: null }]),
          chunk([{ index: 0, delta: {}, finish_reason: 'stop' }]),
          chunk([], { usage }),
          'data: [DONE]\n\n',
        ],
      },
    ])
    const input = Array.from({ length: 12 }, () => [user('Go on.'), assistant(LONG_TEXT)]).flat()
    const answer = await compact(owner.key, { model, instructions, input })
    expect([answer.status, answer.headers['x-headgate-limit']]).toEqual([429, 'credits'])
    const calls = await callEntries(gateway(), owner, 2)
    expect(calls.map(({ status }) => status).sort()).toEqual([200, 429])
    const settled = calls.reduce((sum, { credits_settled }) => sum + credits_settled, 0)
    expect(settled).toBeGreaterThan(0)
    expect((await credits(gateway(), owner)).balance).toBe(20_000 - settled)
  })
})

// Policies stand between the compaction and its model calls, whose protocol they do not see.
describe('policies', () => {
  const [[upstream, model]] = WAYS as [(typeof WAYS)[number]]

  it.each(['request', 'tool_result'])('block a compaction with a finding in a %s', async (direction) => {
    const governed = await governedTenant(codePolicy('block', { directions: [direction] }))
    const [text, code] = [marker(), someCode()]
    const place: Record<string, Json[]> = {
      request: [user(code)],
      tool_result: [
        { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' },
        { type: 'function_call_output', call_id: 'c', output: code },
      ],
    }
    const input = [user(text), ...(place[direction] ?? []), assistant(LONG_TEXT), user('So?')]
    const answer = await compact(governed.key, { model, input })
    expect([answer.status, jsonOf(answer)]).toEqual([
      400,
      { error: expect.objectContaining({ code: 'dlp_blocked' }) },
    ])
    expect(answer.text).not.toContain(code)
    expect(await sentWith(text)).toEqual([])
  })

  it('block a summary with a finding', async () => {
    const governed = await governedTenant(codePolicy('block', { directions: ['response'] }))
    const code = someCode()
    const instructions = await turnsScript(upstream, [[say(`The code is ${code}.`)]])
    const answer = await compact(governed.key, { model, instructions, input: longConversation(marker()) })
    expect([answer.status, jsonOf(answer)]).toEqual([
      400,
      { error: expect.objectContaining({ code: 'dlp_blocked' }) },
    ])
    expect(answer.text).not.toContain(code)
  })

  it('redact a summary before it is sealed, and messages that are kept', async () => {
    const governed = await governedTenant(codePolicy('redact'))
    const [code, kept, next] = [someCode(), someCode(), marker()]
    const instructions = await turnsScript(upstream, [[say(`The code is ${code}.`)]])
    const input = [user(`My code is ${kept}.`), assistant(LONG_TEXT), user('So?')]
    const result = await compacted(governed.key, { model, instructions, input })
    expect(JSON.stringify(result)).not.toContain(kept)
    await createResponse(governed.key, { model, input: [...result.output, user(next)] })
    const [continued] = await sentWith(next)
    expect(continued).toContain('The code is ')
    expect(continued).not.toContain(code)
  })

  it('inspect a summary again when it is opened', async () => {
    const owner = await createTenant(gateway())
    const [code, next] = [someCode(), marker()]
    const instructions = await turnsScript(upstream, [[say(`The code is ${code}.`)]])
    const { output } = await compacted(owner.key, { model, instructions, input: longConversation(marker()) })
    await addPolicy(owner, codePolicy('block', { directions: ['request'] }))
    const answer = await postResponse(owner.key, { model, input: [...output, user(next)] })
    expect(jsonOf(answer)).toMatchObject({ error: { code: 'dlp_blocked' } })
    expect(await sentWith(next)).toEqual([])
  })
})
