import { beforeAll, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import type { Tenant } from '../harness/tenant.ts'
import { marker, seenRequest } from '../harness/upstream.ts'
import {
  CHAT_TO_MESSAGES,
  CHAT_WAY,
  callWay,
  codePolicy,
  expectBalance,
  governedTenant,
  MESSAGES_WAY,
  namedWays,
  recordOf,
  someCode,
  type Way,
} from './support/dlp.ts'

type Json = Record<string, unknown>

let redacting: Tenant
let masking: Tenant
let blocking: Tenant

beforeAll(async () => {
  redacting = await governedTenant(codePolicy('redact'))
  masking = await governedTenant(codePolicy('mask'))
  blocking = await governedTenant(codePolicy('block'))
})

/** The upstream's request and the record of a call under a policy. */
async function sent(way: Way, tenant: Tenant, request: (mark: string) => Json) {
  const mark = marker()
  const answer = await callWay(way, tenant, mark, request(mark))
  const told = await recordOf(tenant, answer)
  expectBalance(told)
  // The upstream may refuse what no client would send; what counts is what it was sent.
  const { body } = await seenRequest(gateway(), mark)
  return { body, findings: told.dlp?.findings.code ?? 0 }
}

async function expectBlocked(way: Way, more: Json) {
  const answer = await callWay(way, blocking, 'x', more)
  expect(answer.status, answer.text).toBe(400)
  expect(answer.text).toContain('policy blocks this call: it found code')
  expectBalance(await recordOf(blocking, answer))
}

const user = (mark: string, ...content: Json[]) => ({
  messages: [{ role: 'user', content: [{ type: 'text', text: mark }, ...content] }],
})

describe('a document of plain text is text, though it looks like base64', () => {
  it.each([
    ['its type first', (data: string) => ({ type: 'text', media_type: 'text/plain', data })],
    ['its type last', (data: string) => ({ data, media_type: 'text/plain', type: 'text' })],
  ])('%s', async (_, source) => {
    const code = someCode()
    const document = { type: 'document', source: source(`${'x'.repeat(70)}${code}`) }
    const { body } = await sent(MESSAGES_WAY, redacting, (mark) => user(mark, document))
    expect(body).toContain(`${'x'.repeat(70)}[REDACTED:CODE]`)
    expect(body).not.toContain(code)
    await expectBlocked(MESSAGES_WAY, user('x', document))
  })
})

describe('a text file in base64 is looked into', () => {
  const text = (code: string) => `name;number\r\nJürgen;${code}\n${'more '.repeat(20)}`
  const masked = (code: string) => text(code).replace(code, `**-****-**${code.slice(-4)}`)
  const encoded = (value: string) => Buffer.from(value).toString('base64')
  const file = (file: Json) => ({ type: 'file', file })

  it.each<[string, Way, string, (data: string) => Json]>([
    [
      'a data URL',
      CHAT_WAY,
      'data:text/csv;charset=utf-8;base64,',
      (data) => file({ filename: 'a.csv', file_data: data }),
    ],
    [
      'a data URL that calls it something else',
      CHAT_WAY,
      'data:application/octet-stream;base64,',
      (data) => file({ file_data: data }),
    ],
    ['a file by its name', CHAT_WAY, '', (data) => file({ file_data: data, filename: 'a.md' })],
    [
      'a source',
      MESSAGES_WAY,
      '',
      (data) => ({ type: 'document', source: { type: 'base64', media_type: 'text/plain', data } }),
    ],
  ])('%s', async (_, way, head, part) => {
    const code = someCode()
    const content = part(head + encoded(text(code)))
    const { body, findings } = await sent(way, masking, (mark) => user(mark, content))
    expect(body).toContain(`"${head}${encoded(masked(code))}"`)
    expect(findings).toBe(1)
    await expectBlocked(way, user('x', content))
  })

  it('also where its base64 stands in lines, or goes on after padding', async () => {
    for (const join of ['\n', '']) {
      const code = someCode()
      const data = [encoded('x'.repeat(55)), encoded(`so ${code}.`), encoded('y'.repeat(56))].join(join)
      const content = file({ file_data: data, filename: 'a.txt' })
      const { body } = await sent(CHAT_WAY, redacting, (mark) => user(mark, content))
      const whole = `${'x'.repeat(55)}so [REDACTED:CODE].${'y'.repeat(56)}`
      expect(body).toContain(encoded(whole))
    }
  })

  it('long ones also where the engine cuts them', async () => {
    const codes = [someCode(), someCode()] as const
    const prose = 'Ärger ipsum dolor. '
    const long = ` ${prose.repeat(20_000)}`
    const content = file({ file_data: encoded(`${codes[0]}${long}${codes[1]}`), filename: 'a.txt' })
    const { findings } = await sent(CHAT_WAY, redacting, (mark) => user(mark, content))
    expect(findings).toBe(2)
  })

  it('and passes unchanged if nothing is found, as does content that is no text', async () => {
    const picture = Buffer.from(Array.from({ length: 300 }, (_value, index) => (index * 7) % 256))
    for (const data of [encoded('nothing here '.repeat(9)).replace(/=+$/, ''), picture.toString('base64')]) {
      const content = file({ file_data: `data:text/plain;base64,${data}` })
      const { body, findings } = await sent(CHAT_WAY, redacting, (mark) => user(mark, content))
      expect(body).toContain(`;base64,${data}"`)
      expect(findings).toBe(0)
    }
  })
})

describe('names that are technical elsewhere hide nothing', () => {
  it.each<[string, Way, (code: string) => Json]>([
    [
      'an unknown member',
      CHAT_WAY,
      (code) => ({ vendor: { id: code, type: code, nested: [{ format: code }] } }),
    ],
    ['an unknown member of a message', CHAT_WAY, (code) => ({ vendor: { messages: [{ role: code }] } })],
    ['a member of another place', CHAT_WAY, (code) => ({ ttl: code, detail: code, id: code })],
    ['a list of them', CHAT_WAY, (code) => ({ object: [code], type: [[code]] })],
    ['a stored prompt', CHAT_WAY, (code) => ({ prompt: { id: code, variables: { model: code } } })],
    ['a setting of the vendor', MESSAGES_WAY, (code) => ({ context_management: { id: code } })],
    ['what is no type', MESSAGES_WAY, (code) => ({ tool_choice: { type: code } })],
  ])('%s', async (_, way, more) => {
    const code = someCode()
    const { body } = await sent(way, redacting, () => more(code))
    expect(body).not.toContain(code)
    expect(body).toContain('[REDACTED:CODE]')
    await expectBlocked(way, more(code))
  })

  it('members that the interface removes are not sent', async () => {
    const code = someCode()
    const { body, findings } = await sent(MESSAGES_WAY, redacting, () => ({ metadata: { user_id: code } }))
    expect(body).not.toContain('metadata')
    expect(body).not.toContain(code)
    expect(findings).toBe(0)
  })

  it('words of the protocol stay, though a dictionary has them', async () => {
    const dictionaries = [{ id: 'words', terms: ['text', 'user', 'function', 'ephemeral'] }]
    const rules = [{ custom: 'words', action: 'block' }]
    const tenant = await governedTenant(codePolicy('block', { rules, patterns: [], dictionaries }))
    const content = [{ type: 'text', text: 'x', cache_control: { type: 'ephemeral' } }]
    const answer = await callWay(MESSAGES_WAY, tenant, 'x', { messages: [{ role: 'user', content }] })
    expect(answer.status, answer.text).toBe(200)
  })
})

describe('ids that pair calls with their results', () => {
  const chat = (id: string, mark: string) => ({
    messages: [
      { role: 'user', content: mark },
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id, type: 'function', function: { name: 'f', arguments: '{}' } }],
      },
      { role: 'tool', tool_call_id: id, content: 'y' },
    ],
  })
  const blocks = (id: string, mark: string) => ({
    messages: [
      { role: 'user', content: mark },
      { role: 'assistant', content: [{ type: 'tool_use', id, name: 'f', input: {} }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: 'y' }] },
    ],
  })

  it.each(namedWays([CHAT_WAY, MESSAGES_WAY, CHAT_TO_MESSAGES]))(
    'of %s stay as they are, are told, and can be blocked',
    async (_, way) => {
      const request = way === MESSAGES_WAY ? blocks : chat
      const code = someCode()
      const { body, findings } = await sent(way, redacting, (mark) => request(code, mark))
      expect(body.split(code)).toHaveLength(3)
      expect(findings).toBe(2)
      await expectBlocked(way, request(code, 'x'))
    },
  )

  it('signatures too', async () => {
    const code = someCode()
    const request = (mark: string) => ({
      messages: [
        { role: 'user', content: mark },
        { role: 'assistant', content: [{ type: 'thinking', thinking: 'so', signature: code }] },
        { role: 'user', content: 'y' },
      ],
    })
    const { body } = await sent(MESSAGES_WAY, masking, request)
    expect(body).toContain(`"signature":"${code}"`)
    await expectBlocked(MESSAGES_WAY, request('x'))
  })
})

