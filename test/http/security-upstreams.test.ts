import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { auditEntryOf } from '../harness/records.ts'
import { createRoutedModel, type RoutedModel } from '../harness/routed-model.ts'
import { send } from '../harness/send.ts'
import type { GatewayAddress } from '../harness/start-gateway.ts'
import { type StartedWorker, startWorker } from '../harness/start-worker.ts'
import { bearer, createTenant, type Tenant } from '../harness/tenant.ts'
import { registerScript, type ScriptStep } from '../harness/upstream.ts'

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

/** The shared Worker and the organization that calls it. */
const own = (): { worker: GatewayAddress; tenant: Tenant } => ({ worker: gateway(), tenant })

async function call(path: string, steps: ScriptStep[], more: object = {}, from = own()) {
  const messages = [{ role: 'user', content: await registerScript(gateway(), steps) }]
  const body = JSON.stringify({ model: model.id, max_tokens: 100, messages, ...more })
  const headers = bearer(from.tenant.key)
  return send(from.worker.baseUrl + path, { method: 'POST', headers, body })
}

const base64 = (text: string) => Buffer.from(text).toString('base64')
const spellings: Array<[string, (text: string) => string]> = [
  ['as it is', (text) => text],
  ['in base64', base64],
  ['in base64 with its scheme', (text) => base64(`Bearer ${text}`)],
  ['in base64 for addresses', (text) => Buffer.from(`x-api-key: ${text}`).toString('base64url')],
  ['percent-encoded', encodeURIComponent],
  ['as a form', (text) => text.replaceAll(' ', '+')],
  ['in hexadecimal digits', (text) => Buffer.from(text).toString('hex')],
  ['in upper-case hexadecimal digits', (text) => Buffer.from(text).toString('hex').toUpperCase()],
  ['in upper case', (text) => text.toUpperCase()],
  ['in base64 in lower case', (text) => base64(text).toLowerCase()],
]

/** What is searched for does not depend on the surface: one has all spellings. */
const spellingsOn = (path: string) =>
  path === PATHS[0] ? spellings : spellings.filter(([name]) => /^as it is$|for addresses$/.test(name))

