import { createHash } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { send } from '../harness/send.ts'
import { administrator, bearer, createTenant, type Tenant, uniqueName } from '../harness/tenant.ts'
import { marker, seenRequest, seenRequests } from '../harness/upstream.ts'
import { MODEL_ROUTES, type ModelRoute } from '../matrices/routes.ts'
import { JsonText, randomSource } from './support/json-text.ts'

let tenant: Tenant
/** A model whose upstream has another name for it, by protocol. */
const renamed = { chat_completions: uniqueName('renamed'), messages: uniqueName('renamed') }
const UPSTREAM_MODEL = 'vendor/Modèle "1"'

beforeAll(async () => {
  tenant = await createTenant(gateway(), { organization: { user_rate_limit_per_minute: 100_000 } })
  const { ask } = administrator(gateway())
  for (const [surface, id] of Object.entries(renamed)) {
    const like = surface === 'messages' ? 'scripted-messages' : 'scripted-chat'
    const model = await ask<{ routes: Array<{ provider_id: string }> }>('GET', `/models/${like}`)
    const provider_id = model.routes[0]?.provider_id
    await ask('PUT', `/models/${id}`, {
      owned_by: 'test',
      context_window: 1_000,
      max_output_tokens: 1_000,
      prices: { input: 0, output: 0 },
      capabilities: ['completions', 'json_object'],
      routes: [{ provider_id, upstream_model: UPSTREAM_MODEL }],
    })
  }
})

/** Members that do not reach the upstream (interface, Chat completions and Messages). */
const REMOVED: Record<ModelRoute['surface'], string[]> = {
  chat_completions: ['metadata', 'litellm_metadata', 'proxy_server_request'],
  messages: ['metadata', 'litellm_metadata', 'proxy_server_request', 'cache_control'],
}

interface Example {
  sent: string
  expected: string
}

/** The members of a valid request, as JSON text. @param text stands in the user's message. */
function requiredMembers(json: JsonText, route: ModelRoute, text: string): string[] {
  const content = JSON.stringify(`${text} script:canned`)
  const conversation =
    route.name === 'completions'
      ? json.member('"prompt"', content)
      : json.member(
          '"messages"',
          `[{${json.member('"role"', '"user"')},${json.member('"content"', content)}}]`,
        )
  const maximum = json.member(json.pick(['"max_tokens"', '"m\\u0061x_tokens"']), json.pick(['5', '100']))
  return [
    json.member('"model"', JSON.stringify(route.model)),
    conversation,
    // Endpoints that generate nothing do not forward it.
    ...(route.generates ? [maximum] : []),
  ]
}

const unknownMembers = (json: JsonText): string[] =>
  json.pick([[0], [0, 1], [0, 1, 2, 3, 4]]).map((index) => json.member(`"x_${index}"`, json.value()))

/** A body that needs no edit: spaces and all have to arrive as they were sent. */
function untouched(json: JsonText, route: ModelRoute, text: string): Example {
  const stream = route.generates && route.surface === 'messages' ? json.pick(['true', 'false']) : 'false'
  const streamed = route.generates ? [`"stream":${stream}`] : []
  const members = [...requiredMembers(json, route, text), ...unknownMembers(json), ...streamed]
  const sent = json
    .shuffle(members)
    .map((member) => json.space() + member + json.space())
    .join(',')
  const body = `${json.space()}{${sent}}${json.space()}`
  return { sent: body, expected: body }
}

/** A body with members to be removed. Spaces stand inside members only, so that what is left is unambiguous. */
function withRemovals(json: JsonText, route: ModelRoute, text: string): Example {
  const removed = REMOVED[route.surface]
    .filter((_, index) => index === 0 || json.pick([true, false]))
    .map((name) => ({
      text: json.member(json.pick([`"${name}"`, spelled(name)]), json.value()),
      kept: false,
    }))
  const kept = [...requiredMembers(json, route, text), ...unknownMembers(json)].map((text) => ({
    text,
    kept: true,
  }))
  const members = json.shuffle([...kept, ...removed])
  const join = (list: typeof members) => `{${list.map((member) => member.text).join(',')}}`
  return { sent: join(members), expected: join(members.filter((member) => member.kept)) }
}

/** The name with an escape: every reader treats it as the same member. */
const spelled = (name: string) => `"\\u00${name.charCodeAt(0).toString(16)}${name.slice(1)}"`

const arrived = (text: string) => seenRequest(gateway(), text)

/** Sends a body that holds this text and expects what has to reach the upstream. */
async function expectArrival(route: ModelRoute, text: string, { sent, expected }: Example): Promise<void> {
  await expectSuccess(route, sent)
  const seen = await arrived(text)
  // The recording holds the beginning of the body, the digest is of all.
  expect(seen.body.slice(0, 1_000)).toBe(expected.slice(0, 1_000))
  expect(seen.bodySha256).toBe(createHash('sha256').update(expected).digest('hex'))
}

/** Sends many bodies with one text, and looks up the upstream's requests together. */
async function expectArrivals(route: ModelRoute, text: string, examples: Example[]): Promise<void> {
  for (const { sent } of examples) await expectSuccess(route, sent)
  const seen = await seenRequests(gateway(), text)
  expect(seen.map(({ body }) => body)).toEqual(examples.map(({ expected }) => expected))
}

