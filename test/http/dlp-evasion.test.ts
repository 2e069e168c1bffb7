import { beforeAll, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { jsonOf, send } from '../harness/send.ts'
import { bearer, type Tenant } from '../harness/tenant.ts'
import { marker, registerScript, seenRequest } from '../harness/upstream.ts'
import {
  CHAT_TO_MESSAGES,
  CHAT_WAY,
  callWay,
  codePolicy,
  governedTenant,
  MESSAGES_TO_CHAT,
  MESSAGES_WAY,
  namedWays,
  recordOf,
  someCode,
} from './support/dlp.ts'

const cards = (action: string) => codePolicy(action, { rules: [{ detector: 'card', action }], patterns: [] })
const CARD = '4111111111111111'

let redacting: Tenant
let requestOnly: Tenant
let blockingCards: Tenant
let strict: Tenant

beforeAll(async () => {
  redacting = await governedTenant(codePolicy('redact'))
  requestOnly = await governedTenant(
    codePolicy('redact', { directions: ['request'], uninspectable: { request: 'allow' } }),
  )
  blockingCards = await governedTenant(cards('block'))
  strict = await governedTenant(
    codePolicy('warn', { uninspectable: { request: 'block', tool_result: 'allow' } }),
  )
})

const user = (content: unknown) => ({ messages: [{ role: 'user', content }] })

describe('a value that is spelt to evade', () => {
  it.each([
    ['control characters between digits', [...CARD].join('\u0001')],
    ['C1 control characters', [...CARD].join('\u0091')],
    ['combining marks', [...CARD].map((digit) => `${digit}\u0337`).join('')],
    ['many combining marks', [...CARD].map((digit) => `${digit}\u0301\u0302\u0303\u0304\u0305`).join('')],
    ['escaped control characters', [...CARD].join('\\u0002')],
  ])('%s', async (_, text) => {
    const answer = await callWay(CHAT_WAY, blockingCards, 'x', user(`pay ${text} now`))
    expect([answer.status, answer.text]).toEqual([400, expect.stringContaining('found card')])
  })

  it.each([
    ['blanks', (data: string) => data.replace(/.{6}/g, '$& ')],
    ['characters that decoders skip', (data: string) => data.replace(/.{3}/g, '$&!')],
    ['both, written as escapes', (data: string) => data.replace(/.{5}/g, '$&\t~')],
  ])('base64 of a file with %s', async (_, spell) => {
    const data = spell(Buffer.from(`card ${CARD}; ${'and more '.repeat(9)}`).toString('base64'))
    const source = { type: 'base64', media_type: 'text/plain', data }
    for (const [way, content] of [
      [CHAT_WAY, [{ type: 'file', file: { filename: 'a.txt', file_data: data } }]],
      [CHAT_WAY, [{ type: 'file', file: { file_data: `data:text/plain;base64,${data}` } }]],
      [MESSAGES_WAY, [{ type: 'document', source }]],
    ] as const) {
      const answer = await callWay(way, blockingCards, 'x', user(content))
      expect([answer.status, answer.text]).toEqual([400, expect.stringContaining('found card')])
    }
  })
})

describe('a caller that calls its text something else', () => {
  const call = (code: string) => ({
    id: 'c',
    type: 'function',
    function: { name: 'f', arguments: `{"a":"${code}"}` },
  })
  const chat = (code: string, mark: string) => ({
    messages: [
      { role: 'user', content: mark },
      { role: 'assistant', content: null, tool_calls: [call(code)] },
      { role: 'tool', tool_call_id: 'c', content: `got ${code}` },
    ],
  })
  const blocks = (code: string, mark: string) => ({
    messages: [
      { role: 'user', content: mark },
      { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'f', input: { a: code } }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't', content: `got ${code}` }] },
    ],
  })
  const found = (code: string, mark: string) => ({
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text: mark },
          {
            type: 'search_result',
            source: 'https://a.example',
            title: code,
            content: [{ type: 'text', text: code }],
          },
        ],
      },
    ],
  })

  it.each([
    ['a result and arguments of a chat', CHAT_WAY, chat],
    ['a result and input of messages', MESSAGES_WAY, blocks],
    ['a search result', MESSAGES_WAY, found],
  ] as const)('%s falls under the policy for requests too', async (_, way, request) => {
    const [code, mark] = [someCode(), marker()]
    const answer = await callWay(way, requestOnly, 'x', request(code, mark))
    expect(answer.status, answer.text).toBe(200)
    const { body } = await seenRequest(gateway(), mark)
    expect(body).not.toContain(code)
    expect(body).toContain('[REDACTED:CODE]')
  })
})

