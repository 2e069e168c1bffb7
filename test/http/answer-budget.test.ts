import { createHash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { upstreamControl } from '../harness/gateway.ts'
import { openStream } from '../harness/open-stream.ts'
import { auditEntryOf } from '../harness/records.ts'
import { type Answer, jsonOf, send } from '../harness/send.ts'
import { type StartedWorker, startWorker } from '../harness/start-worker.ts'
import { bearer, createTenant, type Tenant, uniqueName } from '../harness/tenant.ts'
import { registerScript, type ScriptStep } from '../harness/upstream.ts'
import { refusalBody } from '../matrices/envelopes.ts'

/** Bytes that the gateway may hold, and nearly all that one organization may hold with an answer beside its request. */
const ROOM = 2_000_000
const NEARLY_ALL = 1_740_000
const LARGE = 1_250_000
const WITHIN = { timeout: 10_000, interval: 50 }

let gateway: StartedWorker
let tenant: Tenant
let other: Tenant

beforeAll(async () => {
  const variables = { BUFFER_LIMIT_BYTES: String(ROOM), LEDGER_FLUSH_MS: '100' }
  gateway = await startWorker(variables)
  tenant = await createTenant(gateway)
  other = await createTenant(gateway)
})
afterAll(() => gateway?.stop())

const chat = { path: '/v1/chat/completions', surface: 'chat_completions', model: 'scripted-chat' } as const
const messages = { path: '/v1/messages', surface: 'messages', model: 'scripted-chat' } as const
type Route = typeof chat | typeof messages

const TYPE = { 'content-type': 'application/json' }
const sha256 = (bytes: Uint8Array | string) => createHash('sha256').update(bytes).digest('hex')

/** An answer of a chat model of so many bytes, without usage. */
function answerOf(bytes: number): string {
  const choice = { index: 0, message: { role: 'assistant', content: '|' }, finish_reason: 'stop' }
  const shell = { id: 'c', object: 'chat.completion', created: 1, model: 'upstream', choices: [choice] }
  const [before = '', after = ''] = JSON.stringify(shell).split('|')
  return before + 'x'.repeat(bytes - before.length - after.length) + after
}

/** Steps of an answer, with its length told or not; before its end it waits for a signal. */
function stepsOf(answer: string, told: boolean, signal?: string): ScriptStep[] {
  const headers = { ...TYPE, ...(told && { 'content-length': String(answer.length) }) }
  const wait: ScriptStep[] = signal === undefined ? [] : [{ waitForSignal: signal }]
  return [
    { status: 200, headers },
    { chunk: answer.slice(0, -10) },
    ...wait,
    { chunk: answer.slice(-10) },
    { end: true },
  ]
}

const requestFor = (script: string, route: Route, more: object = {}) =>
  JSON.stringify({
    model: route.model,
    max_tokens: 1_000,
    messages: [{ role: 'user', content: script }],
    ...more,
  })

async function call(steps: ScriptStep[], route: Route = chat, key = tenant.key): Promise<Answer> {
  const body = requestFor(await registerScript(gateway, steps), route)
  return send(gateway.baseUrl + route.path, { method: 'POST', headers: bearer(key), body })
}

/**
 * Takes room by an answer that does not end before its signal, so that another one does not fit. Whichever comes last
 * is refused, so it is begun again until that is the other.
 */
const occupied = (route: Route) =>
  vi.waitFor(async () => {
    const signal = uniqueName('room')
    const { release, waiting } = upstreamControl(gateway)
    const answer = call(stepsOf(answerOf(LARGE), false, signal))
    await vi.waitFor(async () => expect((await waiting())[signal]).toBe(1), WITHIN)
    const refused = await call(stepsOf(answerOf(LARGE), true), route)
    if (refused.status !== 429) await Promise.all([release(signal), answer])
    expect(refused.status).toBe(429)
    return { first: () => release(signal).then(() => answer), refused }
  }, WITHIN)

/** Passes once the gateway holds nothing any more. */
const expectAllGivenBack = () =>
  vi.waitFor(async () => expect((await call(stepsOf(answerOf(NEARLY_ALL), true))).status).toBe(200), WITHIN)

describe('a large answer', () => {
  it.each([
    ['told', true],
    ['not told', false],
  ])('whose length is %s passes unchanged, and gives its room back', async (_, told) => {
    for (const bytes of [64 * 1024, 64 * 1024 + 1, 300_000, NEARLY_ALL]) {
      const answer = await call(stepsOf(answerOf(bytes), told))
      expect(answer.status, answer.text.slice(0, 200)).toBe(200)
      expect(answer.bytes).toHaveLength(bytes)
      expect(answer.headers['content-length']).toBe(String(bytes))
    }
    await expectAllGivenBack()
  })

  it('of an error passes unchanged', async () => {
    const body = JSON.stringify({ error: { message: 'x'.repeat(LARGE) } })
    const steps: ScriptStep[] = [{ status: 400, headers: TYPE }, { chunk: body }, { end: true }]
    const answer = await call(steps)
    expect([answer.status, sha256(answer.bytes)]).toEqual([400, sha256(body)])
    await expectAllGivenBack()
  })

  it('is translated, and gives its room back', async () => {
    const answer = await call(stepsOf(answerOf(LARGE), false), messages)
    expect(answer.status, answer.text.slice(0, 200)).toBe(200)
    const [block] = (jsonOf(answer) as { content: Array<{ text: string }> }).content
    expect(block?.text.length).toBeGreaterThan(LARGE - 1_000)
    await expectAllGivenBack()
  })

  it.each([chat, messages])(
    'that does not fit beside others is refused on $path, and paid for',
    async (route) => {
      const { first, refused } = await occupied(route)
      expect(Number(refused.headers['retry-after'])).toBeGreaterThanOrEqual(1)
      expect(jsonOf(refused)).toEqual(refusalBody(route.surface, { status: 429, message: /does not fit/ }))
      // Small answers pass, and those of others that fit.
      expect((await call(stepsOf(answerOf(60_000), false))).status).toBe(200)
      expect((await call(stepsOf(answerOf(500_000), false), chat, other.key)).status).toBe(200)
      const { status, bytes } = await first()
      expect([status, bytes.length]).toEqual([200, LARGE])
      const entry = await auditEntryOf(gateway, tenant, refused.headers['x-request-id'])
      expect(entry.record).toMatchObject({
        errorCode: 'rate_limited',
        provenance: 'estimated',
        attempts: [{ status: 200, failure: 'no_room' }],
        // Only the bytes of the output are known; it cannot have more tokens than requested.
        usage: { output: 1_000 },
      })
      await expectAllGivenBack()
    },
  )

  it('gives its room back when its caller leaves while it is sent', async () => {
    const script = await registerScript(gateway, stepsOf(answerOf(NEARLY_ALL), true))
    const stream = await openStream(gateway.baseUrl + chat.path, bearer(tenant.key), requestFor(script, chat))
    expect(stream.status).toBe(200)
    stream.pause()
    stream.leave()
    await expectAllGivenBack()
  })

  it('gives its room back when it breaks off', async () => {
    const answer = await call([
      { status: 200, headers: TYPE },
      { chunk: 'x'.repeat(LARGE) },
      { destroy: true },
    ])
    expect(answer.status).toBe(502)
    await expectAllGivenBack()
  })
})
