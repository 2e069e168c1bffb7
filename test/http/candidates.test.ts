import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { type Edge, startEdge } from '../../scripts/local/edge.ts'
import { gateway } from '../harness/gateway.ts'
import { beginRequest } from '../harness/open-stream.ts'
import { auditEntries, settledCredits } from '../harness/records.ts'
import {
  ANSWER_COST,
  answered,
  callRouted,
  createRoutedModel,
  type Dialect,
  failed,
  inTurn,
  KINDS,
  type RoutedModel,
  recordedCall,
  routedRequest,
} from '../harness/routed-model.ts'
import { jsonOf } from '../harness/send.ts'
import { bearer, createTenant, type Tenant } from '../harness/tenant.ts'
import { type ScriptStep, seenRequests } from '../harness/upstream.ts'

let tenant: Tenant
let edge: Edge

beforeAll(async () => {
  edge = await startEdge(gateway().baseUrl)
  tenant = await createTenant(gateway())
})
afterAll(() => edge?.close())

const twoRoutes = (dialect: Dialect): Promise<RoutedModel> =>
  createRoutedModel(gateway(), [KINDS[dialect], KINDS[dialect]])

async function call(dialect: Dialect, model: RoutedModel, script: string, more: object = {}, owner = tenant) {
  const answer = await callRouted(gateway(), owner, routedRequest(dialect, model, script, more))
  return { answer, ...(await recordedCall(gateway(), owner, model, answer)) }
}

/**
 * Which statuses go on depends neither on the protocol nor on streaming: one form tries all, the others some. How routes are
 * tried in turn does not depend on them either: two forms, which have both protocols, streamed and not, run those tests.
 */
const ALL = {
  going: [401, 402, 403, 404, 408, 409, 424, 429, 500, 503, 529],
  final: [400, 405, 413, 422],
}
const SOME = { going: [529], final: [400] }

/** Answers without content, in the forms of each protocol, streamed and whole. */
const READ_APART = new Set(['an empty answer', 'an error as its first event', 'JSON that ends early'])

const FORMS = [
  ['chat', false, ALL],
  ['chat', true, SOME],
  ['messages', false, SOME],
  ['messages', true, SOME],
] as const

