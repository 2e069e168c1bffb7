import { beforeAll, describe, expect, it, vi } from 'vitest'
import { gateway, query, upstreamControl } from '../harness/gateway.ts'
import { beginRequest, openStream } from '../harness/open-stream.ts'
import { readResponseStream } from '../harness/response-stream-text.ts'
import { answered, inTurn } from '../harness/routed-model.ts'
import { collect, newestOpenAi } from '../harness/sdk-clients.ts'
import { jsonOf } from '../harness/send.ts'
import { addKey, addMember, bearer, createTenant, type Tenant } from '../harness/tenant.ts'
import { marker, registerScript, seenRequest, seenRequests } from '../harness/upstream.ts'
import {
  callAgent,
  endOf,
  readRunResponse,
  refused,
  runEvents,
  runPath,
  shapeOf,
  textsOf,
} from './support/agent-responses.ts'
import { createAgent, definitionOf, endedRun, readRun, resultText, trigger } from './support/agents.ts'
import { ask, type Json, listItems } from './support/response-calls.ts'

let tenant: Tenant
let other: Tenant

beforeAll(async () => {
  ;[tenant, other] = await Promise.all([createTenant(gateway()), createTenant(gateway())])
})

/** Several messages of QStash take their time on a busy machine. */
const PATIENCE = { timeout: 15_000 }
const says = (text: string) => inTurn(gateway(), answered('chat', text, true))
const openAi = (key = tenant.key) =>
  new newestOpenAi({ apiKey: key, baseURL: `${gateway().baseUrl}/v1`, maxRetries: 0 })
const runIdOf = ({ id }: { id: string }) => id.slice('resp_run_'.length)

/** An agent of two steps. */
async function greeter(more: Json = {}): Promise<string> {
  const [first, second] = await Promise.all([says('Ada, hello.'), says('Ada, goodbye.')])
  return createAgent(
    tenant,
    definitionOf([{ instructions: `${first} {{who}}` }, { instructions: second }], {
      inputs: [{ name: 'who' }],
      ...more,
    }),
  )
}

const ITEM = [
  'response.output_item.added',
  'response.content_part.added',
  'response.output_text.delta',
  'response.output_text.done',
  'response.content_part.done',
  'response.output_item.done',
]
const BEGINNING = ['response.created', 'response.in_progress']

