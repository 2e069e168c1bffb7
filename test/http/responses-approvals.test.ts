import type OpenAI from 'openai'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import { gateway, query } from '../harness/gateway.ts'
import {
  createIntegration,
  type IntegrationItem,
  type McpServer,
  mcpTool,
  startMcpServer,
} from '../harness/integrations.ts'
import { callEntries } from '../harness/records.ts'
import { openResponseSocket } from '../harness/response-socket.ts'
import { failureOf, openAiClients, openAiUrl } from '../harness/sdk-clients.ts'
import { jsonOf } from '../harness/send.ts'
import { addKey, administrator, createTenant, type Tenant } from '../harness/tenant.ts'
import { marker, seenRequests } from '../harness/upstream.ts'
import { callTool, say } from './support/dlp-answers.ts'
import { ask, expectJson, type Json, type ToldResponse } from './support/response-calls.ts'
import {
  bodyOf,
  CORNER_WAYS,
  postResponse,
  RESPONSE_WAYS,
  type ResponseWay,
  respond,
  turnsScript,
} from './support/response-streams.ts'

interface World {
  tenant: Tenant
  server: McpServer
  crm: IntegrationItem
}

/** An integration whose effects need the approval of the caller. */
async function newWorld(): Promise<World> {
  const tenant = await createTenant(gateway())
  const server = await startMcpServer(gateway(), {
    tools: [mcpTool('find', { annotations: { readOnlyHint: true } }), mcpTool('add')],
    results: { add: { content: [{ type: 'text', text: 'added' }] } },
  })
  const crm = await createIntegration(gateway(), tenant, { url: server.url })
  await administrator(gateway()).ask('PUT', `${tenant.base}/tools`, {
    approvals: [{ integration: crm.slug, calls: 'effects' }],
  })
  return { tenant, server, crm }
}

let world: World
beforeAll(async () => {
  world = await newWorld()
})

const itemsOf = (response: { output: Json[] }, type: string) =>
  response.output.filter((item) => item.type === type)

/** A response that ended with a request for approval. */
interface Pending {
  first: ToldResponse
  request: Json & { id: string }
  /** Items of a client that resends the history. */
  history: Json[]
  tools: Json[]
  text: string
}

/** @param more of the request. @param turns of the model after its call. */
async function pending(
  { upstream, model, stream }: ResponseWay,
  more: Json = {},
  turns: Array<ReturnType<typeof say>[]> = [[say('Added.')]],
  { tenant, crm } = world,
  headers: Record<string, string> = {},
): Promise<Pending> {
  const script = await turnsScript(upstream, [[callTool(`${crm.slug}_add`, { text: 'Bob' })], ...turns])
  const text = `${script} ${marker()}`
  const tools = [{ type: 'mcp', server_label: crm.slug }]
  const request = { model, stream, input: text, tools, ...more }
  const { response: first } = await respond(tenant.key, request, { headers })
  expect(first.output.map(({ type }) => type)).toEqual(['mcp_approval_request'])
  const [waiting] = itemsOf(first, 'mcp_approval_request')
  const history = [{ type: 'message', role: 'user', content: text }, ...first.output]
  return { first, request: waiting as Pending['request'], history, tools, text }
}

const decision = ({ request }: Pending, approve = true, more: Json = {}): Json => ({
  type: 'mcp_approval_response',
  approval_request_id: request.id,
  approve,
  ...more,
})

/** How a client sends a decision. */
const FORMS: Array<[name: string, stores: boolean, (pending: Pending, decision: Json) => Json]> = [
  [
    'the conversation',
    true,
    ({ first }, input) => ({ conversation: first.conversation?.id, input: [input] }),
  ],
  ['the response before', true, ({ first }, input) => ({ previous_response_id: first.id, input: [input] })],
  ['the history', true, ({ history }, input) => ({ input: [...history, input] })],
  [
    'the history, nothing stored',
    false,
    ({ history }, input) => ({ input: [...history, input], store: false }),
  ],
]

/** Without what the official types do not have. */
const official = ({ id, type, name, server_label, arguments: json }: Json): Json => ({
  ...{ id, type, name, server_label },
  arguments: json,
})