describe.each(FORMS)('%s, stream %s, with two routes', (dialect, stream, statuses) => {
  const good = answered(dialect, 'from the second', stream)
  const isCorner = stream === (dialect === 'messages')
  /** For calls that leave no trace in the memory of routes: no `Retry-After`, no connection that fails. */
  let shared: RoutedModel
  beforeAll(async () => {
    shared = await twoRoutes(dialect)
  })

  it.concurrent.each(statuses.going)(
    'goes on to the next after %i, and tells nothing of it',
    async (status) => {
      const script = await inTurn(gateway(), failed(status), good)
      // A provider that refused the gateway, or has no such model, is tried last by the next calls.
      const model = status <= 404 ? await twoRoutes(dialect) : shared
      const { answer, attempts, record } = await call(dialect, model, script, { stream })
      expect(answer.status).toBe(200)
      expect(answer.text).toContain('from the second')
      expect(answer.text).not.toContain('error')
      expect(attempts).toEqual([`0 ${status}`, '1 200'])
      expect(record).toMatchObject({ provenance: 'reported', cost: ANSWER_COST })
      const seen = await seenRequests(gateway(), script)
      expect(seen.map(({ body }) => JSON.parse(body).model.slice(-1))).toEqual(['0', '1'])
    },
  )

  it.concurrent.each(statuses.final)('forwards %i, which is about the request', async (status) => {
    const script = await inTurn(gateway(), failed(status, ` {"no": "${status}"}`), good)
    const { answer, attempts, record } = await call(dialect, shared, script, { stream })
    expect(answer.status).toBe(status)
    const envelope = { type: 'error', error: { message: `The upstream answered with status ${status}.` } }
    if (dialect === 'messages') expect(jsonOf(answer)).toMatchObject(envelope)
    else expect(answer.text).toBe(` {"no": "${status}"}`)
    expect(attempts).toEqual([`0 ${status}`])
    expect(record).toMatchObject({ usage: null, cost: 0 })
  })

  const head = stream ? { 'content-type': 'text/event-stream' } : { 'content-type': 'application/json' }
  const nothings: Array<[name: string, steps: ScriptStep[], attempt: string]> = [
    ['a connection that is reset', [{ destroy: true }], '0 unreachable'],
    ['a redirect', [{ status: 302, headers: { location: '/x' }, body: '' }], '0 redirected'],
    [
      'an empty answer',
      [{ headers: head, body: '' }],
      stream ? '0 200 stream_empty' : '0 200 unusable_answer',
    ],
    ['a 204', [{ status: 204 }, { end: true }], '0 204 unusable_answer'],
    ['a page', [{ headers: { 'content-type': 'text/html' }, body: '<p>?' }], '0 200 unusable_answer'],
    ...((stream
      ? [
          ['comments alone', [{ headers: head }, { sse: [': hi\n\n'] }, { end: true }], '0 200 stream_empty'],
          [
            'a stream that breaks off',
            [{ headers: head }, { chunk: 'da' }, { destroy: true }],
            '0 200 stream_cut',
          ],
          [
            'an error as its first event',
            [
              { headers: head },
              {
                sse: [
                  'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"x"}}\n\n',
                ],
              },
              { end: true },
            ],
            '0 200 stream_error',
          ],
          [
            'an event that is not JSON',
            [{ headers: head }, { sse: ['data: {"x\n\n'] }, { end: true }],
            '0 200 stream_error',
          ],
        ]
      : [
          [
            'JSON that ends early',
            [{ headers: head, body: '{"id":"x","choices":[' }],
            '0 200 unusable_answer',
          ],
        ]) as Array<[string, ScriptStep[], string]>),
  ]
  // The provider's protocol and form decide which answers are empty; all are then treated alike.
  it.concurrent.each(isCorner ? nothings : nothings.filter(([name]) => READ_APART.has(name)))(
    'goes on to the next after %s',
    async (_name, steps, attempt) => {
      const script = await inTurn(gateway(), steps, good)
      const model = attempt.endsWith('unreachable') ? await twoRoutes(dialect) : shared
      const { answer, attempts, record } = await call(dialect, model, script, { stream })
      expect(answer.status, answer.text).toBe(200)
      expect(answer.text).toContain('from the second')
      expect(attempts).toEqual([attempt, '1 200'])
      expect(record).toMatchObject({ provenance: 'reported', cost: ANSWER_COST })
    },
  )

  it.runIf(isCorner)('returns the most useful error of an upstream when all fail', async () => {
    const busy = failed(429, ' {"busy": 1}', { 'retry-after': '30' })
    const broken = failed(500, '<h1>500</h1>', { 'content-type': 'text/html' })
    const ours = failed(401, '{"credential":"refused"}')
    const gone: ScriptStep[] = [{ destroy: true }]
    const zipped: ScriptStep[] = [
      { status: 503, headers: { 'content-type': 'text/plain', 'content-encoding': 'gzip' } },
      { chunkBase64: gzipSync('zipped').toString('base64') },
      { end: true },
    ]
    // failover.test.ts tests the choice for more combinations.
    const cases: Array<[first: ScriptStep[], second: ScriptStep[], status: number, body: string]> = [
      [broken, busy, 429, ' {"busy": 1}'],
      [ours, broken, 500, '<h1>500</h1>'],
      [gone, ours, 401, '{"credential":"refused"}'],
      [zipped, gone, 503, 'zipped'],
    ]
    for (const [first, second, status, body] of cases) {
      const model = [first, second].some((steps) => steps === gone || steps === busy)
        ? await twoRoutes(dialect)
        : shared
      const script = await inTurn(gateway(), first, second)
      const { answer, attempts, record } = await call(dialect, model, script, { stream })
      expect(attempts).toHaveLength(2)
      if (dialect === 'chat') {
        expect({ status: answer.status, text: answer.text }).toEqual({ status, text: body })
        expect(record).toMatchObject({ status, errorCode: 'upstream_error', cost: 0 })
      } else {
        // Messages has an envelope of its own, and no refusal of the gateway's credential.
        const message = status === 401 ? /Your API key is not the cause/ : new RegExp(`status ${status}`)
        expect(answer.status).toBe(status === 401 ? 500 : status)
        expect(jsonOf(answer)).toMatchObject({
          type: 'error',
          error: { message: expect.stringMatching(message) },
        })
        expect(record).toMatchObject({ status: answer.status, cost: 0 })
      }
    }
    const script = await inTurn(gateway(), gone)
    const { answer, attempts } = await call(dialect, await twoRoutes(dialect), script, { stream })
    expect(answer.status).toBe(502)
    expect(attempts).toEqual(['0 unreachable', '1 unreachable'])
  })

  it.runIf(isCorner)('waits for a route with a short Retry-After, and tries it once more', async () => {
    const moment = (milliseconds: number) => failed(429, '{}', { 'retry-after-ms': String(milliseconds) })
    const script = await inTurn(gateway(), moment(900), moment(300), good)
    const startedAt = Date.now()
    const { answer, attempts } = await call(dialect, await twoRoutes(dialect), script, { stream })
    expect(answer.status).toBe(200)
    expect(Date.now() - startedAt).toBeGreaterThanOrEqual(300)
    expect(attempts).toEqual(['0 429', '1 429', '1 200'])
    const again = await inTurn(gateway(), moment(100))
    const twice = await call(dialect, await twoRoutes(dialect), again, { stream })
    expect(twice.answer.status).toBe(429)
    expect(twice.attempts).toHaveLength(3)
  })

  it.runIf(isCorner)('does not try a route with a longer Retry-After until then', async () => {
    const model = await twoRoutes(dialect)
    const wait = failed(429, '{}', { 'retry-after': '20' })
    const first = await call(dialect, model, await inTurn(gateway(), wait, good), { stream })
    expect(first.attempts).toEqual(['0 429', '1 200'])
    const second = await call(dialect, model, await inTurn(gateway(), good), { stream })
    expect(second.attempts).toEqual(['1 200'])
    const broken = await call(dialect, model, await inTurn(gateway(), failed(500)), { stream })
    expect(broken.attempts).toEqual(['1 500'])
    // No other route answers, so this one is tried before its wait ends: better than no answer.
    const alone = await call(dialect, model, await inTurn(gateway(), [{ destroy: true }], good), { stream })
    expect(alone.attempts).toEqual(['1 unreachable', '0 200'])
  })

  it.runIf(isCorner)('does not repeat anything for a model with one route', async () => {
    const model = await createRoutedModel(gateway(), [KINDS[dialect]])
    for (const steps of [failed(429, '{}', { 'retry-after-ms': '50' }), failed(500), failed(401)]) {
      const script = await inTurn(gateway(), steps, good)
      const { answer, attempts } = await call(dialect, model, script, { stream })
      expect(answer.status).not.toBe(200)
      expect(attempts).toHaveLength(1)
    }
  })
})

