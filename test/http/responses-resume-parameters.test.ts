import { beforeAll, describe, expect, it } from 'vitest'
import { checkResponseStream } from '../harness/conformance.ts'
import type { StreamEvent } from '../harness/conformance-rules.ts'
import { gateway } from '../harness/gateway.ts'
import { readResponseStream } from '../harness/response-stream-text.ts'
import { type Answer, jsonOf } from '../harness/send.ts'
import { addKey, addMember, createTenant, type Tenant } from '../harness/tenant.ts'
import { refusalBody } from '../matrices/envelopes.ts'
import { ask, createResponse, type ToldResponse } from './support/response-calls.ts'

let tenant: Tenant
let response: ToldResponse
let events: StreamEvent[]

beforeAll(async () => {
  tenant = await createTenant(gateway())
  response = await createResponse(tenant.key, { input: 'Hello' })
  events = readResponseStream((await stream('')).text)
})

const stream = (query: string, headers: Record<string, string> = {}) =>
  ask(tenant.key, 'GET', `/v1/responses/${response.id}?stream=true${query}`, { headers })

function expectRefusal(answer: Answer, status: 400 | 404, message: RegExp) {
  const code = status === 404 ? 'not_found' : 'invalid_query'
  expect(jsonOf(answer)).toEqual(refusalBody('responses', { status, code, message }))
  expect(answer.status).toBe(status)
  expect(answer.headers['content-type']).toMatch(/^application\/json/)
}

describe('a replay', () => {
  it('is an event stream that no proxy may change', async () => {
    const answer = await stream('')
    expect(answer.status).toBe(200)
    expect(answer.headers).toMatchObject({
      'content-type': 'text/event-stream',
      'cache-control': 'no-cache, no-transform',
      'x-request-id': expect.stringMatching(/^req_/),
    })
  })

  it('begins at the beginning when nothing else is said, or 0', async () => {
    expect(checkResponseStream(events)).toEqual([])
    for (const query of ['', '&starting_after=0', '&starting_after=000']) {
      expect((await stream(query)).text).toBe((await stream('')).text)
    }
    expect((await stream('', { 'last-event-id': '' })).text).toBe((await stream('')).text)
  })

  it('goes on after any number, by either way to say it', async () => {
    for (let after = 1; after < events.length; after += 1) {
      const rest = events.slice(after)
      const asked = await stream(`&starting_after=${after}`)
      expect(readResponseStream(asked.text)).toEqual(rest)
      expect((await stream('', { 'last-event-id': String(after) })).text).toBe(asked.text)
    }
  })

  it('follows starting_after, whatever Last-Event-ID says', async () => {
    for (const header of ['1', '-1', 'garbage']) {
      const answer = await stream('&starting_after=2', { 'last-event-id': header })
      expect(readResponseStream(answer.text)).toEqual(events.slice(2))
    }
  })

  it('tells the end at once to whoever has everything', async () => {
    const last = events.at(-1)
    expect(last?.event).toBe('response.completed')
    const beyond = [events.length, events.length + 1, Number.MAX_SAFE_INTEGER, '9'.repeat(30)]
    for (const after of beyond) {
      const answer = await stream(`&starting_after=${after}`)
      expect(readResponseStream(answer.text), `after ${after}`).toEqual([last])
      expect((await stream('', { 'last-event-id': String(after) })).text).toBe(answer.text)
    }
  })
})