describe('parts that cannot be inspected', () => {
  it.each([
    ['an address of sound', { type: 'audio_url', audio_url: { url: 'https://a.example/a.wav' } }],
    ['embeddings', { type: 'image_embeds', image_embeds: 'QUJD' }],
    ['a type that is not known', { type: 'hologram', hologram: 'x' }],
    ['an image without a type', { image_url: { url: 'https://a.example/a.png' } }],
  ])('%s', async (_, part) => {
    const content = [{ type: 'text', text: 'x' }, part]
    const answer = await callWay(CHAT_WAY, strict, 'x', user(content))
    expect([answer.status, answer.text]).toEqual([
      400,
      expect.stringContaining('content that cannot be inspected'),
    ])
  })
})

describe('headers that a provider receives', () => {
  it.each(['x-claude-code-session-id', 'x-codeclient-session-id', 'anthropic-beta', 'provider-beta'])(
    '%s',
    async (name) => {
      const [code, mark] = [someCode(), marker()]
      const request = MESSAGES_WAY.route.request('x', { model: MESSAGES_WAY.model, ...user(mark) })
      const answer = await send(gateway().baseUrl + MESSAGES_WAY.route.path, {
        method: 'POST',
        headers: { ...bearer(redacting.key), [name]: `a-${code}` },
        body: JSON.stringify(request),
      })
      expect(answer.status, answer.text).toBe(200)
      const { headers } = await seenRequest(gateway(), mark)
      expect(JSON.stringify(headers)).not.toContain(code)
      expect(JSON.stringify(headers)).toContain('[REDACTED:CODE]')
    },
  )
})

describe('errors of an upstream', () => {
  const answers = (text: string) => [
    { status: 400, json: { type: 'error', error: { type: 'x', message: text } } },
  ]

  it.each(namedWays([MESSAGES_WAY, MESSAGES_TO_CHAT]))('of %s hold no value', async (_, way) => {
    const code = someCode()
    const script = await registerScript(gateway(), answers(`I was sent ${code}`))
    const answer = await callWay(way, redacting, script)
    expect(answer.status).toBe(400)
    expect(answer.text).not.toContain(code)
    expect(answer.text).toContain('[REDACTED:CODE]')
    await recordOf(redacting, answer)
  })

  it.each(namedWays([CHAT_WAY, CHAT_TO_MESSAGES]))('of %s are forwarded unchanged', async (_, way) => {
    const code = someCode()
    const script = await registerScript(gateway(), answers(`I was sent ${code}`))
    const answer = await callWay(way, redacting, script)
    expect(answer.text).toContain(code)
    expect(jsonOf(answer)).toBeDefined()
  })
})

it('a busy text is inspected in time, in tool arguments as well', async () => {
  const key = `${'AB: -----BEGIN PRIVATE KEY-----\n'.repeat(7500)}!!!`
  const secrets = await governedTenant(
    codePolicy('redact', { rules: [{ category: 'secret', action: 'redact' }], patterns: [] }),
  )
  const answer = await callWay(CHAT_WAY, secrets, key)
  expect(answer.status, answer.text.slice(0, 200)).toBe(200)
})