describe.each(['chat', 'messages'] as const)('%s', (dialect) => {
  it('does not go on once an event has reached the caller', async () => {
    const whole = answered(dialect, 'the beginning', true)
    const sse = (whole[1] as { sse: string[] }).sse.slice(0, 3)
    const cut = [
      whole[0],
      { sse: sse.slice(0, dialect === 'chat' ? 1 : 3) },
      { destroy: true },
    ] as ScriptStep[]
    const script = await inTurn(gateway(), cut, answered(dialect, 'from the second', true))
    const { answer, attempts, record } = await call(dialect, await twoRoutes(dialect), script, {
      stream: true,
    })
    expect(answer.status).toBe(200)
    expect(answer.text).toContain('the beginning')
    expect(answer.text).toContain('event: error')
    expect(answer.text).not.toContain('from the second')
    expect(attempts).toEqual(['0 200'])
    expect(record.flags).toContain('stream_cut')
  })

  it('charges once for an attempt that an upstream may charge for', async () => {
    const own = await createTenant(gateway())
    const cut: ScriptStep[] = [
      { headers: { 'content-type': 'application/json' } },
      { chunk: '{"id":' },
      { destroy: true },
    ]
    const script = await inTurn(gateway(), cut, answered(dialect, 'from the second', false))
    const model = await twoRoutes(dialect)
    const { answer, attempts, record, entry } = await call(dialect, model, script, {}, own)
    expect(answer.status).toBe(200)
    expect(attempts).toEqual(['0 200 cut', '1 200'])
    expect(record.provenance).toBe('estimated')
    const request = routedRequest(dialect, model, script).body
    const lost = Math.ceil(request.length / 3)
    expect(record.usage).toMatchObject({ input: 11 + lost, output: 7 })
    expect(record.cost).toBe(ANSWER_COST + lost)
    expect((await settledCredits(gateway(), own)).balance).toBe(1_000_000_000 - entry.credits_settled)

    const neither = await call(dialect, model, await inTurn(gateway(), cut), {}, own)
    expect(neither.answer.status).toBe(502)
    expect(neither.record.usage).toMatchObject({ output: 0 })
    expect(neither.record.cost).toBeGreaterThanOrEqual(2 * (lost - 2))
  })

  // A caller that leaves before the gateway has read the second refusal is charged an estimate, which a busy machine can cause.
  it('ends with a caller that leaves while it waits, and charges nothing', { retry: 2 }, async () => {
    const own = await createTenant(gateway())
    const model = await twoRoutes(dialect)
    const wait = failed(429, '{}', { 'retry-after-ms': '1500' })
    const script = await inTurn(gateway(), wait, wait, answered(dialect, 'too late', false))
    const { path, body } = routedRequest(dialect, model, script)
    const { leave } = beginRequest(edge.url + path, bearer(own.key), body)
    // A request without an answer would be charged an estimate.
    const answeredTwice = async () => {
      const seen = await seenRequests(gateway(), script)
      expect(seen.map(({ finished }) => finished)).toEqual([true, true])
    }
    await vi.waitFor(answeredTwice, { timeout: 5_000, interval: 20 })
    leave()
    const calls = await vi.waitFor(
      async () => {
        const entries = (await auditEntries(gateway(), own)).filter(({ kind }) => kind === 'call')
        expect(entries).toHaveLength(1)
        return entries
      },
      { timeout: 5_000, interval: 50 },
    )
    expect(calls[0]).toMatchObject({ status: 499, credits_settled: 0 })
    expect(calls[0]?.record.attempts).toHaveLength(2)
    expect(await seenRequests(gateway(), script)).toHaveLength(2)
  })
})