describe.each(CORNER_WAYS)('an approval (%s)', (_, way) => {
  const { model, stream } = way
  const call = (body: Json) => respond(world.tenant.key, { model, stream, ...body })
  const refusal = async (body: Json) => {
    const answer = await postResponse(world.tenant.key, { model, stream, ...body })
    return { status: answer.status, ...(jsonOf(answer).error as Json) }
  }

  it.each(FORMS)('with %s has the call made once, without the model', async (_form, store, body) => {
    const asked = await pending(way, { store })
    expect(asked.request).toMatchObject({
      id: expect.stringMatching(/^mcpr_[0-9A-Za-z]{44}$/),
      ...{ name: 'add', server_label: world.crm.slug, arguments: '{"text":"Bob"}', status: 'completed' },
    })
    expect(asked.first.status).toBe('completed')
    const before = await world.server.calls('add')
    const request = { tools: asked.tools, ...body(asked, decision(asked)) }
    const { response, events } = await call(request)
    expect(response).toMatchObject({ status: 'completed', output_text: 'Added.' })
    expect(response.output).toMatchObject([
      {
        ...{ type: 'mcp_call', name: 'add', server_label: world.crm.slug, arguments: '{"text":"Bob"}' },
        ...{ output: 'added', status: 'completed', approval_request_id: asked.request.id },
      },
      { type: 'message' },
    ])
    expect(await world.server.calls('add')).toBe(before + 1)
    if (stream) {
      expect(events.map(({ event }) => event)).toContain('response.mcp_call_arguments.done')
    }
    // The model sees one call with its result.
    const seen = await seenRequests(gateway(), asked.text)
    expect(seen).toHaveLength(2)
    const messages = JSON.stringify(seen[1] && bodyOf(seen[1]).messages)
    expect(messages.split(`"${world.crm.slug}_add"`)).toHaveLength(2)
    expect(messages).toContain('added')
    expect(messages).not.toContain('approval')

    // Sends the decision again, in every form.
    for (const [, stores, again] of FORMS) {
      if (stores && !store) continue
      const repeated = { tools: asked.tools, ...again(asked, decision(asked)) }
      expect(await refusal(repeated)).toMatchObject({ status: 400, code: 'approval_used' })
    }
    expect(await world.server.calls('add')).toBe(before + 1)

    // The history goes on with what was decided in it, without results, as a client sends it.
    const output = response.output.map(({ output: _, ...item }) => item)
    const thanks = `Thanks. ${marker()}`
    const { response: next } = await call({
      ...{ tools: asked.tools, store },
      input: [...asked.history, decision(asked), ...output, { role: 'user', content: thanks }],
    })
    expect(next.output.map(({ type }) => type)).toEqual(['message'])
    expect(await world.server.calls('add')).toBe(before + 1)
    const [last] = await seenRequests(gateway(), thanks)
    expect(last?.body).toContain(store ? 'added' : 'The call was made.')
    expect(last?.body).not.toContain('needs the approval')
  })

  it('is for one call, however many come at once', async () => {
    const asked = await pending(way)
    const before = await world.server.calls('add')
    // Without a conversation, which one response at a time would have.
    const request = {
      ...{ tools: asked.tools, previous_response_id: asked.first.id, store: false },
      input: [decision(asked)],
    }
    const answers = await Promise.all(
      Array.from({ length: 4 }, () => postResponse(world.tenant.key, { model, ...request })),
    )
    const made = answers.filter(({ text }) => text.includes('"output":"added"'))
    expect(made).toHaveLength(1)
    for (const answer of answers) {
      if (answer !== made[0]) expect(answer.text).toMatch(/was used (already|for another call)/)
    }
    expect(await world.server.calls('add')).toBe(before + 1)
    // The record has the id of that call.
    const [claim] = await query(gateway(), 'select response_id, call_id from approval_claims where id = $1', [
      asked.request.id,
    ])
    const response = jsonOf(made[0] as { text: string; status: number })
    expect(claim?.response_id).toBe(response.id)
    const entries = await callEntries(
      gateway(),
      world.tenant,
      1,
      ({ record }) => record.id === claim?.call_id,
    )
    expect(entries).toMatchObject([{ record: { tool: `${world.crm.slug}_add`, status: 200 } }])
  })

  it('that is denied makes no call, and the model gets the denial', async () => {
    const asked = await pending(way, {}, [[say('Then not.')]])
    const before = await world.server.calls('add')
    const denied = decision(asked, false, { reason: 'Bob has left.' })
    const { response } = await call({
      ...{ tools: asked.tools, conversation: asked.first.conversation?.id, input: [denied] },
    })
    expect(response.output.map(({ type }) => type)).toEqual(['message'])
    expect(await world.server.calls('add')).toBe(before)
    const [, second] = await seenRequests(gateway(), asked.text)
    const messages = JSON.stringify(second && bodyOf(second).messages)
    expect(messages).toContain('The call was not made: the user denied it. Reason: Bob has left.')
    expect(messages).not.toContain('needs the approval')
  })
})

