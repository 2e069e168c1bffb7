import { beforeAll, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { settledCredits } from '../harness/records.ts'
import { jsonOf } from '../harness/send.ts'
import { administrator, type Tenant, uniqueName } from '../harness/tenant.ts'
import { marker, seenRequest, seenRequests } from '../harness/upstream.ts'
import { refusalBody } from '../matrices/envelopes.ts'
import {
  addPolicy,
  CHAT,
  CHAT_TO_MESSAGES,
  CHAT_WAY,
  COMPLETIONS,
  COUNT,
  callWay,
  codePolicy,
  expectBalance,
  governedTenant,
  MESSAGES,
  MESSAGES_TO_CHAT,
  MESSAGES_WAY,
  namedWays,
  recordOf,
  someCode,
  tracesOf,
  WAYS,
} from './support/dlp.ts'

const ACTIONS = ['allow', 'warn', 'mask', 'redact', 'tokenise', 'block'] as const
const tenants = {} as Record<(typeof ACTIONS)[number], Tenant>

beforeAll(async () => {
  for (const action of ACTIONS) tenants[action] = await governedTenant(codePolicy(action))
})

const TOKEN = /\[\[CODE_[0-9a-f]{12}\]\]/
const IN_PLACE: Record<(typeof ACTIONS)[number], (code: string) => RegExp | null> = {
  allow: (code) => new RegExp(code),
  warn: (code) => new RegExp(code),
  mask: (code) => new RegExp(`\\*\\*-\\*{4}-\\*\\*${code.slice(-4)}`),
  redact: () => /\[REDACTED:CODE\]/,
  tokenise: () => TOKEN,
  block: () => null,
}

/** An action is done before a protocol is written: each protocol has all of them, each other way has one that changes and one that ends. */
const actionsOf = (way: (typeof WAYS)[number]) =>
  way === CHAT_WAY || way === MESSAGES_WAY ? ACTIONS : (['tokenise', 'block'] as const)

describe.each(namedWays(WAYS))('a request of %s', (_, way) => {
  it.each(actionsOf(way))('reaches the upstream as %s says', async (action) => {
    const tenant = tenants[action]
    const code = someCode()
    const mark = marker()
    const answer = await callWay(way, tenant, `Of ${mark}: is ${code} known?`)
    const told = await recordOf(tenant, answer)
    const version = expect.stringMatching(/^[0-9a-f-]{36}@1$/)
    const expected = IN_PLACE[action](code)
    // Text that passes comes back, because the upstream repeats its input.
    const findings = action === 'allow' ? {} : { code: action === 'warn' ? 2 : 1 }
    const breakdown = action === 'allow' ? {} : { breakdown: expect.any(Array) }
    expect(told.dlp).toEqual({ policyVersion: version, findings, ...breakdown })
    if (expected === null) {
      expect(answer.status).toBe(400)
      expect(jsonOf(answer)).toEqual(
        refusalBody(way.route.surface, { status: 400, code: 'dlp_blocked', message: /found code/ }),
      )
      expect(answer.headers['x-should-retry']).toBe('false')
      expect(await seenRequests(gateway(), mark)).toEqual([])
      expect(told.record).toMatchObject({ status: 400, errorCode: 'dlp_blocked', cost: 0, attempts: [] })
      return
    }
    expect(answer.status).toBe(200)
    const { body } = await seenRequest(gateway(), mark)
    expect(body).toMatch(expected)
    if (action !== 'allow' && action !== 'warn') {
      for (const trace of tracesOf(code).slice(0, 2)) expect(body).not.toContain(trace)
    }
    expect(expectBalance(told)).toEqual(['request', 'response'])
    expect((told.request?.withheld ?? 0) > 0).toBe(action !== 'allow' && action !== 'warn')
  })
})

it('a blocked call costs nothing and reserves nothing', async () => {
  const { available, balance } = await settledCredits(gateway(), tenants.block)
  expect(available).toBe(balance)
  expect(balance).toBe(1_000_000_000)
})

/** A conversation of each protocol with the value in every place that takes text. */
function chatEverywhere(code: string, mark: string): Record<string, unknown> {
  return {
    user: code,
    stop: [`stop ${code}`],
    metadata: { note: code },
    messages: [
      { role: 'system', content: `${mark} ${code}` },
      { role: 'developer', content: [{ type: 'text', text: `say ${code}` }] },
      { role: 'user', name: `n${code}`, content: `a\\"\n${code.replaceAll('-', '\u2010')} ${code}` },
      {
        role: 'assistant',
        content: null,
        tool_calls: [
          {
            id: 'call_1',
            type: 'function',
            function: {
              name: 'find',
              arguments: JSON.stringify({ code, [code]: 'x', deep: [{ code: [`"${code}"`] }] }),
            },
          },
        ],
      },
      { role: 'tool', tool_call_id: 'call_1', content: JSON.stringify({ result: `{"code":"${code}"}` }) },
      { role: 'assistant', content: `I know ${code}` },
      {
        role: 'user',
        content: [
          { type: 'text', text: code },
          { type: 'text', text: 'and more' },
        ],
      },
    ],
    tools: [
      {
        type: 'function',
        function: {
          name: 'find',
          description: `finds ${code}`,
          parameters: {
            type: 'object',
            properties: { code: { type: 'string', description: code, enum: [code] } },
          },
        },
      },
    ],
  }
}

function messagesEverywhere(code: string, mark: string): Record<string, unknown> {
  const source = { type: 'text', media_type: 'text/plain', data: `page ${code}` }
  return {
    system: [{ type: 'text', text: `${mark} ${code}`, cache_control: { type: 'ephemeral' } }],
    stop_sequences: [`stop ${code}`],
    metadata: { user_id: code },
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text: code },
          { type: 'document', source, title: code },
        ],
      },
      {
        role: 'assistant',
        content: [
          { type: 'text', text: `so ${code}` },
          {
            type: 'tool_use',
            id: 'toolu_1',
            name: 'find',
            input: { code, [code]: 1, type: code, deep: [{ code: [{ id: `<${code}>` }] }] },
          },
        ],
      },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 'toolu_1', content: [{ type: 'text', text: `it: ${code}` }] },
          { type: 'text', text: code },
        ],
      },
    ],
    tools: [
      {
        name: 'find',
        description: `finds ${code}`,
        input_schema: { type: 'object', properties: { code: { type: 'string', description: code } } },
      },
    ],
  }
}