describe('routes of two protocols', () => {
  const mixed = () => createRoutedModel(gateway(), ['openai-compatible', 'anthropic'])
  const CALLERS = [
    ['chat', 'messages', ['0', '1']],
    // The provider that speaks the caller's protocol comes first, whatever its position.
    ['messages', 'chat', ['1', '0']],
  ] as const

  it.each(CALLERS)(
    'a caller of %s is answered by %s in its own protocol',
    async (caller, other, [first, second]) => {
      for (const stream of [false, true]) {
        const script = await inTurn(gateway(), failed(503), answered(other, 'translated for you', stream))
        const { answer, attempts, record } = await call(caller, await mixed(), script, { stream })
        expect(answer.status, answer.text).toBe(200)
        expect(attempts).toEqual([`${first} 503`, `${second} 200`])
        expect(answer.text).toContain('translated for you')
        expect(record.cost).toBe(ANSWER_COST)
        const ending = caller === 'chat' ? 'data: [DONE]\n\n' : '"type":"message_stop"}\n\n'
        if (stream) expect(answer.text.endsWith(ending), answer.text).toBe(true)
        else expect(jsonOf(answer)[caller === 'chat' ? 'choices' : 'content']).toHaveLength(1)
      }
    },
  )

  it.each(CALLERS)(
    'a stream of %s that ends before its first event goes on',
    async (caller, other, [first, second]) => {
      const empty: ScriptStep[] = [{ headers: { 'content-type': 'text/event-stream' } }, { end: true }]
      const script = await inTurn(gateway(), empty, answered(other, 'translated for you', true))
      const { answer, attempts } = await call(caller, await mixed(), script, { stream: true })
      expect(answer.text).toContain('translated for you')
      expect(attempts).toEqual([`${first} 200 stream_empty`, `${second} 200`])
    },
  )

  it('passes over a route that cannot express the request', async () => {
    const script = await inTurn(gateway(), failed(500, '{"mine":true}'), answered('messages', 'never', false))
    const { answer, attempts } = await call('chat', await mixed(), script, { n: 2 })
    expect({ status: answer.status, text: answer.text }).toEqual({ status: 500, text: '{"mine":true}' })
    expect(attempts).toEqual(['0 500'])
  })

  it('gives the reason if no route can', async () => {
    const model = await createRoutedModel(gateway(), ['anthropic', 'anthropic'])
    const { answer, attempts, record } = await call('chat', model, 'two, please', { n: 2 })
    expect(answer.status).toBe(400)
    expect(jsonOf(answer)).toMatchObject({ error: { type: 'invalid_request_error' } })
    expect(attempts).toEqual([])
    expect(record.cost).toBe(0)
  })
})