describe.each(PATHS)('the credential of a provider on %s', (path) => {
  it.each(spellingsOn(path))('is cut out of its errors, written %s', async (_, write) => {
    const written = write(credential)
    const steps: ScriptStep[] = [
      { status: 400, headers: { 'content-type': 'application/json', 'openai-version': written } },
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

/** An answer with a text, whole and streamed: in one event after the first. */
const answering = (text: string): { whole: ScriptStep[]; streamed: ScriptStep[] } => {
  const head = { id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm' }
  const delta = (content: string, finish_reason: string | null) =>
    `data: ${JSON.stringify({ ...head, choices: [{ index: 0, delta: { content }, finish_reason }] })}\n\n`
  const message = { role: 'assistant', content: `first ${text} last` }
  return {
    whole: [{ json: { ...head, choices: [{ index: 0, message, finish_reason: 'stop' }] } }],
    streamed: [
      { headers: { 'content-type': 'text/event-stream' } },
      { sse: [delta('first', null), delta(`${text} last`, null), delta('', 'stop'), 'data: [DONE]\n\n'] },
      { end: true },
    ],
  }
}

describe.each(PATHS)('the credential of a provider in an answer on %s', (path) => {
  it.each(spellingsOn(path))('is cut out, written %s', async (_, write) => {
    const written = write(credential)
    const { whole, streamed } = answering(written)
    // Without usage in its options a stream of chat completions is edited, and so is read.
    for (const answer of [await call(path, whole), await call(path, streamed, { stream: true })]) {
      expect(answer.status).toBe(200)
      expect(answer.text).toContain('[redacted]')
      expect(answer.text).toContain('last')
      expect(answer.text).not.toContain(written.slice(8, -6))
    }
  })

  it('is not searched for a word that answers contain as well', async () => {
    const answer = await call(path, answering('none credential').whole)
    expect(answer.text).toContain('none credential')
  })
})

describe('the credential of a provider in a stream that the runtime can carry', () => {
  const more = { stream: true, stream_options: { include_usage: true } }

  it('never leaves in the first event, or after an error that repeated it', async () => {
    const own = await createRoutedModel(gateway(), ['openai-compatible'])
    const secret = `credential ${own.providers[0]}`
    const error = { status: 400, json: { error: { message: `Bad key ${secret}.` } } }
    await call('/v1/chat/completions', [error], { model: own.id })
    const other = await createRoutedModel(gateway(), ['openai-compatible'])
    const first = `credential ${other.providers[0]}`
    const event = { id: 'c', choices: [{ index: 0, delta: { content: `${first} in the first` } }] }
    const inFirst: ScriptStep[] = [
      { headers: { 'content-type': 'text/event-stream' } },
      { sse: [`data: ${JSON.stringify(event)}\n\n`] },
      { waitMilliseconds: 50 },
      ...answering(first).streamed.slice(1),
    ]
    for (const [id, told, steps] of [
      [own.id, secret, answering(secret).streamed],
      [other.id, first, inFirst],
    ] as const) {
      const { text } = await call('/v1/chat/completions', [...steps], { ...more, model: id })
      expect(text).not.toContain(told)
      expect(text).toContain('[redacted]')
      expect(text).toContain('[DONE]')
    }
  })
})

describe('the credential of a provider in an error late in a stream', () => {
  let unlisted: StartedWorker
  beforeAll(async () => {
    unlisted = await startWorker({ NATIVE_STREAM_HOSTS: 'api.openai.com' })
  })
  afterAll(() => unlisted.stop())

  const event = (data: object) => `data: ${JSON.stringify(data)}\n\n`
  const echoing = (secret: string): ScriptStep[] => [
    { headers: { 'content-type': 'text/event-stream' } },
    { sse: [event({ choices: [{ index: 0, delta: { content: 'first' } }] })] },
    { waitMilliseconds: 300 },
    { sse: [event({ error: { message: `The key is ${secret}.`, type: 'server_error' } })] },
    { end: true },
  ]
  /** Three streams of a provider, one after the other. */
  const streams = async (path: string, { id, providers }: RoutedModel, from = own()) => {
    const secret = `credential ${providers[0]}`
    const asked = { model: id, stream: true, stream_options: { include_usage: true } }
    const told: Array<{ isTold: boolean; isCutOut: boolean; isFlagged: boolean }> = []
    for (let made = 0; made < 3; made++) {
      const { text, headers } = await call(path, echoing(secret), asked, from)
      const { record } = await auditEntryOf(from.worker, from.tenant, headers['x-request-id'])
      told.push({
        isTold: text.includes(secret),
        isCutOut: text.includes('The key is [redacted].'),
        isFlagged: (record.flags as string[]).includes('credential_echoed'),
      })
    }
    return told
  }

  it('leaves at most once, when the runtime carries the stream, whose record is flagged', async () => {
    const own = await createRoutedModel(gateway(), ['openai-compatible'])
    const told = await streams('/v1/chat/completions', own)
    for (const { isTold, isCutOut, isFlagged } of told) {
      expect([isTold, isCutOut]).toEqual([isFlagged, !isFlagged])
    }
    expect(told.filter(({ isTold }) => isTold).length).toBeLessThanOrEqual(1)
  })

  it('is always cut out where the host of the provider is not listed', async () => {
    const routed = await createRoutedModel(gateway(), ['openai-compatible'])
    const told = await streams('/v1/chat/completions', routed, {
      worker: unlisted,
      tenant: await createTenant(unlisted),
    })
    expect(told).toEqual(Array(3).fill({ isTold: false, isCutOut: true, isFlagged: false }))
  })

  it('is always cut out where the stream is translated', async () => {
    const own = await createRoutedModel(gateway(), ['openai-compatible'])
    const told = await streams('/v1/messages', own)
    expect(told).toEqual(Array(3).fill({ isTold: false, isCutOut: true, isFlagged: false }))
  })
})

describe.each(PATHS)('headers of an upstream on %s', (path) => {
  it('stay within what clients read', async () => {
    const headers: Record<string, string> = { 'content-type': 'application/json', 'retry-after': '7' }
    headers['openai-version'] = 'x'.repeat(6_000)
    headers['x-request-id'] = 'x'.repeat(6_000)
    const steps: ScriptStep[] = [
      { status: 429, headers },
      { chunk: '{"error":{"message":"x"}}' },
      { end: true },
    ]
    const answer = await call(path, steps)
    expect(answer.status).toBe(429)
    expect(answer.headers['retry-after']).toBe('7')
    expect(answer.headers['openai-version']).toHaveLength(6_000)
    expect(answer.headers['x-upstream-request-id']).toBeUndefined()
    expect(answer.rawHeaders.join('').length).toBeLessThan(9_000)
  })
})
