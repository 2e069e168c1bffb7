import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import type { StreamEvent } from '../harness/conformance-rules.ts'
import { readResponseStream } from '../harness/response-stream-text.ts'
import { type StartedWorker, startWorker } from '../harness/start-worker.ts'
import { addKey, createTenant, type Tenant } from '../harness/tenant.ts'
import { callTool } from './support/dlp-answers.ts'
import { ask, createResponse, expectJson, type Json, type ToldResponse } from './support/response-calls.ts'
import { checkedEvents, respond, turnsScript } from './support/response-streams.ts'

let address: StartedWorker
let tenant: Tenant

beforeAll(async () => {
  address = await startWorker({ RESPONSE_WINDOW_MS: '1' })
  tenant = await createTenant(address)
}, 60_000)
afterAll(() => address?.stop())

const call = (method: string, path: string) => ask(tenant.key, method, path, address)
const create = (body: Json) => createResponse(tenant.key, body, address)

async function streamOf(id: string, query = ''): Promise<StreamEvent[]> {
  const answer = await call('GET', `/v1/responses/${id}?stream=true${query}`)
  expect(answer.status, answer.text).toBe(200)
  return readResponseStream(answer.text)
}

const hasDeltas = (events: StreamEvent[]) => events.some(({ event }) => event.endsWith('.delta'))

/** Makes a response and waits until its object has forgotten it. */
async function forgotten(body: Json): Promise<ToldResponse> {
  return waitUntilForgotten(await create(body))
}

async function waitUntilForgotten(response: ToldResponse): Promise<ToldResponse> {
  await vi.waitFor(async () => expect(hasDeltas(await streamOf(response.id))).toBe(false), {
    timeout: 10_000,
    interval: 50,
  })
  return response
}

const WEATHER = {
  type: 'function',
  name: 'get_weather',
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
}

const REQUESTS: Array<[name: string, body: Json, status: string]> = [
  ['said something', { input: 'Hello' }, 'completed'],
  [
    'called a function',
    { input: 'Call get_weather.', tools: [WEATHER], tool_choice: 'required' },
    'incomplete',
  ],
]

describe.each(REQUESTS)('a response that %s, after its window', (_, body, status) => {
  it('is told from Postgres as its object told it', async () => {
    const response = await forgotten(body)
    expect(response.status).toBe(status)
    expect(expectJson<Json>(await call('GET', `/v1/responses/${response.id}`))).toEqual(response)
    expect(expectJson<Json>(await call('POST', `/v1/responses/${response.id}/cancel`))).toEqual(response)
  })

  it('is streamed as its live events without the deltas, from any number on', async () => {
    const { response, events: live } = await respond(tenant.key, { ...body, stream: true }, address)
    await waitUntilForgotten(response)
    const kept = live.filter(({ event }) => !event.endsWith('.delta'))
    const all = await streamOf(response.id)
    const placeOf = ({ event, data }: StreamEvent) => [event, data.sequence_number, data.output_index]
    expect(all.map(placeOf)).toEqual(kept.map(placeOf))
    expect(all.at(-1)).toMatchObject({ event: 'response.completed', data: { response } })
    for (let after = 0; after <= live.length; after++) {
      const events = await streamOf(response.id, `&starting_after=${after}`)
      const following = all.filter(({ data }) => Number(data.sequence_number) > after)
      expect(events).toEqual(following.length > 0 ? following : all.slice(-1))
    }
    expect(await streamOf(response.id, '&starting_after=1000000')).toEqual(all.slice(-1))
  })

  it('is put together by the stream helper of the official client, resumed after any number', async () => {
    const { response, events: live } = await respond(tenant.key, { ...body, stream: true }, address)
    await waitUntilForgotten(response)
    const client = new OpenAI({ apiKey: tenant.key, baseURL: `${address.baseUrl}/v1`, maxRetries: 0 })
    for (let after = 0; after <= live.length; after++) {
      const stream = client.responses.stream({ response_id: response.id, starting_after: after })
      const numbers: number[] = []
      stream.on('event', (event) => numbers.push(event.sequence_number))
      const final = await stream.finalResponse()
      expect(final).toMatchObject({ id: response.id, status, output_text: response.output_text })
      expect(final.output).toMatchObject(response.output)
      expect(numbers.every((number) => number > after)).toBe(true)
    }
  })

  it('is the same to the stream helper of the official client', async () => {
    const response = await forgotten(body)
    const client = new OpenAI({ apiKey: tenant.key, baseURL: `${address.baseUrl}/v1`, maxRetries: 0 })
    const final = await client.responses.stream({ response_id: response.id }).finalResponse()
    expect(final).toMatchObject({ id: response.id, status, output_text: response.output_text })
    expect(final.output).toMatchObject(response.output)
  })
})