describe.each(openAiClients)('an approval by %s', (_, Client) => {
  const client = () => new Client({ apiKey: world.tenant.key, baseURL: openAiUrl(), maxRetries: 0 })
  const [way] = CORNER_WAYS.map(([, each]) => each) as [ResponseWay]

  it.each(['previous', 'history'])('has its call made (%s)', async (form) => {
    const script = await turnsScript(way.upstream, [
      [callTool(`${world.crm.slug}_add`, { text: 'Bob' })],
      [say('Added.')],
    ])
    const tools: OpenAI.Responses.Tool[] = [
      { type: 'mcp', server_label: world.crm.slug, require_approval: 'always' },
    ]
    const settings = { model: way.model, tools, store: form === 'previous' }
    const first = await client().responses.create({ ...settings, input: script })
    const request = first.output.find((item) => item.type === 'mcp_approval_request')
    expect(JSON.parse(request?.arguments ?? '')).toEqual({ text: 'Bob' })
    const approval: OpenAI.Responses.ResponseInputItem = {
      ...{ type: 'mcp_approval_response', approval_request_id: request?.id ?? '', approve: true },
    }
    const history = [{ role: 'user' as const, content: script }, ...first.output, approval]
    const next = {
      ...settings,
      ...(form === 'previous'
        ? { previous_response_id: first.id, input: [approval] }
        : { input: history as OpenAI.Responses.ResponseInput }),
    }
    const second = await client().responses.stream(next).finalResponse()
    expect(second.output).toMatchObject([
      { type: 'mcp_call', output: 'added', approval_request_id: request?.id },
      { type: 'message' },
    ])
    expect(second.output_text).toBe('Added.')
    expect(await failureOf(client().responses.create(next))).toMatchObject({
      status: 400,
      code: 'approval_used',
    })
  })
})

