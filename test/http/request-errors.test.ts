import { beforeAll, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { credits } from '../harness/records.ts'
import { send } from '../harness/send.ts'
import { bearer, createTenant, type Tenant } from '../harness/tenant.ts'
import { marker, seenRequests } from '../harness/upstream.ts'
import { refusalBody } from '../matrices/envelopes.ts'
import { badRequests } from '../matrices/request-errors.ts'
import {
  COMPACT_ROUTE,
  MODEL_ROUTES,
  type ModelRoute,
  RESPONSES_ROUTE,
  type RequestRoute,
} from '../matrices/routes.ts'

let tenant: Tenant

beforeAll(async () => {
  tenant = await createTenant(gateway(), { organization: { user_rate_limit_per_minute: 100_000 } })
})

const call = (route: RequestRoute, body: string | Buffer) =>
  send(gateway().baseUrl + route.path, { method: 'POST', headers: bearer(tenant.key), body })

const routes = [...MODEL_ROUTES, RESPONSES_ROUTE, COMPACT_ROUTE].map((route) => [route.name, route] as const)

describe.each(routes)('%s', (_, route) => {
  it.concurrent.each(badRequests(route))('refuses $name', async ({ body, says }) => {
    const answer = await call(route, body)
    expect(JSON.parse(answer.text)).toEqual(
      refusalBody(route.surface, { status: 400, code: 'invalid_body', message: says }),
    )
    expect(answer.status).toBe(400)
    expect(answer.headers['content-type']).toMatch(/^application\/json/)
    expect(answer.headers['x-request-id']).toBeDefined()
    // Repeating it does not help, and official SDKs repeat nothing that is 400.
    expect(answer.headers['retry-after']).toBeUndefined()
  })

  it('sends nothing of a refused body upstream and takes no credits for it', async () => {
    const text = marker()
    const owner = await createTenant(gateway(), { credits: 1_000 })
    const body = JSON.stringify(route.request(text, { model: 7 }))
    const url = gateway().baseUrl + route.path
    expect((await send(url, { method: 'POST', headers: bearer(owner.key), body })).status).toBe(400)
    expect(await seenRequests(gateway(), text)).toEqual([])
    expect(await credits(gateway(), owner)).toMatchObject({ balance: 1_000, reserved: 0 })
  })

  it('repeats no more of a request than a short piece of it', async () => {
    const long = 'x'.repeat(5_000)
    const bodies = [`{"${long}":1,"${long}":2}`, JSON.stringify(route.request('Hello', { model: long }))]
    for (const body of bodies) expect((await call(route, body)).text.length).toBeLessThan(1_000)
  })
})

describe('bodies at the edge of what is valid', () => {
  const chat = MODEL_ROUTES[0] as ModelRoute
  const messages = MODEL_ROUTES[2] as ModelRoute

  it('takes null for what is optional on chat completions', async () => {
    const fields = [
      'stream',
      'temperature',
      'max_tokens',
      'top_p',
      'stop',
      'tools',
      'user',
      'seed',
      'logprobs',
    ]
    const body = chat.request('Hello', Object.fromEntries(fields.map((field) => [field, null])))
    const answer = await call(chat, JSON.stringify(body))
    expect(answer.status, answer.text).toBe(200)
  })

  it('takes every role and form of content of chat completions', async () => {
    const body = chat.request('', {
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'developer', content: [{ type: 'text', text: 'Be kind.' }], name: 'dev' },
        { role: 'user', content: 'Add.', name: 'ann' },
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'add', arguments: '{}' } }],
        },
        { role: 'tool', tool_call_id: 'call_1', content: '3' },
      ],
    })
    const answer = await call(chat, JSON.stringify(body))
    expect(answer.status, answer.text).toBe(200)
  })

  it('takes a conversation in turns on messages, with a tool result', async () => {
    const body = messages.request('', {
      stream: false,
      messages: [
        { role: 'user', content: [{ type: 'text', text: 'Add.' }] },
        { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'add', input: {} }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: '3' }] },
      ],
    })
    const answer = await call(messages, JSON.stringify(body))
    expect(answer.status, answer.text).toBe(200)
  })

  it('takes count tokens with max_tokens and stream false, or without', async () => {
    const route = MODEL_ROUTES[3] as ModelRoute
    for (const more of [{}, { max_tokens: 5, stream: false }, { max_tokens: null, stream: null }]) {
      const answer = await call(route, JSON.stringify(route.request('Hello', more)))
      expect(JSON.parse(answer.text)).toEqual({ input_tokens: expect.any(Number) })
    }
  })

  it('reads JSON whatever the content type and the white space', async () => {
    const text = JSON.stringify(chat.request('Hello'), null, '\t')
    for (const type of ['text/plain', 'application/octet-stream', undefined]) {
      const headers = { authorization: `Bearer ${tenant.key}`, ...(type && { 'content-type': type }) }
      const body = `\r\n\t ${text} \n`
      const answer = await send(gateway().baseUrl + chat.path, { method: 'POST', headers, body })
      expect(answer.status, answer.text).toBe(200)
    }
  })
})