describe('parameters', () => {
  const malformed = ['-1', '%2B1', '1.5', '1e2', '0x1', '', '%20', 'abc', 'null', '%D9%A1']

  it.each(malformed)('starting_after=%s is refused, on a stream or not', async (text) => {
    expectRefusal(await stream(`&starting_after=${text}`), 400, /^starting_after: /)
    const path = `/v1/responses/${response.id}?starting_after=${text}`
    expectRefusal(await ask(tenant.key, 'GET', path), 400, /^starting_after: /)
  })

  it('starting_after is refused when it is given twice', async () => {
    expectRefusal(await stream('&starting_after=1&starting_after=1'), 400, /^starting_after: /)
  })

  it.each(['-1', '1.5', 'abc', '1, 2', '0x1'])('Last-Event-ID: %s is refused', async (text) => {
    expectRefusal(await stream('', { 'last-event-id': text }), 400, /^Last-Event-ID: /)
  })

  it('Last-Event-ID means nothing without a stream', async () => {
    const headers = { 'last-event-id': 'abc' }
    const answer = await ask(tenant.key, 'GET', `/v1/responses/${response.id}`, { headers })
    expect(jsonOf(answer)).toEqual(response)
  })

  it.each(['1', 'truely', 'yes', ''])('stream=%s is refused', async (text) => {
    const path = `/v1/responses/${response.id}?stream=${text}`
    expectRefusal(await ask(tenant.key, 'GET', path), 400, /^stream: /)
  })

  it('stream=false asks for the response', async () => {
    const answer = await ask(tenant.key, 'GET', `/v1/responses/${response.id}?stream=false&starting_after=3`)
    expect(jsonOf(answer)).toEqual(response)
  })

  it('stream is understood in capitals, as clients in Python write it', async () => {
    const on = (query: string) => ask(tenant.key, 'GET', `/v1/responses/${response.id}?stream=${query}`)
    expect((await on('True')).text).toBe((await stream('')).text)
    expect(jsonOf(await on('False'))).toEqual(response)
  })

  it('a run is replayed whole or not at all', async () => {
    const path = '/v1/responses/resp_run_00000000-0000-4000-8000-000000000000?stream=true'
    expectRefusal(await ask(tenant.key, 'GET', `${path}&starting_after=1`), 400, /^starting_after: /)
    expectRefusal(await ask(tenant.key, 'GET', `${path}&starting_after=0`), 404, /not found/)
  })
})

/** Each verb on a response. */
const VERBS: Array<[method: string, rest: string]> = [
  ['GET', ''],
  ['GET', '?stream=true'],
  ['GET', '?stream=true&starting_after=3'],
  ['GET', '/input_items'],
  ['POST', '/cancel'],
  ['DELETE', ''],
]

describe.each(VERBS)('%s /v1/responses/{id}%s', (method, rest) => {
  const on = (key: string, id: string) => ask(key, method, `/v1/responses/${id}${rest}`)

  it('finds nothing of somebody else', async () => {
    const colleague = await addMember(gateway(), tenant.base)
    const { key } = await addKey(gateway(), tenant.base, colleague)
    const stranger = await createTenant(gateway())
    for (const other of [key, stranger.key]) expectRefusal(await on(other, response.id), 404, /not found/)
    expect((await stream('')).status).toBe(200)
  })

  it('finds nothing under an id that was not made here', async () => {
    const { id } = response
    const forged = [
      `${id.slice(0, -1)}${id.endsWith('0') ? '1' : '0'}`,
      `${id.slice(0, 5)}${id[5] === '0' ? '1' : '0'}${id.slice(6)}`,
      id.slice(0, -1),
      `${id}0`,
      id.toUpperCase(),
      id.replace('resp_', ''),
      'resp_',
      '%00',
    ]
    for (const other of forged) expectRefusal(await on(tenant.key, other), 404, /not found/)
  })

  it('finds nothing once the response was deleted', async () => {
    const gone = await createResponse(tenant.key, { input: 'Forget this.' })
    const deleted = await ask(tenant.key, 'DELETE', `/v1/responses/${gone.id}`)
    expect(jsonOf(deleted)).toEqual({ id: gone.id, object: 'response', deleted: true })
    expectRefusal(await on(tenant.key, gone.id), 404, /not found/)
  })
})

it('cancels nothing of a response that has ended', async () => {
  const answer = await ask(tenant.key, 'POST', `/v1/responses/${response.id}/cancel`)
  expect(jsonOf(answer)).toEqual(response)
})