describe.concurrent('an agent', () => {
  it('is streamed as one response, and read as the same', async () => {
    const agentId = await greeter()
    const { events, response } = await callAgent(tenant, agentId, { input: 'Ada', stream: true })
    expect(shapeOf(events)).toEqual([...BEGINNING, ...ITEM, ...ITEM, 'response.completed'])
    expect(events[0]?.data.response).toMatchObject({ id: response.id, status: 'in_progress', output: [] })
    const run = await readRun(tenant, runIdOf(response))
    expect(run.status).toBe('success')
    expect(response).toMatchObject({
      id: `resp_run_${run.runId}`,
      object: 'response',
      status: 'completed',
      model: `agent/${agentId}`,
      background: true,
      conversation: { id: run.conversationId },
      output_text: 'Ada, hello.Ada, goodbye.',
      usage: { input_tokens: 22, output_tokens: 14, total_tokens: 36 },
      error: null,
      incomplete_details: null,
    })
    expect(textsOf(response)).toEqual(['Ada, hello.', 'Ada, goodbye.'])
    expect(response.completed_at).toBe(Math.floor(Date.parse(run.endedAtUtc as string) / 1_000))
    expect(await runEvents(tenant, run.runId)).toEqual(events)
    expect(await readRunResponse(tenant, run.runId)).toEqual(response)
  })

  it('is answered when it has ended, or at once in the background', async () => {
    const agentId = await greeter()
    const { response } = await callAgent(tenant, agentId, { input: 'Ada' })
    expect(response).toMatchObject({ status: 'completed' })
    expect(textsOf(response)).toEqual(['Ada, hello.', 'Ada, goodbye.'])
    const signal = marker()
    const slow = await registerScript(gateway(), [
      { waitForSignal: signal },
      ...answered('chat', 'Slow.', true),
    ])
    const waiting = await createAgent(tenant, definitionOf([{ instructions: slow }]))
    const begun = (await callAgent(tenant, waiting, { background: true })).response
    expect(begun).toMatchObject({ status: 'in_progress', output: [], usage: null, completed_at: null })
    expect(await readRunResponse(tenant, runIdOf(begun))).toMatchObject({ status: 'in_progress' })
    const stream = runEvents(tenant, runIdOf(begun))
    await upstreamControl(gateway()).release(signal)
    expect(shapeOf(await stream)).toEqual([...BEGINNING, ...ITEM, 'response.completed'])
    expect(await readRunResponse(tenant, runIdOf(begun))).toMatchObject({ output_text: 'Slow.' })
  })

  it('is read by all readers of a run that the API began, live and with the same numbers', async () => {
    const signal = marker()
    const text = marker()
    const slow = await registerScript(gateway(), [
      { waitForSignal: signal },
      ...answered('chat', 'Second.', true),
    ])
    const steps = [{ instructions: await says('First.') }, { instructions: `${slow} ${text}` }]
    const { runId, conversationId } = await trigger(tenant, await createAgent(tenant, definitionOf(steps)))
    // Both steps have begun.
    await vi.waitFor(async () => expect(await seenRequests(gateway(), text)).toHaveLength(1), PATIENCE)
    const live = await openStream(
      `${gateway().baseUrl}${runPath(runId, '?stream=true')}`,
      bearer(tenant.key),
      '',
      'GET',
    )
    await live.until((arrived) => arrived.includes('First.'))
    expect(live.text()).not.toContain('Second.')
    const second = runEvents(tenant, runId, { headers: { 'last-event-id': '0' } })
    await upstreamControl(gateway()).release(signal)
    const events = readResponseStream(await live.end())
    expect(await second).toEqual(events)
    expect(await runEvents(tenant, runId)).toEqual(events)
    expect(endOf(events)).toMatchObject({ status: 'completed', conversation: { id: conversationId } })
  })

  it('goes on when its reader leaves', async () => {
    const signal = marker()
    const text = marker()
    const slow = await registerScript(gateway(), [
      { waitForSignal: signal },
      ...answered('chat', 'Kept.', true),
    ])
    const agentId = await createAgent(tenant, definitionOf([{ instructions: `${slow} ${text}` }]))
    const leave = async (stream: boolean) => {
      const body = JSON.stringify({ model: `agent/${agentId}`, input: text, stream })
      const headers = { ...bearer(tenant.key), 'content-type': 'application/json' }
      const { leave: left, answered: head } = beginRequest(`${gateway().baseUrl}/v1/responses`, headers, body)
      if (stream) await head
      await vi.waitFor(async () => expect(await seenRequests(gateway(), text)).toHaveLength(stream ? 1 : 2), {
        timeout: 15_000,
      })
      left()
    }
    await leave(true)
    await leave(false)
    await upstreamControl(gateway()).release(signal)
    const detail = jsonOf(await ask(tenant.key, 'GET', `/v1/agents/${agentId}`))
    const [one, two] = detail.recentRunIds as string[]
    for (const runId of [one, two]) expect(resultText(await endedRun(tenant, runId ?? ''))).toBe('Kept.')
  })

  it('is begun once for an Idempotency-Key', async () => {
    const agentId = await greeter()
    const headers = { 'idempotency-key': marker() }
    const [first, second] = await Promise.all(
      [1, 2].map(() => callAgent(tenant, agentId, { input: 'Ada' }, { headers })),
    )
    expect(second?.response).toEqual(first?.response)
    const body = JSON.stringify({ model: `agent/${agentId}`, input: 'Bob' })
    const reused = await ask(tenant.key, 'POST', '/v1/responses', { headers, body })
    expect([reused.status, jsonOf(reused)]).toEqual([
      400,
      refused('idempotency_key_reused', /Idempotency-Key/),
    ])
  })

  it('is run by the official client', async () => {
    const agentId = await greeter()
    const client = openAi()
    const model = `agent/${agentId}`
    const stream = await client.responses.create({ model, input: 'Ada', stream: true })
    const events = await collect(stream)
    const last = events.at(-1)
    if (last?.type !== 'response.completed') throw new Error(`the last event is ${last?.type}`)
    const { id } = last.response
    expect(await collect(await client.responses.retrieve(id, { stream: true }))).toEqual(events)
    const read = await client.responses.retrieve(id)
    expect(read).toMatchObject({ id, model, output_text: 'Ada, hello.Ada, goodbye.' })
    const final = await client.responses.stream({ response_id: id }).finalResponse()
    expect(final).toMatchObject({ id, status: 'completed', output: read.output })
    const whole = await client.responses.create({
      model,
      input: [{ role: 'user', content: [{ type: 'input_text', text: 'Ada' }] }],
    })
    expect(whole.output_text).toBe('Ada, hello.Ada, goodbye.')
    // Agents have a list of their own: an id in the list of models works on every surface.
    expect((await collect(client.models.list())).filter(({ id }) => id.startsWith('agent/'))).toEqual([])
    await expect(client.models.retrieve(model)).rejects.toMatchObject({ status: 404 })
    const inBackground = await client.responses.create({ model, input: 'Ada', background: true })
    expect(await client.responses.cancel(inBackground.id)).toMatchObject({
      status: 'incomplete',
      incomplete_details: { reason: 'cancelled' },
    })
  })

  it('is shown in the form of Open Responses on request', async () => {
    const agentId = await greeter()
    const headers = { 'x-headgate-compatibility': 'open-responses' }
    const { events, response } = await callAgent(tenant, agentId, { input: 'Ada', stream: true }, { headers })
    expect(events.at(-1)?.event).toBe('response.completed')
    expect(response).not.toHaveProperty('compatibility')
    expect(await runEvents(tenant, runIdOf(response), { headers })).toEqual(events)
  })
})

