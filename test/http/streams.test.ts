import { beforeAll, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { MODEL_ROUTES, type ModelRoute } from '../matrices/routes.ts'
import { readChunks } from './support/raw-socket.ts'
import { auditEntryOf } from './support/records.ts'
import { send } from './support/send.ts'
import { bearer, createTenant, type Tenant } from './support/tenant.ts'
import { registerScript } from './support/upstream.ts'

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
  it('ends as its protocol demands, once', async () => {
    for (const script of ['canned', 'long-stream tokens=300', 'split-frames']) {
      const { status, text, headers } = await stream(route, `script:${script}`)
      expect(status).toBe(200)
      expect(headers['content-type']).toMatch(/^text\/event-stream/)
      expect(text.endsWith(END[route.surface])).toBe(true)
      expect(text.split(END[route.surface])).toHaveLength(2)
    }
  })

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

  const interruptions = [
    ['mid-stream-cut', 'The upstream broke off its answer.', 'stream_cut'],
    ['mid-stream-end', 'The upstream ended its answer early.', 'stream_cut'],
  ] as const
  it.each(interruptions)('tells of %s, after every event that came before', async (script, message, flag) => {
    const answer = await stream(route, `script:${script}`)
    expect(answer.status).toBe(200)
    expect(answer.text.endsWith(failureOf(route, message))).toBe(true)
    // Three pieces of text came before it.
    expect(answer.text.match(/"(content|text)":"[^"]/g)).toHaveLength(3)
    const { record } = await auditEntryOf(gateway(), tenant, answer.headers['x-request-id'])
    expect(record).toMatchObject({ status: 200, errorCode: 'stream_error', provenance: 'estimated' })
    expect(record.flags).toContain(flag)
  })

  it('tells of an event in the middle that is not JSON', async () => {
    const [good = '', bad = ''] = [firstEvent(route), 'data: {"broken\n\n']
    const script = await registerScript(gateway(), [{ sse: [good, bad, good] }])
    const { text } = await stream(route, script)
    expect(text).toBe(good + failureOf(route, 'The upstream sent an event that is not JSON.'))
  })

  it('is written one event at a time', async () => {
    for (const script of ['canned', 'split-frames', 'mid-stream-cut', 'unknown-fields']) {
      const url = gateway().baseUrl + route.path
      const { head, chunks } = await readChunks(url, bearer(tenant.key), bodyOf(route, `script:${script}`))
      expect(head).toMatch(/^HTTP\/1\.1 200 /)
      expect(chunks.length).toBeGreaterThan(3)
      for (const chunk of chunks) {
        expect(chunk.endsWith('\n\n'), chunk).toBe(true)
        expect(chunk.slice(0, -2), chunk).not.toContain('\n\n')
      }
    }
  })

  it('says nothing of its length, and asks nobody on the way to hold it back', async () => {
    const { headers } = await stream(route, 'script:canned')
    expect(headers['content-length']).toBeUndefined()
    expect(headers['cache-control']).toBe('no-cache, no-transform')
    expect(headers['x-accel-buffering']).toBe('no')
    expect(headers['content-encoding']).toBeUndefined()
  })

  it('stays whole beside many others', async () => {
    const texts = await Promise.all(
      Array.from({ length: 20 }, (_, index) => stream(route, `script:long-stream tokens=${50 + index}`)),
    )
    texts.forEach(({ text }, index) => {
      expect(text.match(/ word/g)).toHaveLength(50 + index)
      expect(text.endsWith(END[route.surface])).toBe(true)
    })
  })
})

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