it('keeps the input items in Postgres', async () => {
  const response = await forgotten({ input: 'Hello' })
  const list = expectJson<Json>(await call('GET', `/v1/responses/${response.id}/input_items`))
  expect(list).toMatchObject({ data: [{ role: 'user', content: [{ text: 'Hello' }] }], has_more: false })
})

it('tells sealed reasoning to its owner only when asked', async () => {
  const model = 'scripted-messages-thinking'
  const response = await forgotten({
    model,
    input: 'Think.',
    reasoning: { effort: 'low' },
    max_output_tokens: 4_000,
  })
  expect(response.output.map(({ type }) => type)).toContain('reasoning')
  const path = `/v1/responses/${response.id}`
  const sealed = 'include[]=reasoning.encrypted_content'
  const items = `/v1/conversations/${response.conversation?.id}/items`
  for (const place of [path, `${path}?stream=true`, items]) {
    expect((await call('GET', place)).text).not.toContain('encrypted_content')
    const asked = await call('GET', `${place}${place.includes('?') ? '&' : '?'}${sealed}`)
    expect(asked.text).toContain('"encrypted_content":"')
  }
})

it('has nothing of a response that was not stored', async () => {
  const response = await create({ input: 'Hello', store: false })
  const path = `/v1/responses/${response.id}`
  await vi.waitFor(async () => expect((await call('GET', path)).status).toBe(404), {
    timeout: 10_000,
    interval: 50,
  })
  for (const rest of ['?stream=true', '/input_items']) {
    expect((await call('GET', path + rest)).status).toBe(404)
  }
  expect((await call('DELETE', path)).status).toBe(404)
})

it('deletes what Postgres has', async () => {
  const response = await forgotten({ input: 'Forget this.' })
  const path = `/v1/responses/${response.id}`
  const deleted = expectJson<Json>(await call('DELETE', path))
  expect(deleted).toEqual({ id: response.id, object: 'response', deleted: true })
  expect((await call('GET', path)).status).toBe(404)
  const items = await call('GET', `/v1/conversations/${response.conversation?.id}/items`)
  expect(items.text).not.toContain('Forget this.')
})

it('a response keeps the form of Open Responses, as an object and as a stream', async () => {
  const { key } = await addKey(address, tenant.base, tenant.userId, { compatibility: 'open_responses' })
  const script = await turnsScript('chat', [[callTool('run_code', { input: '1' })]], address)
  const body = {
    input: script,
    tools: [{ type: 'custom', name: 'run_code' }, { type: 'shell' }, { type: 'web_search' }],
    stream: true,
  }
  const { response, events: live } = await respond(key, body, address)
  const path = `/v1/responses/${response.id}`
  const stream = async (after: number) => {
    const { text } = await ask(key, 'GET', `${path}?stream=true&starting_after=${after}`, address)
    return checkedEvents(text, { after, condensed: true })
  }
  await vi.waitFor(async () => expect(JSON.stringify(await stream(0))).not.toContain('.delta'), 10_000)
  const kept = live.filter(({ event }) => !event.endsWith('.delta'))
  expect(await stream(0)).toEqual(kept)
  expect(await stream(3)).toEqual(kept.filter(({ data }) => Number(data.sequence_number) > 3))
  expect(expectJson(await ask(key, 'GET', path, address))).toEqual(response)
  expect(expectJson(await ask(key, 'POST', `${path}/cancel`, address))).toEqual(response)
})
