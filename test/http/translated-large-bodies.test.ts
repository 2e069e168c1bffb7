import { createHash, randomBytes } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { type Answer, jsonOf, send } from '../harness/send.ts'
import { bearer, createTenant, type Tenant } from '../harness/tenant.ts'
import { marker, seenRequest, seenRequests } from '../harness/upstream.ts'
import { refusalBody } from '../matrices/envelopes.ts'
import {
  CHAT_ON_MESSAGES,
  MESSAGES_ON_CHAT,
  named,
  PAIRS,
  type TranslatedPair,
} from './support/translated-pairs.ts'

const MIB = 1024 * 1024

type Json = Record<string, unknown>

let tenant: Tenant

beforeAll(async () => {
  tenant = await createTenant(gateway())
})

function post(pair: TranslatedPair, body: string): Promise<Answer> {
  const url = gateway().baseUrl + pair.route.path
  return send(url, { method: 'POST', headers: bearer(tenant.key), body })
}

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')

/**
 * Sends a body with a large text, and the same one with a small text in its place, which the upstream records whole: what
 * it got of the large one has to be the same with the large text in that place.
 * @param large as it stands in JSON, between its quotes.
 */
async function expectArrival(
  pair: TranslatedPair,
  bodyWith: (text: string, content: string) => string,
  large: string,
) {
  const [one, other] = [marker(), marker()]
  const small = 'U01BTEw='
  expect((await post(pair, bodyWith(one, small))).status).toBe(200)
  const template = (await seenRequest(gateway(), one)).body
  expect(template.split(small)).toHaveLength(2)
  const answer = await post(pair, bodyWith(other, large))
  expect(answer.status, answer.text.slice(0, 500)).toBe(200)
  const expected = template.replace(one, other).replace(small, () => large)
  const seen = await seenRequest(gateway(), other)
  expect(seen.bodyBytes).toBe(Buffer.byteLength(expected))
  expect(seen.bodySha256).toBe(sha256(expected))
}

const body = (pair: TranslatedPair, content: unknown, more: Json = {}) =>
  JSON.stringify(pair.request('', { messages: [{ role: 'user', content }], ...more }))

const chatImage = (text: string, data: string) =>
  body(CHAT_ON_MESSAGES, [
    { type: 'text', text },
    { type: 'image_url', image_url: { url: `data:image/png;base64,${data}`, detail: 'low' } },
  ])
const messagesImage = (text: string, data: string) =>
  body(MESSAGES_ON_CHAT, [
    { type: 'text', text },
    { type: 'image', source: { type: 'base64', media_type: 'image/png', data } },
  ])

describe('an image of 9 MB in base64', () => {
  const image = randomBytes(6.75 * MIB).toString('base64')
  it.each([
    ['chat to messages', CHAT_ON_MESSAGES, chatImage],
    ['messages to chat', MESSAGES_ON_CHAT, messagesImage],
  ] as const)('arrives as it was sent, %s', async (_way, pair, bodyWith) => {
    await expectArrival(pair, bodyWith, image)
  })
})

describe.each(named(PAIRS))('%s', (_, pair) => {
  // The image shows both directions, and large-strings.test.ts how texts are put back.
  it.runIf(pair === MESSAGES_ON_CHAT)('hands on a text of 9 MB, escapes and all', async () => {
    const odd = 'line\\n\\"é 🦉\\\\ \\ud83e\\udd89 \\u0007 {\\"model\\":1} ~0~ '
    const large = odd.repeat(Math.ceil((9 * MIB) / Buffer.byteLength(odd)))
    // Written by hand, so that the escapes stand there as they are.
    const bodyWith = (text: string, content: string) =>
      body(pair, `${text} CONTENT`).replace('CONTENT', () => content)
    await expectArrival(pair, bodyWith, large)
  })

  it('hands on several long texts in their order', async () => {
    const text = marker()
    const parts = ['a', 'b', 'c', 'd'].map((letter) => ({ type: 'text', text: letter.repeat(20_000) }))
    expect((await post(pair, body(pair, [{ type: 'text', text }, ...parts]))).status).toBe(200)
    const seen = await seenRequest(gateway(), text)
    const order = [...seen.body.matchAll(/([a-d])\1{19999}/g)].map(([, letter]) => letter)
    // The upstream records the first 64 KB.
    expect(order).toEqual(['a', 'b', 'c'])
    expect(seen.bodyBytes).toBeGreaterThan(80_000)
  })

  // The tree is bounded before anything is translated.
  it.runIf(pair === MESSAGES_ON_CHAT)('refuses a body of too many parts before it is sent', async () => {
    const text = marker()
    const parts = Array.from({ length: 100_000 }, (_, index) => ({
      type: 'text',
      text: `part ${index} ${'x'.repeat(60)}`,
    }))
    const large = body(pair, [{ type: 'text', text }, ...parts])
    expect(large.length).toBeGreaterThan(8 * MIB)
    const answer = await post(pair, large)
    expect(answer.status).toBe(400)
    expect(jsonOf(answer)).toEqual(
      refusalBody(pair.route.surface, {
        status: 400,
        code: 'invalid_body',
        message: /too large for a model of another protocol/,
      }),
    )
    expect(await seenRequests(gateway(), text)).toEqual([])
  })
})

describe('a prompt of a completion', () => {
  it('of many megabytes is handed on, and refused in words where it is to be told back or is not text', async () => {
    const text = marker()
    const complete = (model: string, prompt: unknown, more = {}) =>
      send(`${gateway().llmUrl}/v1/completions`, {
        method: 'POST',
        headers: bearer(tenant.key),
        body: JSON.stringify({ model, prompt, ...more }),
      })
    const prompt = `${text} ${'long prompt é '.repeat(0.6 * MIB)}`
    for (const model of ['scripted-messages', 'scripted-chat-large']) {
      const answer = await complete(model, prompt)
      expect(answer.status, answer.text.slice(0, 300)).toBe(200)
    }
    const seen = await seenRequests(gateway(), text)
    expect(seen.map(({ bodyBytes }) => bodyBytes > Buffer.byteLength(prompt))).toEqual([true, true])
    for (const [refused, message] of [
      [await complete('scripted-messages', 'x'.repeat(9 * MIB), { echo: true }), /^echo: /],
      [await complete('scripted-messages', 'x', { user: 'x'.repeat(9 * MIB) }), /too large/],
    ] as const) {
      expect(jsonOf(refused)).toEqual(
        refusalBody('chat_completions', { status: 400, code: 'invalid_body', message }),
      )
    }
  })
})