describe('names of members and numbers', () => {
  const cardPolicy = (action: string) =>
    codePolicy(action, { rules: [{ detector: 'card', action }], patterns: [] })

  it.each<[string, Way, Json]>([
    ['a name', CHAT_WAY, { vendor: { '4111 1111 1111 1111': 1 } }],
    ['a number', CHAT_WAY, { vendor: { deep: [{ n: 4111111111111111 }] } }],
    ['a member of the protocol', CHAT_WAY, { safety_identifier: 4111111111111111 }],
    ['a name in a map of numbers', CHAT_WAY, { logit_bias: { '4111111111111111': 1 } }],
    [
      'a schema',
      MESSAGES_WAY,
      { tools: [{ name: 'f', input_schema: { type: 'object', examples: [4111111111111111] } }] },
    ],
  ])('%s can be blocked, and is told else', async (_, way, more) => {
    const [strict, mild] = await Promise.all(
      ['block', 'redact'].map((action) => governedTenant(cardPolicy(action))),
    )
    const refused = await callWay(way, strict as Tenant, 'x', more)
    expect([refused.status, refused.text]).toEqual([400, expect.stringContaining('found card')])
    const passed = await callWay(way, mild as Tenant, 'x', more)
    expect(passed.status, passed.text).toBe(200)
    const told = await recordOf(mild as Tenant, passed)
    expect(told.dlp?.findings).toEqual({ card: 1 })
    expectBalance(told)
  })

  it('ordinary members are not looked at', async () => {
    const dictionaries = [{ id: 'words', terms: ['temperature', 'vendor', '12345678'] }]
    const rules = [{ custom: 'words', action: 'block' }]
    const tenant = await governedTenant(codePolicy('block', { rules, patterns: [], dictionaries }))
    const answer = await callWay(CHAT_WAY, tenant, 'x', { temperature: 1, vendor: { n: 12345678 } })
    expect(answer.status, answer.text).toBe(200)
  })
})
