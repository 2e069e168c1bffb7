import { beforeAll, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { jsonOf, send } from '../harness/send.ts'
import { bearer, type Tenant } from '../harness/tenant.ts'
import { registerAnswers } from '../harness/upstream.ts'
import {
  CHAT,
  CHAT_TO_MESSAGES,
  CHAT_WAY,
  COMPLETIONS,
  callWay,
  codePolicy,
  expectBalance,
  governedTenant,
  MESSAGES_WAY,
  recordOf,
  someCode,
  type Way,
} from './support/dlp.ts'
import { framesOf } from './support/dlp-answers.ts'

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
  let covering: Tenant

  beforeAll(async () => {
    const uninspectable = { request: 'block', tool_result: 'allow' }
    blocking = await governedTenant(codePolicy('warn', { uninspectable }))
    covering = await governedTenant(codePolicy('warn'))
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
    expect(await outcome(way, covering, messages)).toBe('passes')
  })

  it('tool results with it are blocked unless a policy allows it', async () => {
    for (const block of [BLOCK, PAGES]) {
      expect(await outcome(MESSAGES_WAY, covering, result(block))).toBe('blocked')
      expect(await outcome(MESSAGES_WAY, blocking, result(block))).toBe('passes')
    }
    const elsewhere = await governedTenant(codePolicy('warn', { directions: ['request'] }))
    expect(await outcome(MESSAGES_WAY, elsewhere, result(BLOCK))).toBe('passes')
  })

  it('a document of plain text can be inspected', async () => {
    expect(await outcome(MESSAGES_WAY, blocking, user(PLAIN))).toBe('passes')
    expect(await outcome(MESSAGES_WAY, covering, result(PLAIN))).toBe('passes')
  })

  it('a document of plain text that looks like base64 can be inspected', async () => {
    const source = { data: 'x'.repeat(80), media_type: 'text/plain', type: 'text' }
    expect(await outcome(MESSAGES_WAY, blocking, user({ type: 'document', source }))).toBe('passes')
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
      expect((await callWay(way, covering, 'x', { prompt })).status).toBe(200)
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

describe('content of answers that cannot be inspected', () => {
  const data = Buffer.alloc(90, 7).toString('base64')
  const head = { id: 'c', created: 1, model: 'm' }
  const usage = { prompt_tokens: 3, completion_tokens: 5, total_tokens: 8 }
  const image = { type: 'image_url', image_url: { url: `data:image/png;base64,${data}` } }
  const chatAnswers = (member: object) => ({
    whole: [
      {
        json: {
          ...head,
          object: 'chat.completion',
          choices: [
            { index: 0, message: { role: 'assistant', content: 'x', ...member }, finish_reason: 'stop' },
          ],
          usage,
        },
      },
    ],
    streamed: [
      {
        sse: [
          `data: ${JSON.stringify({ ...head, choices: [{ index: 0, delta: { content: 'so ' } }] })}\n\n`,
          `data: ${JSON.stringify({ ...head, choices: [{ index: 0, delta: member }] })}\n\n`,
          ...framesOf('chat', []).slice(1),
        ],
      },
    ],
  })
  const pages = { type: 'base64', media_type: 'application/pdf', data }
  const fetched = (source: object) => ({
    type: 'web_fetch_tool_result',
    tool_use_id: 's',
    content: { type: 'web_fetch_result', url: 'https://a.example', content: { type: 'document', source } },
  })
  const messagesAnswers = (block: object) => {
    const [start = '', ...end] = framesOf('messages', [])
    const event = (type: string, more: object) =>
      `event: ${type}\ndata: ${JSON.stringify({ type, index: 0, ...more })}\n\n`
    const whole = {
      ...head,
      type: 'message',
      role: 'assistant',
      content: [block],
      usage: { input_tokens: 3, output_tokens: 5 },
    }
    return {
      whole: [{ json: whole }],
      streamed: [
        {
          sse: [
            start,
            event('content_block_start', { content_block: block }),
            event('content_block_stop', {}),
            ...end,
          ],
        },
      ],
    }
  }

  it.each([
    ['images of a chat', CHAT_WAY, chatAnswers({ images: [image] }), 'response'],
    ['sound of a chat', CHAT_WAY, chatAnswers({ audio: { id: 'a', data, transcript: 'hi' } }), 'response'],
    ['an image of a message', MESSAGES_WAY, messagesAnswers({ type: 'image', source: pages }), 'response'],
    ['a page that a tool of the provider got', MESSAGES_WAY, messagesAnswers(fetched(pages)), 'tool_result'],
  ] as const)('%s passes unless a policy blocks it', async (_name, way, answers, direction) => {
    const script = await registerAnswers(gateway(), [answers as never])
    const only = { rules: [], patterns: [], directions: [direction] }
    const [strict, mild] = await Promise.all(
      ['block', 'allow'].map((treatment) =>
        governedTenant(codePolicy('warn', { ...only, uninspectable: { [direction]: treatment } })),
      ),
    )
    for (const stream of [true, false]) {
      const [refused, passed] = await Promise.all(
        [strict, mild].map((tenant) => callWay(way, tenant as Tenant, script, { stream })),
      )
      expect(passed?.text).toContain(data)
      expect(refused?.text).not.toContain(data)
      expect(refused?.text).toContain('content that cannot be inspected')
      expect(refused?.status).toBe(stream ? 200 : 400)
      expectBalance(await recordOf(strict as Tenant, refused as never))
    }
  })

  it('a page of text that a tool of the provider got is read', async () => {
    const code = someCode()
    const reading = await governedTenant(codePolicy('redact'))
    const unbroken = 'x'.repeat(80)
    for (const source of [
      { type: 'text', media_type: 'text/plain', data: `a ${code}` },
      { type: 'text', media_type: 'text/plain', data: `${unbroken}${code}` },
      { data: `${unbroken}${code}`, media_type: 'text/plain', type: 'text' },
    ]) {
      const script = await registerAnswers(gateway(), [messagesAnswers(fetched(source)) as never])
      for (const stream of [true, false]) {
        const answer = await callWay(MESSAGES_WAY, reading, script, { stream })
        expect(answer.text).toContain(source.data.replace(code, '[REDACTED:CODE]'))
        expectBalance(await recordOf(reading, answer))
      }
    }
  })
})
