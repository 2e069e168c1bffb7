import { beforeAll, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
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
  type Way,
} from './support/dlp.ts'
import { settledCredits } from './support/records.ts'
import { jsonOf, send } from './support/send.ts'
import { addKey, addMember, administrator, bearer, createTenant, type Tenant } from './support/tenant.ts'
import { marker, seenRequest, seenRequests } from './support/upstream.ts'

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

describe.each(namedWays(WAYS))('a request of %s', (_, way) => {
  it.each(ACTIONS)('reaches the upstream as %s says', async (action) => {
    const tenant = tenants[action]
    const code = someCode()
    const mark = marker()
    const answer = await callWay(way, tenant, `Of ${mark}: is ${code} known?`)
    const told = await recordOf(tenant, answer)
    const version = expect.stringMatching(/^[0-9a-f-]{36}@1$/)
    const expected = IN_PLACE[action](code)
    // What passes comes back as well: the upstream repeats what it was told.
    const findings = action === 'allow' ? {} : { code: action === 'warn' ? 2 : 1 }
    expect(told.dlp).toEqual({ policyVersion: version, findings })
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

  it('of 20 MB take a bounded time', async () => {
    const codes = [someCode(), someCode()]
    const text = crossing(codes, 20_000_000)
    const started = Date.now()
    const answer = await callWay(MESSAGES_WAY, tenants.redact, text)
    expect(answer.status).toBe(200)
    expect(Date.now() - started).toBeLessThan(15_000)
    expect((await recordOf(tenants.redact, answer)).dlp?.findings).toEqual({ code: 2 })
  })
})

describe('scopes', () => {
  const code = someCode()
  const isBlocked = async (way: Pick<Way, 'route' | 'model'>, key: string) =>
    (await callWay(way, { key }, code)).status === 400

  it('narrow a policy to models, users and groups', async () => {
    const tenant = await createTenant(gateway())
    const { ask } = administrator(gateway())
    const [other, group] = await Promise.all([
      addMember(gateway(), tenant.base),
      ask<{ id: string }>('POST', `${tenant.base}/groups`, { name: 'clerks' }),
    ])
    const { key } = await addKey(gateway(), tenant.base, other)
    const policy = await addPolicy(tenant, codePolicy('block', { scope: { model_ids: [CHAT.model] } }))
    expect(await isBlocked(CHAT_WAY, tenant.key)).toBe(true)
    expect(await isBlocked(MESSAGES_WAY, tenant.key)).toBe(false)
    const path = `${tenant.base}/dlp/policies/${policy.id}`
    await ask('PUT', path, { version: 1, scope: { user_ids: [other] } })
    expect(await isBlocked(CHAT_WAY, tenant.key)).toBe(false)
    expect(await isBlocked(CHAT_WAY, key)).toBe(true)
    await ask('PUT', path, { version: 2, scope: { group_ids: [group.id] } })
    expect(await isBlocked(CHAT_WAY, key)).toBe(false)
    await ask('PUT', `${tenant.base}/groups/${group.id}/members/${other}`)
    expect(await isBlocked(CHAT_WAY, key)).toBe(true)
    expect(await isBlocked(CHAT_WAY, tenant.key)).toBe(false)
  })

  it('a direction that no policy covers is let alone', async () => {
    const tenant = await governedTenant(codePolicy('redact', { directions: ['tool_result'] }))
    const mark = marker()
    const messages = [
      { role: 'user', content: `${mark} ${code}` },
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: `{"a":"${code}"}` } }],
      },
      { role: 'tool', tool_call_id: 'c', content: `got ${code}` },
    ]
    expect((await callWay(CHAT_WAY, tenant, 'x', { messages })).status).toBe(200)
    const sent = JSON.parse((await seenRequest(gateway(), mark)).body)
    expect(sent.messages).toEqual([
      messages[0],
      messages[1],
      { role: 'tool', tool_call_id: 'c', content: 'got [REDACTED:CODE]' },
    ])
  })

  it('the most severe of several policies counts', async () => {
    const tenant = await governedTenant(codePolicy('redact'))
    expect(await isBlocked(CHAT_WAY, tenant.key)).toBe(false)
    await addPolicy(tenant, codePolicy('block'))
    expect(await isBlocked(CHAT_WAY, tenant.key)).toBe(true)
  })
})

