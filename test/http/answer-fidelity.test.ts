import { beforeAll, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { send } from '../harness/send.ts'
import { administrator, bearer, createTenant, type Tenant, uniqueName } from '../harness/tenant.ts'
import { registerScript } from '../harness/upstream.ts'
import { MODEL_ROUTES, type ModelRoute } from '../matrices/routes.ts'
import { JsonText, randomSource } from './support/json-text.ts'

let tenant: Tenant

beforeAll(async () => {
  tenant = await createTenant(gateway(), { organization: { user_rate_limit_per_minute: 100_000 } })
})

type Json = Record<string, unknown>

function call(route: ModelRoute, text: string, more: Json = {}) {
  const body = JSON.stringify(route.request(text, more))
  return send(gateway().baseUrl + route.path, { method: 'POST', headers: bearer(tenant.key), body })
}

/** Makes the call at the upstream itself. */
function callDirectly(route: ModelRoute, text: string, more: Json = {}) {
  const headers = { authorization: 'Bearer x', 'x-api-key': 'x', 'anthropic-version': '2023-06-01' }
  const body = JSON.stringify(route.request(text, more))
  return send(gateway().standIns.modelUpstream + route.path, { method: 'POST', headers, body })
}

/** Ids and times of an answer differ from call to call. */
const settled = (text: string) =>
  text
    .replace(/\b(chatcmpl-|cmpl-|msg_|toolu_|req_)[0-9a-z]+/g, '$1id')
    .replace(/"created":\d+/g, '"created":0')

const framesOf = (text: string) => text.split(/(?<=\n\n|\r\n\r\n|\r\r)/)
const USAGE = { stream: true, stream_options: { include_usage: true } }
const withUsage = (route: ModelRoute): Json => (route.surface === 'messages' ? { stream: true } : USAGE)

const generating = MODEL_ROUTES.filter(({ generates }) => generates).map(
  (route) => [route.name, route] as const,
)
const chatRoutes = generating.filter(([, { surface }]) => surface === 'chat_completions')

describe.each(generating)('%s', (_, route) => {
  // A completion passes the same way as a chat, whose usage alone stands elsewhere.
  const isCompletion = route.name === 'completions'

  it('hands on whole answers byte for byte', async () => {
    for (let seed = 1; seed <= (isCompletion ? 5 : 10); seed += 1) {
      const json = new JsonText(randomSource(seed))
      const members = ['"id"', '"usage"', '"choices"', '"content"', '"x"', '"error"'].map((name) =>
        json.member(name, json.value()),
      )
      const body = `${json.space()}{${json.shuffle(members).join(`,${json.space()}`)}}${json.space()}`
      const script = await registerScript(gateway(), [
        { status: 200, headers: { 'content-type': 'application/json; x=y' }, body },
      ])
      const answer = await call(route, script)
      expect(answer.text).toBe(body)
      expect(answer.headers['content-type']).toBe('application/json; x=y')
    }
  })

  it.each(['canned', 'refusal', 'fenced-json'])('answers %s as the upstream does', async (script) => {
    const direct = await callDirectly(route, `script:${script}`)
    expect(settled((await call(route, `script:${script}`)).text)).toBe(settled(direct.text))
  })

  const streams = [
    'canned',
    'split-frames',
    'crlf',
    'unknown-fields',
    'usage-on-last-chunk',
    'refusal',
    'large-frame bytes=200000',
    'long-stream tokens=500',
  ]
  it.each(isCompletion ? ['canned', 'usage-on-last-chunk'] : streams)(
    'streams %s as the upstream does',
    async (script) => {
      const more = withUsage(route)
      const direct = await callDirectly(route, `script:${script}`, more)
      const answer = await call(route, `script:${script}`, more)
      expect(settled(answer.text)).toBe(settled(permitted(direct.text)))
      expect(answer.headers['content-type']).toBe('text/event-stream; charset=utf-8')
      expect(answer.headers['cache-control']).toBe('no-cache, no-transform')
    },
  )

  it('streams events with unknown members byte for byte', async () => {
    for (let seed = 1; seed <= 5; seed += 1) {
      const sse = oddFrames(new JsonText(randomSource(seed), ['', ' ', '\t']), route)
      const answer = await call(route, await registerScript(gateway(), [{ sse }]), withUsage(route))
      expect(answer.text).toBe(sse.join(''))
    }
  })
})

/** Parts that may be missing in a stream with usage: comments, and usage that is null. */
const permitted = (text: string) =>
  framesOf(text)
    .filter((frame) => /^data:/m.test(frame))
    .map((frame) => frame.replace(/,"usage":null(?=\}\s*$)/, ''))
    .join('')