describe.concurrent('the input of an agent', () => {
  /** Values of the placeholders `a`, `b` and `input`. */
  const seen = async (inputs: Json[], body: Json): Promise<string> => {
    const text = marker()
    const instructions = `${await says('Done.')} ${text} ${inputs.map(({ name }) => `<{{${name}}}>`).join('')}`
    const agentId = await createAgent(tenant, definitionOf([{ instructions }], { inputs }))
    await callAgent(tenant, agentId, body)
    const request = await seenRequest(gateway(), text)
    return /(<.*>)/.exec(JSON.parse(request.body).messages.at(-1).content)?.[1] ?? ''
  }
  const [a, b] = [{ name: 'a' }, { name: 'b' }]

  it('is a text, or an object for several inputs', async () => {
    const message = { role: 'user', content: [{ type: 'input_text', text: '{"a":"1","b":"2","c":"3"}' }] }
    const found = await Promise.all([
      seen([a], { input: '{"b":"x"}' }),
      seen([a, b], { input: [message] }),
      seen([a, b], { input: 'x', inputs: { b: '2', c: '3' } }),
    ])
    expect(found).toEqual(['<{"b":"x"}>', '<1><2>', '<x><2>'])
  })

  it('is refused where it is missing, has no place, or is no text', async () => {
    const create = (inputs: Json[]) => createAgent(tenant, definitionOf([{ instructions: 'Hi' }], { inputs }))
    const [one, two] = await Promise.all([create([a]), create([a, b])])
    const error = async (agentId: string, body: Json) => {
      const text = JSON.stringify({ model: `agent/${agentId}`, ...body })
      const answer = await ask(tenant.key, 'POST', '/v1/responses', { body: text })
      return [answer.status, jsonOf(answer)]
    }
    const image = [{ role: 'user', content: [{ type: 'input_image', image_url: 'data:,' }] }]
    const turns = [
      { role: 'user', content: 'x' },
      { role: 'assistant', content: 'y' },
    ]
    const cases: Array<[string, Json, string, RegExp]> = [
      [one, {}, 'missing_input', /"a"/],
      [one, { input: '' }, 'missing_input', /"a"/],
      [two, { inputs: { a: 'x' } }, 'missing_input', /"b"/],
      [two, { input: 'x' }, 'invalid_body', /^input: .*"a", "b"/],
      [two, { input: '{"a":1,"b":"2"}' }, 'invalid_body', /^input: /],
      [two, { input: '["a"]' }, 'invalid_body', /^input: /],
      [one, { input: 'x', inputs: { a: '1' } }, 'invalid_body', /^input: /],
      [one, { inputs: { a: 1 } }, 'invalid_body', /^inputs: /],
      [one, { inputs: [{ name: 'a', value: 'x' }] }, 'invalid_body', /^inputs: /],
      [one, { input: 7 }, 'invalid_body', /^input: /],
      [one, { input: image }, 'invalid_body', /^input: /],
      [one, { input: turns }, 'invalid_body', /^input: /],
    ]
    for (const [agentId, body, code, message] of cases) {
      expect([body, ...(await error(agentId, body))]).toEqual([body, 400, refused(code, message)])
    }
    expect((await ask(tenant.key, 'GET', `/v1/agents/${one}`)).text).toContain('"recentRunIds":[]')
  })

  it('has the metadata of its request in every form, and a restart has none', async () => {
    const metadata = { ticket: '42', nested: { a: [1] } }
    const agentId = await createAgent(tenant, definitionOf([{ instructions: await says('Yes.') }]))
    const { response } = await callAgent(tenant, agentId, { metadata })
    expect(response.metadata).toEqual(metadata)
    const path = runPath(runIdOf(response))
    expect(jsonOf(await ask(tenant.key, 'GET', path))).toMatchObject({ metadata })
    const { text } = await ask(tenant.key, 'GET', `${path}?stream=true`)
    const shown = readResponseStream(text).flatMap(
      ({ data }) => (data.response as Json | undefined)?.metadata ?? [],
    )
    expect(shown.length).toBeGreaterThan(1)
    for (const each of shown) expect(each).toEqual(metadata)
    const { runId } = jsonOf(await ask(tenant.key, 'POST', `/v1/runs/${runIdOf(response)}/restart`)) as Json
    expect(jsonOf(await ask(tenant.key, 'GET', runPath(String(runId))))).toMatchObject({ metadata: {} })
    const [row] = await query(gateway(), 'SELECT sealed_inputs FROM runs WHERE id = $1', [runIdOf(response)])
    expect(String(row?.sealed_inputs)).not.toContain('ticket')
  })

  it('has no members that do not apply', async () => {
    const agentId = await createAgent(tenant, definitionOf([{ instructions: 'Hi' }]))
    const members: Json = {
      previous_response_id: 'resp_x',
      conversation: 'conv_x',
      instructions: 'Be kind.',
      tools: [{ type: 'function', name: 'f' }],
      tool_choice: 'none',
      temperature: 0,
      max_output_tokens: 10,
      text: { format: { type: 'text' } },
      reasoning: { effort: 'low' },
      truncation: 'auto',
      include: ['reasoning.encrypted_content'],
      store: false,
      unknown: 1,
    }
    for (const [name, value] of Object.entries(members)) {
      const body = JSON.stringify({ model: `agent/${agentId}`, input: '', [name]: value })
      const answer = await ask(tenant.key, 'POST', '/v1/responses', { body })
      expect([name, answer.status, jsonOf(answer)]).toEqual([
        name,
        400,
        refused('invalid_body', new RegExp(`^${name}: `)),
      ])
    }
    const empty = { instructions: null, tools: [], metadata: {}, include: [], store: true }
    const script = await createAgent(tenant, definitionOf([{ instructions: await says('Yes.') }]))
    expect((await callAgent(tenant, script, empty)).response.output_text).toBe('Yes.')
  })
})