describe('the upstream sees no value, wherever it stands', () => {
  it.each(namedWays([CHAT_WAY, CHAT_TO_MESSAGES]))('%s', async (_, way) => {
    const code = someCode()
    const mark = marker()
    const answer = await callWay(way, tenants.redact, 'x', chatEverywhere(code, mark))
    expect(answer.status).toBe(200)
    const { body } = await seenRequest(gateway(), mark)
    for (const trace of tracesOf(code)) expect(body).not.toContain(trace)
    const sent = JSON.parse(body) as {
      messages: Array<{ tool_calls?: Array<{ function: { arguments: string } }> }>
    }
    if (way === CHAT_WAY) {
      const { arguments: text } = sent.messages[3]?.tool_calls?.[0]?.function ?? { arguments: '' }
      const hidden = '[REDACTED:CODE]'
      expect(JSON.parse(text)).toMatchObject({
        code: hidden,
        [hidden]: 'x',
        deep: [{ code: [`"${hidden}"`] }],
      })
    }
    const told = await recordOf(tenants.redact, answer)
    expect(told.dlp?.findings.code).toBeGreaterThanOrEqual(15)
    expectBalance(told)
  })

  it.each(
    namedWays([MESSAGES_WAY, MESSAGES_TO_CHAT, { ...MESSAGES_WAY, name: 'counted tokens', route: COUNT }]),
  )('%s', async (_, way) => {
    const code = someCode()
    const mark = marker()
    const { stop_sequences, ...rest } = messagesEverywhere(code, mark)
    const more = way.route === COUNT ? rest : { ...rest, stop_sequences }
    const answer = await callWay(way, tenants.redact, 'x', more)
    expect(answer.status, answer.text).toBe(200)
    const { body } = await seenRequest(gateway(), mark)
    for (const trace of tracesOf(code)) expect(body).not.toContain(trace)
    expectBalance(await recordOf(tenants.redact, answer))
  })

  it('in every prompt of a legacy completion', async () => {
    const code = someCode()
    const mark = marker()
    const prompt = [`${mark} ${code}`, `${code} ${mark}`]
    const answer = await callWay({ route: COMPLETIONS, model: CHAT.model }, tenants.redact, 'x', { prompt })
    expect(answer.status).toBe(200)
    const { body } = await seenRequest(gateway(), mark)
    expect(body.split('[REDACTED:CODE]')).toHaveLength(3)
    expect(body).not.toContain(code)
  })

  it('when tokens are counted for a model of the other protocol', async () => {
    const answer = await callWay({ route: COUNT, model: CHAT.model }, tenants.block, someCode())
    expect(answer.status).toBe(400)
    expect(jsonOf(answer)).toMatchObject({ type: 'error', error: { type: 'invalid_request_error' } })
  })

  it('nor numbers that a tool was called with', async () => {
    const card = await governedTenant(
      codePolicy('redact', { rules: [{ detector: 'card', action: 'redact' }], patterns: [] }),
    )
    const mark = marker()
    const input = { [mark]: 1, pan: 4111111111111111, list: [4242424242424242, 1.5], cvc: 123 }
    const messages = [
      { role: 'user', content: 'x' },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'pay', input }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'paid' }] },
    ]
    expect((await callWay(MESSAGES_WAY, card, 'x', { messages })).status).toBe(200)
    const sent = JSON.parse((await seenRequest(gateway(), mark)).body)
    expect(sent.messages[1].content[0].input).toEqual({
      [mark]: 1,
      pan: '[REDACTED:CARD]',
      list: ['[REDACTED:CARD]', 1.5],
      cvc: 123,
    })
  })

  it('nor what only the name of its member tells', async () => {
    const rules = [
      { detector: 'secret', action: 'redact' },
      { detector: 'us_ssn', action: 'redact' },
    ]
    const tenant = await governedTenant(codePolicy('redact', { rules, patterns: [] }))
    const mark = marker()
    const input = { mark, password: 'hunter2passX9q', person: { ssn: '078051120' }, order: '078051120' }
    const messages = [
      { role: 'user', content: 'x' },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'login', input }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'done' }] },
    ]
    const hidden = { password: '[REDACTED:SECRET]', person: { ssn: '[REDACTED:US_SSN]' }, order: '078051120' }
    expect((await callWay(MESSAGES_WAY, tenant, 'x', { messages })).status).toBe(200)
    const seen = JSON.parse((await seenRequest(gateway(), mark)).body)
    expect(seen.messages[1].content[0].input).toEqual({ mark, ...hidden })

    const chatMark = marker()
    const call = {
      id: 'call_1',
      type: 'function',
      function: { name: 'login', arguments: JSON.stringify({ ...input, mark: chatMark }) },
    }
    const chat = [
      { role: 'user', content: 'x' },
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', tool_call_id: 'call_1', content: 'done' },
    ]
    expect((await callWay(CHAT_WAY, tenant, 'x', { messages: chat })).status).toBe(200)
    const sent = JSON.parse((await seenRequest(gateway(), chatMark)).body)
    expect(JSON.parse(sent.messages[1].tool_calls[0].function.arguments)).toEqual({
      mark: chatMark,
      ...hidden,
    })
  })
})