describe('an approval', () => {
  const [way] = RESPONSE_WAYS.map(([, each]) => each) as [ResponseWay]
  const refusal = async (body: Json, key = world.tenant.key) => {
    const answer = await postResponse(key, { model: way.model, ...body })
    return { status: answer.status, ...(jsonOf(answer).error as Json) }
  }

  it('takes a request with the members of the official type only', async () => {
    const asked = await pending(way, { store: false })
    const history = asked.history.map((item) => (item.type === 'message' ? item : official(item)))
    const { response } = await respond(world.tenant.key, {
      ...{ model: way.model, tools: asked.tools, store: false },
      input: [...history, decision(asked)],
    })
    expect(itemsOf(response, 'mcp_call')).toMatchObject([{ output: 'added' }])
  })

  it('has items of the official types in the form of Open Responses', async () => {
    const headers = { 'x-headgate-compatibility': 'open-responses' }
    const asked = await pending(way, {}, undefined, world, headers)
    const body = { conversation: asked.first.conversation?.id, input: [decision(asked)] }
    const request = { model: way.model, stream: true, tools: asked.tools, ...body }
    const { response } = await respond(world.tenant.key, request, { headers })
    expect(response.output.map(({ type }) => type)).toEqual(['mcp_call', 'message'])
  })

  it('is used once on a connection, on which nothing is stored', async () => {
    const { slug } = world.crm
    const before = await world.server.calls('add')
    const socket = await openResponseSocket(gateway(), world.tenant.key)
    const script = await turnsScript('chat', [[callTool(`${slug}_add`, { text: 'Bob' })], [say('Added.')]])
    const settings = { model: way.model, store: false, tools: [{ type: 'mcp', server_label: slug }] }
    const create = async (body: Json) => (await socket.create({ ...settings, ...body })).at(-1)
    const first = (await create({ input: script }))?.response as unknown as ToldResponse
    const approval = {
      ...{ type: 'mcp_approval_response', approval_request_id: first.output[0]?.id, approve: true },
    }
    const second = (await create({ previous_response_id: first.id, input: [approval] }))?.response
    expect(second?.output).toMatchObject([{ type: 'mcp_call', output: 'added' }, { type: 'message' }])
    const third = (await create({ previous_response_id: second?.id, input: 'Thanks.' }))?.response
    expect(third?.output).toMatchObject([{ type: 'message' }])
    expect(await create({ previous_response_id: third?.id, input: [approval] })).toMatchObject({
      error: { code: 'approval_used' },
    })
    expect(await world.server.calls('add')).toBe(before + 1)
    socket.close()
  })

  it('is used once by responses in the background', async () => {
    const asked = await pending(way)
    const before = await world.server.calls('add')
    const body = {
      ...{ model: way.model, tools: asked.tools, previous_response_id: asked.first.id, background: true },
      input: [decision(asked)],
    }
    const begun = await Promise.all([1, 2, 3].map(() => postResponse(world.tenant.key, body)))
    const ended = await Promise.all(
      begun
        .filter(({ status }) => status === 200)
        .map((answer) =>
          vi.waitFor(async () => {
            const path = `/v1/responses/${String(jsonOf(answer).id)}`
            const read = expectJson<ToldResponse>(await ask(world.tenant.key, 'GET', path))
            expect(read.status).not.toMatch(/^(queued|in_progress)$/)
            return JSON.stringify(read)
          }),
        ),
    )
    expect(ended.filter((text) => text.includes('"output":"added"'))).toHaveLength(1)
    expect(await refusal(body)).toMatchObject({ status: 400, code: 'approval_used' })
    expect(await world.server.calls('add')).toBe(before + 1)
  })

  it('is for the call, the caller and the tools that it was requested with', async () => {
    const asked = await pending(way, { store: false })
    const { tools } = asked
    const before = await world.server.calls('add')
    const none = { status: 400, message: expect.stringContaining('No approval request found') }
    const changed = (members: Json) => [asked.history[0], { ...asked.request, ...members }, decision(asked)]
    for (const members of [
      { arguments: '{"text":"Eve"}' },
      { name: 'find' },
      { server_label: 'another' },
      { id: `mcpr_${'0'.repeat(44)}` },
    ]) {
      expect(await refusal({ tools, store: false, input: changed(members) })).toMatchObject(none)
    }
    const { key } = await addKey(gateway(), world.tenant.base, await newUser())
    const copied = { store: false, input: [...asked.history, decision(asked)] }
    expect(await refusal({ tools, ...copied }, key)).toMatchObject(none)
    const twice = [...asked.history, decision(asked), decision(asked, false)]
    expect(await refusal({ tools, store: false, input: twice })).toMatchObject({
      status: 400,
      message: expect.stringContaining('decided twice'),
    })
    for (const others of [[], [{ type: 'mcp', server_label: world.crm.slug, allowed_tools: ['find'] }]]) {
      expect(await refusal({ tools: others, ...copied })).toMatchObject({
        status: 400,
        message: expect.stringContaining(`list the integration ${world.crm.slug} in tools`),
      })
    }
    expect(await world.server.calls('add')).toBe(before)
    // None of that has used it.
    const { response } = await respond(world.tenant.key, { model: way.model, tools, ...copied })
    expect(itemsOf(response, 'mcp_call')).toMatchObject([{ output: 'added' }])
  })

  it('can come after further turns, and each call that the model makes needs one', async () => {
    const { slug } = world.crm
    const asked = await pending(way, {}, [
      [say('It waits for you.')],
      [callTool(`${slug}_add`, { text: 'Bob' })],
      [say('Once is enough.')],
    ])
    const conversation = asked.first.conversation?.id
    const go = async (input: unknown) =>
      (await respond(world.tenant.key, { model: way.model, tools: asked.tools, conversation, input }))
        .response
    expect((await go(`What is it? ${asked.text}`)).output.map(({ type }) => type)).toEqual(['message'])
    const approved = await go([decision(asked)])
    expect(approved.output.map(({ type }) => type)).toEqual(['mcp_call', 'mcp_approval_request'])
    const denied = { ...decision(asked, false), approval_request_id: approved.output[1]?.id }
    expect((await go([denied])).output.map(({ type }) => type)).toEqual(['message'])
    const seen = await seenRequests(gateway(), asked.text)
    const contents = bodyOf(seen[2] as { body: string }).messages.map((message) => JSON.stringify(message))
    const place = (text: string) => contents.findIndex((each) => each.includes(text))
    expect(place('needs the approval')).toBeLessThan(place('What is it?'))
    expect(place('added')).toBeGreaterThan(place('It waits for you.'))
  })

  async function newUser(): Promise<string> {
    const { ask } = administrator(gateway())
    const email = `${marker()}@example.com`
    return (await ask<{ id: string }>('POST', `${world.tenant.base}/users`, { email, name: 'Other' })).id
  }
})