describe('content that cannot be inspected', () => {
  const data = Buffer.alloc(90, 7).toString('base64')
  const IMAGE = { type: 'image_url', image_url: { url: `data:image/png;base64,${data}` } }
  const FILE = { type: 'file', file: { filename: 'a.pdf', file_data: `data:application/pdf;base64,${data}` } }
  const AUDIO = { type: 'input_audio', input_audio: { data, format: 'wav' } }
  const base64 = { type: 'base64', media_type: 'image/png', data }
  const BLOCK = { type: 'image', source: base64 }
  const PAGES = { type: 'document', source: { ...base64, media_type: 'application/pdf' } }
  const REMOTE = { type: 'document', source: { type: 'url', url: 'https://example.com/a.pdf' } }
  const PLAIN = { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'a page' } }
  const user = (...content: unknown[]) => [
    { role: 'user', content: [{ type: 'text', text: 'x' }, ...content] },
  ]
  const result = (...content: unknown[]) => [
    { role: 'user', content: 'x' },
    { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'f', input: {} }] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't', content }] },
  ]
  let blocking: Tenant
  const covering = () => tenants.warn

  beforeAll(async () => {
    const uninspectable = { request: 'block', tool_result: 'allow' }
    blocking = await governedTenant(codePolicy('warn', { uninspectable }))
  })

  const outcome = async (way: Way, tenant: Tenant, messages: unknown) => {
    const answer = await callWay(way, tenant, 'x', { messages })
    const { error } = jsonOf(answer) as { error?: { code?: string; message: string } }
    if (answer.status === 200) return 'passes'
    expect(error?.message).toMatch(/content that cannot be inspected/)
    expect(answer.headers['x-should-retry']).toBe('false')
    return 'blocked'
  }

  it.each([
    ['an image', CHAT_WAY, user(IMAGE)],
    [
      'a remote image',
      CHAT_WAY,
      user({ type: 'image_url', image_url: { url: 'https://example.com/a.png' } }),
    ],
    ['a file', CHAT_WAY, user(FILE)],
    ['audio', CHAT_WAY, user(AUDIO)],
    ['an image for another protocol', CHAT_TO_MESSAGES, user(IMAGE)],
    ['an image block', MESSAGES_WAY, user(BLOCK)],
    ['a document', MESSAGES_WAY, user(PAGES)],
    ['a remote document', MESSAGES_WAY, user(REMOTE)],
  ] as const)('%s passes or is blocked as the policy says', async (_, way, messages) => {
    expect(await outcome(way, blocking, messages)).toBe('blocked')
    expect(await outcome(way, covering(), messages)).toBe('passes')
  })

  it('tool results with it are blocked unless a policy allows it', async () => {
    for (const block of [BLOCK, PAGES]) {
      expect(await outcome(MESSAGES_WAY, covering(), result(block))).toBe('blocked')
      expect(await outcome(MESSAGES_WAY, blocking, result(block))).toBe('passes')
    }
    const elsewhere = await governedTenant(codePolicy('warn', { directions: ['request'] }))
    expect(await outcome(MESSAGES_WAY, elsewhere, result(BLOCK))).toBe('passes')
  })

  it('a document of plain text can be inspected', async () => {
    expect(await outcome(MESSAGES_WAY, blocking, user(PLAIN))).toBe('passes')
    expect(await outcome(MESSAGES_WAY, covering(), result(PLAIN))).toBe('passes')
  })

  it('its type may be spelt with escapes', async () => {
    const escaped = [...'image_url'].map((char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
    const body = JSON.stringify(CHAT.request('x', { messages: user(IMAGE) })).replace(
      '"type":"image_url"',
      `"\\u0074ype":"${escaped.join('')}"`,
    )
    const answer = await send(gateway().baseUrl + CHAT.path, {
      method: 'POST',
      headers: bearer(blocking.key),
      body,
    })
    expect(answer.status).toBe(400)
  })

  it('prompts of token numbers are such content', async () => {
    const way = { route: COMPLETIONS, model: CHAT.model }
    for (const prompt of [
      [1, 2, 3],
      [[1, 2], [3]],
    ]) {
      expect((await callWay(way, blocking, 'x', { prompt })).status).toBe(400)
      expect((await callWay(way, covering(), 'x', { prompt })).status).toBe(200)
    }
  })

  it('is not what a tool calls so itself', async () => {
    const schema = { type: 'object', properties: { type: { enum: ['image'], default: 'image' } } }
    const tools = [{ name: 'f', input_schema: schema }]
    const input = { type: 'image', source: { type: 'base64' } }
    const messages = [
      { role: 'user', content: 'x' },
      { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'f', input }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't', content: 'y' }] },
    ]
    const answer = await callWay(MESSAGES_WAY, blocking, 'x', { messages, tools })
    expect(answer.status).toBe(200)
  })
})

it('a model that is not there is told before anything is inspected', async () => {
  const answer = await callWay({ route: MESSAGES, model: 'no-such-model' }, tenants.block, someCode())
  expect(answer.status).toBe(404)
})