describe('thinking that a caller sends back', () => {
  const conversation = (mark: string, thinking: string) => ({
    messages: [
      { role: 'user', content: mark },
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking, signature: 'c2lnbmVk' },
          { type: 'text', text: 'so' },
        ],
      },
      { role: 'user', content: 'and?' },
    ],
  })

  it('stays behind when it has to be changed: its signature would be of another text', async () => {
    const code = someCode()
    const mark = marker()
    const answer = await callWay(MESSAGES_WAY, tenants.redact, 'x', conversation(mark, `I see ${code}`))
    expect(answer.status).toBe(200)
    const sent = JSON.parse((await seenRequest(gateway(), mark)).body)
    expect(sent.messages[1].content).toEqual([{ type: 'text', text: 'so' }])
    expectBalance(await recordOf(tenants.redact, answer))
  })

  it('passes as it was signed otherwise', async () => {
    const mark = marker()
    await callWay(MESSAGES_WAY, tenants.redact, 'x', conversation(mark, 'I see'))
    const sent = JSON.parse((await seenRequest(gateway(), mark)).body)
    expect(sent.messages[1].content[0]).toEqual({
      type: 'thinking',
      thinking: 'I see',
      signature: 'c2lnbmVk',
    })
  })
})

describe('large bodies', () => {
  const SLICE = 256 * 1024
  /** A text whose values lie across the places where a long text is cut. */
  function crossing(codes: readonly string[], length: number): string {
    const prose = 'Lorem ipsum dolor sit amet. '
    let text = ''
    codes.forEach((code, index) => {
      const at = (index + 1) * SLICE - 2 - index
      text = text.padEnd(at, prose) + code
    })
    return text.padEnd(length, prose)
  }

  it.each(namedWays([CHAT_WAY, MESSAGES_WAY, CHAT_TO_MESSAGES]))(
    'of %s hold no value, also where the engine cuts them',
    async (_, way) => {
      const mark = marker()
      const codes = [someCode(), someCode(), someCode()]
      const text = crossing(codes, 1_000_000)
      const messages = [{ role: 'user', content: `${mark} ${'é'.repeat(9)}${text}` }]
      const answer = await callWay(way, tenants.redact, 'x', { messages })
      expect(answer.status).toBe(200)
      const told = await recordOf(tenants.redact, answer)
      expect(told.dlp?.findings).toEqual({ code: 3 })
      expectBalance(told)
      const { bodyBytes, body } = await seenRequest(gateway(), mark)
      expect(bodyBytes).toBeGreaterThan(1_000_000)
      for (const code of codes) expect(body).not.toContain(code)
    },
  )

  it('are inspected once, however often the catalogue changes meanwhile', async () => {
    const { ask } = administrator(gateway())
    const model = await someModel()
    let answered = false
    const text = crossing([someCode(), someCode()], 12_000_000)
    const call = callWay(MESSAGES_WAY, tenants.redact, text)
    const ended = call.finally(() => {
      answered = true
    })
    let changes = 0
    for (; !answered && changes < 30; changes++) {
      await ask('PUT', `/models/${model.id}`, { ...model.members, context_window: 10_000 + changes })
    }
    const answer = await ended
    expect(changes).toBeGreaterThan(10)
    expect(answer.status, answer.text).toBe(200)
    expect((await recordOf(tenants.redact, answer)).dlp?.findings).toEqual({ code: 2 })
  })

  it('are subject to a policy that is added while they are inspected', async () => {
    const tenant = await governedTenant(codePolicy('redact'))
    const mark = marker()
    const call = callWay(MESSAGES_WAY, tenant, mark + crossing([someCode()], 20_000_000))
    await addPolicy(tenant, codePolicy('block'))
    const answer = await call
    expect(answer.status, answer.text).toBe(400)
    expect((await recordOf(tenant, answer)).record).toMatchObject({ errorCode: 'dlp_blocked' })
    expect(await seenRequests(gateway(), mark)).toEqual([])
  })
})

/** A model that nobody calls. */
async function someModel() {
  const { ask } = administrator(gateway())
  const provider = await ask('POST', '/providers', {
    name: uniqueName('provider'),
    kind: 'openai-compatible',
    base_url: `${gateway().standIns.modelUpstream}/v1`,
    credential: 'a credential',
  })
  const members = {
    owned_by: 'test',
    max_output_tokens: 1_000,
    prices: { input: 0, output: 0 },
    routes: [{ provider_id: provider.id, upstream_model: 'some-model' }],
  }
  return { id: uniqueName('model'), members }
}

it('a model that is not there is told before anything is inspected', async () => {
  const answer = await callWay({ route: MESSAGES, model: 'no-such-model' }, tenants.block, someCode())
  expect(answer.status).toBe(404)
})
