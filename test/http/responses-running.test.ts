import { beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { checkResponseStream } from '../harness/conformance.ts'
import { gateway, upstreamControl } from '../harness/gateway.ts'
import { openStream } from '../harness/open-stream.ts'
import { callEntries, flush } from '../harness/records.ts'
import { readResponseStream } from '../harness/response-stream-text.ts'
import { jsonOf } from '../harness/send.ts'
import { bearer, createTenant, type Tenant, uniqueName } from '../harness/tenant.ts'
import { registerScript, seenRequest } from '../harness/upstream.ts'
import { RESPONSES_ROUTE } from '../matrices/routes.ts'
import { ask, createResponse, expectJson, type Json, type ToldResponse } from './support/response-calls.ts'

let tenant: Tenant
/** Ends the model's answer, which stands still after its first word. */
let signal: string
let script: string

const chunk = (delta: Json, finish: string | null = null) =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`

beforeAll(async () => {
  tenant = await createTenant(gateway())
})

beforeEach(async () => {
  signal = uniqueName('signal')
  script = await registerScript(gateway(), [
    { sse: [chunk({ role: 'assistant', content: 'First ' })] },
    { waitForSignal: signal },
    { sse: [chunk({ content: 'and last.' }), chunk({}, 'stop'), 'data: [DONE]\n\n'] },
  ])
})

const release = () => upstreamControl(gateway()).release(signal)
const url = (path: string) => gateway().baseUrl + path
const read = (path: string) => ask(tenant.key, 'GET', path)
const responseOf = async (id: string) => expectJson<ToldResponse>(await read(`/v1/responses/${id}`))
const follow = (id: string, after = 0) =>
  openGet(url(`/v1/responses/${id}?stream=true&starting_after=${after}`))
const create = (more: Json = {}) => createResponse(tenant.key, { input: script, background: true, ...more })

function openCreate(more: Json = {}) {
  const body = RESPONSES_ROUTE.request(script, { stream: true, ...more })
  return openStream(url('/v1/responses'), bearer(tenant.key), JSON.stringify(body))
}

/** A stream that is read as it comes. */
async function openGet(address: string) {
  const answer = await fetch(address, { headers: bearer(tenant.key) })
  expect(answer.status).toBe(200)
  return answer
}

const idIn = (text: string) => /"id":"(resp_[^"]+)"/.exec(text)?.[1] ?? ''
const hasText = (text: string) => text.includes('"delta":"First "')

describe('a response that runs', () => {
  it('is read in its current state, and complete at its end', async () => {
    const begun = await create()
    expect(begun).toMatchObject({ status: 'in_progress', usage: null, background: true })
    expect(await responseOf(begun.id)).toMatchObject({ id: begun.id, status: 'in_progress' })
    await release()
    await (await follow(begun.id)).text()
    expect(await responseOf(begun.id)).toMatchObject({
      status: 'completed',
      output_text: 'First and last.',
    })
  })

  it('continues when its caller leaves, and later readers get the same events', async () => {
    const first = await openCreate()
    const begun = await first.until(hasText)
    const id = idIn(begun)
    first.leave()
    const early = follow(id)
    await release()
    const whole = await (await early).text()
    expect(whole.startsWith(begun)).toBe(true)
    const events = readResponseStream(whole)
    expect(checkResponseStream(events)).toEqual([])
    const tail = await (await follow(id, 2)).text()
    expect(readResponseStream(tail)).toEqual(events.slice(2))
    expect((await responseOf(id)).output_text).toBe('First and last.')
  })

  it('ends incomplete when it is cancelled, for all who follow it', async () => {
    const stream = await openCreate()
    const id = idIn(await stream.until(hasText))
    const cancelled = expectJson<ToldResponse>(await ask(tenant.key, 'POST', `/v1/responses/${id}/cancel`))
    expect(cancelled).toMatchObject({
      id,
      status: 'incomplete',
      incomplete_details: { reason: 'cancelled' },
      output: [{ type: 'message', status: 'incomplete', content: [{ text: 'First ' }] }],
    })
    const events = readResponseStream(await stream.end())
    expect(checkResponseStream(events)).toEqual([])
    expect(events.at(-1)).toMatchObject({ event: 'response.completed', data: { response: cancelled } })
    expect(await responseOf(id)).toEqual(cancelled)
    // Nobody waits for the model any more.
    await seenRequest(gateway(), script, ({ clientClosedAt }) => clientClosedAt !== null)
  })

  it('ends for its readers when it is deleted', async () => {
    const begun = await create()
    const stream = await follow(begun.id)
    const deleted = await ask(tenant.key, 'DELETE', `/v1/responses/${begun.id}`)
    expect(expectJson(deleted)).toEqual({ id: begun.id, object: 'response', deleted: true })
    const events = readResponseStream(await stream.text())
    expect(checkResponseStream(events)).toEqual([])
    expect(events.at(-1)).toMatchObject({
      event: 'response.completed',
      data: { response: { status: 'incomplete', incomplete_details: { reason: 'cancelled' } } },
    })
    for (const rest of ['', '?stream=true', '/input_items']) {
      expect((await read(`/v1/responses/${begun.id}${rest}`)).status).toBe(404)
    }
    await seenRequest(gateway(), script, ({ clientClosedAt }) => clientClosedAt !== null)
  })
})

it('has 200 readers at a time, and one more when one has left', async () => {
  const begun = await create()
  const leaving = new AbortController()
  const path = url(`/v1/responses/${begun.id}?stream=true`)
  const open = () => fetch(path, { headers: bearer(tenant.key), signal: leaving.signal })
  // A HEAD request reads no event, so it is no reader.
  const heads = await Promise.all(
    Array.from({ length: 210 }, () => fetch(path, { method: 'HEAD', headers: bearer(tenant.key) })),
  )
  expect(heads.map(({ status, headers }) => `${status} ${headers.get('content-type')}`)).toEqual(
    Array(210).fill('200 text/event-stream'),
  )
  const readers = await Promise.all(Array.from({ length: 200 }, open))
  expect(new Set(readers.map(({ status }) => status))).toEqual(new Set([200]))
  const refused = await read(`/v1/responses/${begun.id}?stream=true`)
  expect(refused.status).toBe(429)
  expect(refused.headers['retry-after']).toMatch(/^[1-9]\d*$/)
  expect(jsonOf(refused)).toMatchObject({ error: { type: expect.stringMatching(/rate_limit/) } })
  // Everything else can be asked.
  expect(await responseOf(begun.id)).toMatchObject({ status: 'in_progress' })
  leaving.abort()
  await release()
  await vi.waitFor(
    async () => expect((await read(`/v1/responses/${begun.id}?stream=true`)).status).toBe(200),
    10_000,
  )
}, 60_000)

it('sends each event by itself', async () => {
  const answer = await openCreate()
  await answer.until(hasText)
  await release()
  await answer.end()
  const { body } = await follow(idIn(answer.text()))
  const chunks: string[] = []
  for await (const bytes of body as unknown as AsyncIterable<Uint8Array>)
    chunks.push(Buffer.from(bytes).toString())
  // The network may put frames together, but none was torn apart.
  for (const text of chunks) expect(text.endsWith('\n\n'), text).toBe(true)
})

it('ends a function call completed for those who keep to Open Responses', async () => {
  const tool = { type: 'function', name: 'get_weather', parameters: { type: 'object', properties: {} } }
  const request = { input: 'Call get_weather.', tools: [tool], tool_choice: 'required' }
  const body = JSON.stringify(RESPONSES_ROUTE.request('', request))
  const call = (headers: Record<string, string>) =>
    ask(tenant.key, 'POST', '/v1/responses', { body, headers }).then(expectJson)
  expect(await call({})).toMatchObject({ status: 'incomplete', incomplete_details: { reason: 'tool_use' } })
  const strict = await call({ 'x-headgate-compatibility': 'open-responses' })
  expect(strict).toMatchObject({ status: 'completed', incomplete_details: null })
})

it('leaves one record of each call', async () => {
  const owner = await createTenant(gateway())
  const made = await createResponse(owner.key, { input: 'Hello' })
  await ask(owner.key, 'GET', `/v1/responses/${made.id}`)
  await ask(owner.key, 'GET', '/v1/responses/resp_unknown')
  await ask(owner.key, 'GET', `/v1/responses/${owner.key}/input_items`)
  await ask(owner.key, 'POST', '/v1/responses', { body: '{}' })
  await flush(gateway(), owner)
  const entries = await callEntries(gateway(), owner, 5)
  expect(entries.map(({ action, surface, status, model }) => ({ action, surface, status, model }))).toEqual(
    [
      { action: 'POST /v1/responses', status: 400, model: null },
      { action: 'GET /v1/responses/hg_[redacted]', status: 404, model: null },
      { action: 'GET /v1/responses/resp_unknown', status: 404, model: null },
      { action: `GET /v1/responses/${made.id}`, status: 200, model: null },
      { action: 'POST /v1/responses', status: 200, model: 'scripted-chat' },
    ].map((entry) => ({ ...entry, surface: 'responses' })),
  )
  expect(entries.at(-1)?.credits_settled).toBeGreaterThan(0)
})