async function expectSuccess(route: ModelRoute, body: string): Promise<void> {
  const url = gateway().baseUrl + route.path
  const answer = await send(url, { method: 'POST', headers: bearer(tenant.key), body })
  expect(answer.status, `${body.slice(0, 2_000)}\n${answer.text}`).toBe(200)
}

/** Edits of many more bodies: request-edits.test.ts. */
const SEEDS = Array.from({ length: 8 }, (_, index) => index + 1)

describe.each(MODEL_ROUTES.map((route) => [route.name, route] as const))('%s', (_, route) => {
  it.concurrent('sends a body on byte for byte', async () => {
    const text = marker()
    const examples = SEEDS.map((seed) => untouched(new JsonText(randomSource(seed)), route, text))
    await expectArrivals(route, text, examples)
  })

  it.concurrent('cuts out the members that stay here, and nothing else', async () => {
    const text = marker()
    const examples = SEEDS.map((seed) => withRemovals(new JsonText(randomSource(1_000 + seed)), route, text))
    await expectArrivals(route, text, examples)
  })

  it('keeps members of these names inside others', async () => {
    const text = marker()
    const inner =
      '{"metadata":{"litellm_metadata":1,"proxy_server_request":2,"cache_control":{"type":"ephemeral"}}}'
    const body = JSON.stringify(route.request(`${text} script:canned`)).replace('{', `{"x_extra":${inner},`)
    await expectArrival(route, text, { sent: body, expected: body })
  })

  it("writes the upstream's name of the model in place of ours", async () => {
    const text = marker()
    const id = renamed[route.surface]
    const json = new JsonText(randomSource(7))
    for (const space of ['', '\n  ']) {
      const own = `${text}${space === '' ? 'a' : 'b'}`
      const sent = JSON.stringify(
        route.request(`${own} script:canned`, { model: id, x: json.value() }),
      ).replace(`"${id}"`, `${space}"${id}"${space}`)
      const expected = sent.replace(`"${id}"`, JSON.stringify(UPSTREAM_MODEL))
      await expectArrival(route, own, { sent, expected })
    }
  })

  it('sends 1 MB and more in pieces that come to the same bytes', async () => {
    const text = marker()
    const first = JSON.stringify(route.request(`${text} script:canned`)).slice(0, -1)
    const removed = `,"metadata":"${'m'.repeat(10_000)}"`
    const last = `,"x":"${'é'.repeat(700_000)}"}`
    await expectArrival(route, text, { sent: first + removed + last, expected: first + last })
  })
})

describe('count tokens', () => {
  it('takes max_tokens and stream as the interface does, and sends neither to a counter that knows neither', async () => {
    const text = marker()
    const route = MODEL_ROUTES.find(({ name }) => name === 'count tokens')
    if (!route) throw new Error('there is no such route')
    const body = JSON.stringify(route.request(text))
    await expectArrival(route, text, {
      sent: body.replace('{', '{"max_tokens":5,"stream":false,'),
      expected: body,
    })
  })
})

const chatRoutes = MODEL_ROUTES.filter(({ surface }) => surface === 'chat_completions')

describe.each(chatRoutes.map((route) => [route.name, route] as const))('a stream of %s', (_, route) => {
  const stream = async (members: string): Promise<{ rest: string; body: string }> => {
    const text = marker()
    const rest = JSON.stringify(route.request(`${text} script:canned`)).slice(1)
    const sent = `{${members},${rest}`
    await expectSuccess(route, sent)
    return { rest, body: (await arrived(text)).body }
  }

  it('asks for usage where the caller did not, and changes nothing else', async () => {
    const added = '"stream_options":{"include_usage":true},'
    for (const members of ['"stream":true', '"x":[1, 2],"stream" : true', '"metadata":{},"stream":true']) {
      const { rest, body } = await stream(members)
      expect(body.split(added)).toHaveLength(2)
      expect(body.replace(added, '')).toBe(`{${members.replace('"metadata":{},', '')},${rest}`)
    }
  })

  it.each([
    ['{"include_usage":false}', '{"include_usage":true}'],
    ['{"include_usage": null , "x":1.0}', '{"include_usage": true , "x":1.0}'],
    ['null', '{"include_usage":true}'],
    ['{}', '{"include_usage":true}'],
    ['{ "x" : "é" }', '{"include_usage":true, "x" : "é" }'],
    ['{"include_usage":true}', '{"include_usage":true}'],
    ['{ "x": 1e2, "include_usage" : true }', '{ "x": 1e2, "include_usage" : true }'],
  ])('turns stream_options %s into %s', async (options, expected) => {
    const { rest, body } = await stream(`"stream":true,"stream_options": ${options}`)
    expect(body).toBe(`{"stream":true,"stream_options": ${expected},${rest}`)
  })

  it('leaves stream_options alone where nothing is streamed', async () => {
    const { rest, body } = await stream('"stream":false,"stream_options": null')
    expect(body).toBe(`{"stream":false,"stream_options": null,${rest}`)
  })
})
