import { beforeAll, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { createRoutedModel, type RoutedModel } from './support/routed-model.ts'
import { send } from './support/send.ts'
import { bearer, createTenant, type Tenant } from './support/tenant.ts'
import { registerScript, type ScriptStep } from './support/upstream.ts'

// What a hostile or broken upstream can do to the caller, and to us.

let tenant: Tenant
let model: RoutedModel
let credential: string

beforeAll(async () => {
  tenant = await createTenant(gateway())
  model = await createRoutedModel(gateway(), ['openai-compatible'])
  credential = `credential ${model.providers[0]}`
})

const PATHS = ['/v1/chat/completions', '/v1/messages']

async function call(path: string, steps: ScriptStep[], more: object = {}) {
  const messages = [{ role: 'user', content: await registerScript(gateway(), steps) }]
  const body = JSON.stringify({ model: model.id, max_tokens: 100, messages, ...more })
  return send(gateway().baseUrl + path, { method: 'POST', headers: bearer(tenant.key), body })
}

const base64 = (text: string) => Buffer.from(text).toString('base64')
const spellings: Array<[string, (text: string) => string]> = [
  ['as it is', (text) => text],
  ['in base64', base64],
  ['in base64 with its scheme', (text) => base64(`Bearer ${text}`)],
  ['in base64 for addresses', (text) => Buffer.from(`x-api-key: ${text}`).toString('base64url')],
  ['percent-encoded', encodeURIComponent],
  ['as a form', (text) => text.replaceAll(' ', '+')],
]

describe.each(PATHS)('the credential of a provider on %s', (path) => {
  it.each(spellings)('is cut out of its errors, written %s', async (_, write) => {
    const written = write(credential)
    const steps: ScriptStep[] = [
      { status: 400, headers: { 'content-type': 'application/json', 'x-ratelimit-key': written } },
      { chunk: JSON.stringify({ error: { message: `Bad key ${written}.`, type: 'x' } }) },
      { end: true },
    ]
    const error = `data: ${JSON.stringify({ error: { message: `Bad key ${written}.` } })}\n\n`
    const streamed: ScriptStep[] = [
      { headers: { 'content-type': 'text/event-stream' } },
      { sse: [error] },
      { end: true },
    ]
    const answers = [await call(path, steps), await call(path, streamed, { stream: true })]
    for (const { text, rawHeaders } of answers) {
      const told = text + rawHeaders.join()
      expect(told).toContain('[redacted]')
      // Whatever stands around it, the middle of what is encoded tells it.
      expect(told).not.toContain(written.slice(8, -6))
    }
  })
})

describe.each(PATHS)('headers of an upstream on %s', (path) => {
  it('stay within what clients read', async () => {
    const headers: Record<string, string> = { 'content-type': 'application/json', 'retry-after': '7' }
    for (let index = 0; index < 40; index++) headers[`x-ratelimit-${index}`] = 'x'.repeat(200 + index)
    const steps: ScriptStep[] = [
      { status: 429, headers },
      { chunk: '{"error":{"message":"x"}}' },
      { end: true },
    ]
    const answer = await call(path, steps)
    expect(answer.status).toBe(429)
    expect(answer.headers['retry-after']).toBe('7')
    expect(answer.headers['x-ratelimit-0']).toHaveLength(200)
    expect(answer.rawHeaders.join('').length).toBeLessThan(9_000)
  })
})