describe.concurrent('the response of a run', () => {
  it('is its user’s alone, with every verb', async () => {
    const script = await says('Mine.')
    const agentId = await createAgent(
      tenant,
      definitionOf([{ instructions: script }], { visibility: 'organization' }),
    )
    const colleague = await addMember(gateway(), tenant.base)
    const { key } = await addKey(gateway(), tenant.base, colleague)
    const { response } = await callAgent({ key }, agentId)
    const runId = runIdOf(response)
    const paths: Array<[string, string]> = [
      ['GET', ''],
      ['GET', '?stream=true'],
      ['GET', '/input_items'],
      ['POST', '/cancel'],
      ['DELETE', ''],
    ]
    const missing = (id: string) => refused('not_found', new RegExp(`^Response ${id} not found\\.$`))
    for (const stranger of [tenant.key, other.key]) {
      for (const [method, rest] of paths) {
        const answer = await ask(stranger, method, runPath(runId, rest))
        expect([answer.status, jsonOf(answer)]).toEqual([404, missing(`resp_run_${runId}`)])
      }
    }
    const unknown = '00000000-0000-4000-8000-00000000000a'
    for (const id of ['x', '', `${unknown}0`, unknown, `${runId}/`]) {
      for (const [method, rest] of paths) {
        const answer = await ask(key, method, runPath(encodeURIComponent(id), rest))
        expect([id, answer.status]).toEqual([id, 404])
      }
    }
    const deleted = await ask(key, 'DELETE', runPath(runId))
    expect([deleted.status, jsonOf(deleted)]).toEqual([400, refused('invalid_request', /retention/)])
    expect(await readRunResponse({ key }, runId)).toEqual(response)
    const items = await listItems(key, runPath(runId, '/input_items'))
    expect(items.data).toMatchObject([{ type: 'message', role: 'user' }])
  })

  it('is replayed from its beginning only', async () => {
    const agentId = await createAgent(tenant, definitionOf([{ instructions: await says('Whole.') }]))
    const { response, events } = await callAgent(tenant, agentId, { stream: true })
    const path = runPath(runIdOf(response), '?stream=true')
    const read = (rest: string, id?: string) =>
      ask(tenant.key, 'GET', path + rest, { headers: id === undefined ? {} : { 'last-event-id': id } })
    for (const [rest, id] of [
      ['&starting_after=1'],
      ['&starting_after=-1'],
      ['&starting_after=x'],
      ['&starting_after=1.5'],
      ['', '1'],
      ['', '-1'],
      ['', 'x'],
    ] as const) {
      const answer = await read(rest, id)
      expect([rest, id, answer.status, jsonOf(answer)]).toEqual([
        rest,
        id,
        400,
        refused('invalid_query', /starting_after|Last-Event-ID/),
      ])
    }
    for (const [rest, id] of [
      ['&starting_after=0'],
      ['', '0'],
      ['', ''],
      ['&starting_after=0', '7'],
    ] as const) {
      const answer = await read(rest, id)
      expect([rest, id, readResponseStream(answer.text)]).toEqual([rest, id, events])
    }
    const head = await ask(tenant.key, 'HEAD', path)
    expect([head.status, head.headers['content-type']]).toEqual([200, 'text/event-stream'])
  })
})