/** Events of a stream, each with members in any order and of any form. */
function oddFrames(json: JsonText, route: ModelRoute): string[] {
  const data = (...members: string[]) => {
    const all = json.shuffle([...members, json.member('"x"', json.value()), json.member('"y"', json.value())])
    return `data:${json.pick(['', ' '])}{${all.join(`,${json.pick(['', ' '])}`)}}`
  }
  if (route.surface === 'messages') {
    const event = (type: string, ...members: string[]) =>
      `event: ${type}\n${data(`"type":"${type}"`, ...members)}\n\n`
    return [
      event('message_start', `"message":{"usage":{"input_tokens":3,"output_tokens":1},"x":${json.value()}}`),
      event('ping'),
      event('content_block_delta', '"index":0', `"delta":{"type":"odd_delta","text":${json.value()}}`),
      event('vendor_event'),
      event('message_delta', '"usage":{"output_tokens":5}'),
      event('message_stop'),
    ]
  }
  const end = json.pick(['\n', '\r\n'])
  return [
    `${data('"choices":[{"index":0,"delta":{"content":"a"}}]')}${end}${end}`,
    `id: 7${end}event: vendor.chunk${end}${data(`"choices":[{"index":0,"delta":${json.value()}}]`)}${end}${end}`,
    `${data('"choices":[{"index":0,"finish_reason":"stop"}]')}${end}${end}`,
    `${data('"choices":[]', '"usage":{"prompt_tokens":3,"completion_tokens":5}')}${end}${end}`,
    'data: [DONE]\n\n',
  ]
}

describe.each(chatRoutes)('usage on a stream of %s', (_, route) => {
  it('is left out where nobody asked for it, as if the upstream had not been asked', async () => {
    for (const more of [{ stream: true }, { stream: true, stream_options: { include_usage: false } }]) {
      const direct = await callDirectly(route, 'script:canned', { stream: true })
      const answer = await call(route, 'script:canned', more)
      expect(settled(answer.text)).toBe(settled(direct.text))
      expect(answer.text).not.toContain('usage')
    }
  })

  it('comes on one chunk without choices before the end where it was asked for', async () => {
    const frames = framesOf((await call(route, 'script:canned', USAGE)).text).filter((frame) => frame !== '')
    const last = JSON.parse(frames.at(-2)?.slice('data: '.length) ?? '')
    expect(last.choices).toEqual([])
    expect(last.usage).toMatchObject({ prompt_tokens: 12, total_tokens: expect.any(Number) })
    expect(frames.at(-1)).toBe('data: [DONE]\n\n')
    for (const frame of frames.slice(0, -2)) expect(frame).not.toContain('"usage"')
  })

  if (route.name === 'completions') return

  const first = '"id":"a"'
  const choice = '"choices":[{"index":0,"delta":{"content":"\\"usage\\":null"}}]'
  it.each([
    [`{${first},${choice},"usage":null}`, `{${first},${choice}}`],
    [`{${first},"usage":null,${choice}}`, `{${first},${choice}}`],
    [`{"usage":null,${first},${choice}}`, `{${first},${choice}}`],
    [`{${first}, "us\\u0061ge" : null , ${choice}}`, `{${first}, ${choice}}`],
    [`{${choice},"x":{"usage":null}}`, `{${choice},"x":{"usage":null}}`],
    ['{"usage":null}', '{}'],
  ])('turns %s into %s', async (sent, expected) => {
    const finish = 'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
    const script = await registerScript(gateway(), [{ sse: [`data: ${sent}\n\n`, finish] }])
    for (const more of [{ stream: true }, USAGE]) {
      expect((await call(route, script, more)).text).toBe(`data: ${expected}\n\n${finish}`)
    }
  })

  it('is cut out of a chunk with choices where nobody asked for it', async () => {
    const frame = (usage: string) => `data: {"choices":[{"index":0,"finish_reason":"stop"}]${usage}}\n\n`
    const usage = ',"usage":{"prompt_tokens":1,"completion_tokens":2}'
    const script = await registerScript(gateway(), [{ sse: [frame(usage), 'data: [DONE]\n\n'] }])
    expect((await call(route, script, { stream: true })).text).toBe(`${frame('')}data: [DONE]\n\n`)
    expect((await call(route, script, USAGE)).text).toBe(`${frame(usage)}data: [DONE]\n\n`)
  })

  it('ends with [DONE] exactly, whatever the upstream makes of it', async () => {
    const chunk = 'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
    for (const ending of ['data: [DONE]\n\n', 'data:[DONE]\n\n', 'data: [DONE] \n\n', '']) {
      const script = await registerScript(gateway(), [{ sse: [chunk, ending] }])
      // A stream that passes unread may have it as the upstream sent it, once: later streams of the provider are read
      // first.
      await call(route, script, USAGE)
      const { text } = await call(route, script, USAGE)
      expect(text.replace('data:[', 'data: [')).toBe(`${chunk}data: [DONE]\n\n`)
    }
  })
})

describe.each(generating)('the id of the model on %s', (_, route) => {
  it("is ours where the upstream's differs, and nothing else changes", async () => {
    const { ask } = administrator(gateway())
    const like = await ask<{ routes: Array<{ provider_id: string }> }>('GET', `/models/${route.model}`)
    const model = uniqueName('renamed')
    await ask('PUT', `/models/${model}`, {
      owned_by: 'test',
      context_window: 1_000,
      max_output_tokens: 1_000,
      prices: { input: 0, output: 0 },
      capabilities: ['completions'],
      routes: [{ provider_id: like.routes[0]?.provider_id, upstream_model: 'upstream-name' }],
    })
    for (const more of [{}, withUsage(route)]) {
      const direct = await callDirectly(route, 'script:canned', { model: 'upstream-name', ...more })
      const answer = await call(route, 'script:canned', { model, ...more })
      expect(answer.text).not.toContain('upstream-name')
      const expected = permitted(direct.text) || direct.text
      expect(settled(answer.text)).toBe(settled(expected.replaceAll('"upstream-name"', `"${model}"`)))
    }
  })
})
