import { beforeAll, describe, expect, it } from 'vitest'
import { gateway, upstreamControl } from '../harness/gateway.ts'
import { openStream } from '../harness/open-stream.ts'
import { send } from '../harness/send.ts'
import { bearer, createTenant, type Tenant, uniqueName } from '../harness/tenant.ts'
import { registerScript } from '../harness/upstream.ts'
import { MODEL_ROUTES, type ModelRoute } from '../matrices/routes.ts'

let tenant: Tenant

beforeAll(async () => {
  tenant = await createTenant(gateway())
})

const bodyOf = (route: ModelRoute, text: string) => JSON.stringify(route.request(text, { stream: true }))

function stream(route: ModelRoute, text: string) {
  const body = bodyOf(route, text)
  return send(gateway().baseUrl + route.path, { method: 'POST', headers: bearer(tenant.key), body })
}

/** How a failure after the first event is told (interface, Events). */
function failureOf(route: ModelRoute, message: string): string {
  const inner = { message, type: 'server_error', code: 'stream_error' }
  return route.surface === 'messages'
    ? `event: error\ndata: ${JSON.stringify({ type: 'error', error: { type: 'api_error', message } })}\n\n`
    : `event: error\ndata: ${JSON.stringify({ error: inner })}\n\ndata: [DONE]\n\n`
}

const END = {
  chat_completions: 'data: [DONE]\n\n',
  messages: 'event: message_stop\ndata: {"type":"message_stop"}\n\n',
}

const generating = MODEL_ROUTES.filter(({ generates }) => generates).map(
  (route) => [route.name, route] as const,
)

describe.each(generating)('a stream of %s', (_, route) => {
  it("tells an error in the middle in the caller's words for it", async () => {
    const { status, text } = await stream(route, 'script:mid-stream-error')
    expect(status).toBe(200)
    if (route.surface === 'messages') {
      const error = {
        type: 'error',
        error: { type: 'overloaded_error', message: 'Overloaded' },
        request_id: null,
      }
      expect(text.endsWith(`event: error\ndata: ${JSON.stringify(error)}\n\n`)).toBe(true)
    } else {
      const message = 'The server had an error while processing your request. Sorry about that!'
      expect(text.endsWith(failureOf(route, message))).toBe(true)
    }
  })

  it('tells of an event in the middle that is not JSON', async () => {
    const [good = '', bad = ''] = [firstEvent(route), 'data: {"broken\n\n']
    const script = await registerScript(gateway(), [{ sse: [good, bad, good] }])
    const { text } = await stream(route, script)
    // Where nothing has to be changed, events leave before they are read.
    // A provider that echoed a credential to another test has its streams read before they leave.
    const left = route.surface === 'messages' ? [good + bad + good, good] : [good]
    const failure = failureOf(route, 'The upstream sent an event that is not JSON.')
    expect(left.map((events) => events + failure)).toContain(text)
  })

  it('hands on each event when the upstream has sent it, and not later', async () => {
    const [first, second, third] = completeStream(route)
    const signals = [uniqueName('second'), uniqueName('third')] as const
    const script = await registerScript(gateway(), [
      { sse: [first] },
      { waitForSignal: signals[0] },
      { sse: [second] },
      { waitForSignal: signals[1] },
      { sse: [third] },
    ])
    const more = {
      stream: true,
      ...(route.surface !== 'messages' && { stream_options: { include_usage: true } }),
    }
    const body = JSON.stringify(route.request(script, more))
    const open = await openStream(gateway().baseUrl + route.path, bearer(tenant.key), body)
    expect(await open.until((text) => text.length >= first.length)).toBe(first)
    await upstreamControl(gateway()).release(signals[0])
    expect(await open.until((text) => text.length > first.length)).toBe(first + second)
    await upstreamControl(gateway()).release(signals[1])
    expect(await open.end()).toBe(first + second + third)
  })
})

/** A stream of three events, none of which has to be changed where usage is asked for. */
const completeStream = (route: ModelRoute): [string, string, string] =>
  route.surface === 'messages'
    ? [
        firstEvent(route),
        'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}\n\n',
        END.messages,
      ]
    : [
        firstEvent(route),
        'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n',
        END.chat_completions,
      ]

const firstEvent = (route: ModelRoute) =>
  route.surface === 'messages'
    ? 'event: message_start\ndata: {"type":"message_start","message":{}}\n\n'
    : 'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n'

describe('a stream that its caller did not ask for', () => {
  it('is handed on as a stream', async () => {
    const route = MODEL_ROUTES[0] as ModelRoute
    const sse = [
      firstEvent(route),
      'data: {"choices":[{"index":0,"finish_reason":"stop"}]}\n\n',
      'data: [DONE]\n\n',
    ]
    const body = JSON.stringify(route.request(await registerScript(gateway(), [{ sse }])))
    const url = gateway().baseUrl + route.path
    const answer = await send(url, { method: 'POST', headers: bearer(tenant.key), body })
    expect(answer.text).toBe(sse.join(''))
  })
})
