import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { NO_USAGE } from '../../../src/calls/usage.ts'
import type { Route } from '../../../src/gateway/catalogue/call-routes.ts'
import { backoffOf } from '../../../src/gateway/upstreams/route-health.ts'
import {
  attemptsOf,
  chatAnswer,
  type FailoverRun,
  failoverOf,
  INPUT,
  providerOf,
  silent,
  unreachable,
} from './failover-harness.ts'
import { type Answer, streamed, whole } from './model-turn-harness.ts'
import { advance, moveTimersByHand, settle } from './relay-harness.ts'
import { chunks } from './stream-reading.ts'

moveTimersByHand()
beforeEach(() => {
  for (const level of ['log', 'error'] as const) vi.spyOn(console, level).mockImplementation(() => {})
})
afterEach(() => void vi.unstubAllGlobals())

/** Longer than any time-out of these tests. */
const TIMED_OUT_MS = 6_000
const inputs = (count: number) => ({ ...NO_USAGE, input: count * INPUT })
const failing = (status: number, message = `no ${status}`, headers: Record<string, string> = {}): Answer =>
  whole({ error: { message, code: null } }, status, headers)
/** A tool's result without the call that it answers. */
const UNTRANSLATABLE = { messages: [{ role: 'tool', tool_call_id: 'x', content: 'y' }] }
const answering = (content = 'Hello') => whole(chatAnswer(content))

const errorText = async ({ sent }: FailoverRun): Promise<string> => {
  const { answer } = await sent
  if (answer.kind !== 'upstream_error') throw new Error(answer.kind)
  return JSON.parse(new TextDecoder().decode(answer.body)).error.message
}

describe('routes', () => {
  it('are not tried after one has answered', async () => {
    const run = await failoverOf({ routes: ['chat', 'chat'], answers: [answering()] })
    const { answer, lost, route } = await run.sent
    expect(answer.kind).toBe('buffered')
    expect([lost, providerOf(route)]).toEqual([null, 'chat 0'])
    expect(attemptsOf(await run.outcome)).toEqual([['chat 0', 200]])
    expect(await run.outcome).toMatchObject({ status: 200, provenance: 'reported', cost: 8 })
  })

  it.each([
    ['cannot be reached', unreachable, 'unreachable'],
    ['has an error of its own', failing(503), 503],
    ['refuses our credential', failing(401), 401],
    ['does not have the model', failing(404), 404],
    ['failed behind its platform', failing(424), 424],
    ['made an invalid tool call', whole({ error: { message: 'x', code: 'tool_use_failed' } }, 400), 400],
    ['does not have the deployment', whole({ error: { code: 'DeploymentNotFound' } }, 400), 400],
    ['answers nothing', () => new Response(''), 200],
    ['answers what is not JSON', () => new Response('<html>'), 200],
  ])('are followed by the next one when one %s', async (_name, first, told) => {
    const run = await failoverOf({ routes: ['chat', 'chat'], answers: [first, answering()] })
    expect((await run.sent).answer.kind).toBe('buffered')
    expect(attemptsOf(await run.outcome)).toEqual([
      ['chat 0', told],
      ['chat 1', 200],
    ])
    expect(await run.outcome).toMatchObject({ status: 200, provider: 'chat 1', cost: 8 })
  })

  it('are not tried after an error that is the caller’s', async () => {
    const run = await failoverOf({ routes: ['chat', 'chat'], answers: [failing(400, 'Wrong.')] })
    expect(await errorText(run)).toBe('Wrong.')
    const failed = { status: 400, errorCode: 'upstream_error', provider: 'chat 0', cost: 0 }
    expect(await run.outcome).toMatchObject(failed)
  })

  it('of the caller’s protocol come first', async () => {
    const answers = [unreachable, unreachable, unreachable]
    const run = await failoverOf({ routes: ['messages', 'chat', 'messages'], answers })
    const asked = (await run.outcome).attempts.map(({ provider }) => provider)
    expect(asked).toEqual(['chat 1', 'messages 0', 'messages 2'])
  })

  it('that cannot express the request are passed over', async () => {
    const answers = [unreachable, answering()]
    const run = await failoverOf({ routes: ['chat', 'messages', 'chat'], answers, request: UNTRANSLATABLE })
    expect((await run.sent).answer.kind).toBe('buffered')
    expect(attemptsOf(await run.outcome)).toEqual([
      ['chat 0', 'unreachable'],
      ['chat 2', 200],
    ])
  })

  it('that cannot express the request do not replace the error of one that can', async () => {
    const answers = [failing(503)]
    const run = await failoverOf({ routes: ['messages', 'chat'], answers, request: UNTRANSLATABLE })
    expect(await errorText(run)).toBe('no 503')
    expect(attemptsOf(await run.outcome)).toEqual([['chat 1', 503]])
  })

  it('of which none can express the request make no call', async () => {
    const run = failoverOf({ routes: ['messages', 'messages'], answers: [], request: UNTRANSLATABLE })
    await expect(run).rejects.toMatchObject({ status: 400, code: 'invalid_body' })
  })

  it('of which none answers end the call with 502', async () => {
    const run = await failoverOf({ routes: ['chat', 'chat'], answers: [unreachable, unreachable] })
    expect((await run.sent).answer).toMatchObject({ kind: 'failed', error: { code: 'upstream_empty_body' } })
    expect(await run.outcome).toMatchObject({ status: 502, cost: 0, usage: null, provider: 'chat 1' })
  })
})

describe('errors of several routes', () => {
  it.each([
    [[401, 503], 503],
    [[503, 401], 503],
    [[429, 503], 429],
    [[503, 402, 429], 429],
    [[403, 401], 403],
    [[404, 503], 503],
    [[408, 404], 408],
    // The first of equal ones.
    [[500, 503], 500],
  ])('%j: the most useful one is the caller’s', async (statuses, told) => {
    const run = await failoverOf({
      routes: statuses.map(() => 'chat'),
      answers: statuses.map((status) => failing(status)),
    })
    expect(await errorText(run)).toBe(`no ${told}`)
    const outcome = await run.outcome
    expect(outcome).toMatchObject({ status: told, errorCode: 'upstream_error', cost: 0 })
    expect(outcome.provider).toBe(`chat ${statuses.indexOf(told)}`)
    expect(outcome.attempts.map(({ status }) => status)).toEqual(statuses)
  })

  it('are sent in preference to a failure without an answer', async () => {
    const run = await failoverOf({ routes: ['chat', 'chat'], answers: [failing(401), unreachable] })
    expect(await errorText(run)).toBe('no 401')
    expect((await run.outcome).provider).toBe('chat 0')
  })

  it('whose body broke off are replaced by the next best', async () => {
    const cut = () => {
      const body = new ReadableStream({ start: (controller) => controller.error(new Error('reset')) })
      return new Response(body, { status: 503 })
    }
    const run = await failoverOf({ routes: ['chat', 'chat'], answers: [cut, failing(401)] })
    expect(await errorText(run)).toBe('no 401')
  })

  it('are aborted when another route answers', async () => {
    const signals: AbortSignal[] = []
    const held: Answer = ({ signal }) => {
      signals.push(signal)
      return new Response(new ReadableStream(), { status: 503 })
    }
    const run = await failoverOf({ routes: ['chat', 'chat'], answers: [held, answering()] })
    expect((await run.sent).answer.kind).toBe('buffered')
    expect(signals[0]?.aborted).toBe(true)
  })
})

describe('a route that asks to wait', () => {
  const soon = failing(429, 'Slow.', { 'retry-after': '2' })

  it('is waited for and tried once more when none has answered and the wait is short', async () => {
    const run = await failoverOf({
      routes: ['chat', 'chat'],
      answers: [soon, failing(503), answering()],
      retryWait: 2_000,
    })
    await advance(1_999)
    expect(run.world.asked).toHaveLength(2)
    await advance(1)
    expect((await run.sent).answer.kind).toBe('buffered')
    expect(attemptsOf(await run.outcome)).toEqual([
      ['chat 0', 429],
      ['chat 1', 503],
      ['chat 0', 200],
    ])
  })

  it('is not waited for when the wait is long, nor where there is no other', async () => {
    const later = failing(429, 'Slow.', { 'retry-after': '3' })
    const answers = [later, failing(503)]
    const run = await failoverOf({ routes: ['chat', 'chat'], answers, retryWait: 2_000 })
    expect(await errorText(run)).toBe('Slow.')
    const alone = await failoverOf({ routes: ['chat'], answers: [soon], retryWait: 2_000 })
    expect(await errorText(alone)).toBe('Slow.')
    expect(alone.world.asked).toHaveLength(1)
  })

  it('in the body of its error is waited for as well, and rests so long', async () => {
    const retryDelay = { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '1.5s' }
    const busy = whole({ error: { code: 429, message: 'Slow.', details: [retryDelay] } }, 429)
    const answers = [busy, failing(503), answering()]
    const run = await failoverOf({ routes: ['chat', 'chat'], answers, retryWait: 2_000 })
    await advance(1_499)
    expect(run.world.asked).toHaveLength(2)
    expect(backoffOf(run.planned.routes[0] as Route, Date.now())?.reason).toBe('requested')
    await advance(1)
    expect((await run.sent).answer.kind).toBe('buffered')
    expect(run.world.asked).toHaveLength(3)
  })

  it('costs nothing when the caller leaves meanwhile', async () => {
    const answers = [soon, failing(503)]
    const run = await failoverOf({ routes: ['chat', 'chat'], answers, retryWait: 2_000 })
    await settle()
    run.leave.abort()
    expect((await run.sent).answer.kind).toBe('client_left')
    expect(await run.outcome).toMatchObject({ status: 499, flags: ['client_left'], cost: 0 })
    expect(run.world.asked).toHaveLength(2)
  })
})

describe('what attempts without an answer used', () => {
  it('is paid for with the answer', async () => {
    const run = await failoverOf({ routes: ['chat', 'chat'], answers: [silent, answering()] })
    await advance(TIMED_OUT_MS)
    expect((await run.sent).lost?.usage).toEqual(inputs(1))
    expect(attemptsOf(await run.outcome)).toEqual([
      ['chat 0', 'timeout'],
      ['chat 1', 200],
    ])
    const paid = {
      status: 200,
      provenance: 'estimated',
      cost: INPUT + 8,
      usage: { input: INPUT + 7, output: 1 },
    }
    expect(await run.outcome).toMatchObject(paid)
  })

  it('is paid for with a stream', async () => {
    const stream = streamed(
      chunks({ choices: [{ index: 0, delta: { content: 'Hi' }, finish_reason: 'stop' }] }),
      chunks({ choices: [], usage: { prompt_tokens: 7, completion_tokens: 3 } }, '[DONE]'),
    )
    const request = { stream: true, stream_options: { include_usage: true } }
    const run = await failoverOf({ routes: ['chat', 'chat'], answers: [silent, stream], request })
    await advance(TIMED_OUT_MS)
    const { answer } = await run.sent
    if (answer.kind !== 'stream' || !('body' in answer.content)) throw new Error(answer.kind)
    await new Response(answer.content.body).text()
    expect(await run.outcome).toMatchObject({ status: 200, provenance: 'estimated', cost: INPUT + 10 })
  })

  it('is paid for each when none answers', async () => {
    const run = await failoverOf({ routes: ['chat', 'chat'], answers: [silent, silent] })
    await advance(TIMED_OUT_MS)
    await advance(TIMED_OUT_MS)
    expect((await run.sent).lost?.usage).toEqual(inputs(2))
    expect(await run.outcome).toMatchObject({ status: 502, provenance: 'estimated', cost: 2 * INPUT })
  })

  it('is the usage that they reported, where they did', async () => {
    const error = { type: 'error', error: { type: 'api_error', message: 'no' } }
    const reported = whole({ ...error, usage: { input_tokens: 30, output_tokens: 0 } })
    const alone = await failoverOf({ routes: ['messages'], answers: [reported] })
    expect((await alone.sent).lost?.usage).toEqual({ ...NO_USAGE, input: 30 })
    expect(attemptsOf(await alone.outcome)).toEqual([['messages 0', 200]])
    expect(await alone.outcome).toMatchObject({ status: 500, provenance: 'estimated', cost: 30 })
  })

  it('is paid for where a policy stops the answer, and no other route is tried', async () => {
    const policy = {
      directions: ['response'],
      rules: [{ custom: 'code', action: 'block' }],
      patterns: [{ id: 'code', pattern: 'CODE-[0-9]{4}' }],
    }
    const run = await failoverOf({
      routes: ['chat', 'chat'],
      answers: [answering('a CODE-1234')],
      policies: [policy],
    })
    const { answer, lost } = await run.sent
    expect(answer).toMatchObject({ kind: 'failed', error: { code: 'dlp_blocked' } })
    expect(lost?.usage).toEqual({ ...NO_USAGE, input: 7, output: 1 })
    expect(await run.outcome).toMatchObject({
      errorCode: 'dlp_blocked',
      cost: 8,
      usage: { input: 7, output: 1 },
    })
  })
})

describe('a caller that leaves', () => {
  it('pays for the attempt that it ends and for those before', async () => {
    const run = await failoverOf({ routes: ['chat', 'chat'], answers: [silent, silent] })
    await advance(TIMED_OUT_MS)
    run.leave.abort()
    const { answer, lost } = await run.sent
    expect([answer.kind, lost?.usage]).toEqual(['client_left', inputs(2)])
    expect(await run.outcome).toMatchObject({ status: 499, errorCode: 'client_left', cost: 2 * INPUT })
    expect(run.world.asked[1]?.signal.aborted).toBe(true)
  })

  it('pays once for an answer that it does not wait for', async () => {
    const aborting: Answer = ({ signal }) => {
      const body = new ReadableStream({
        start: (controller) => signal.addEventListener('abort', () => controller.error(signal.reason)),
      })
      return new Response(body)
    }
    const run = await failoverOf({ routes: ['chat', 'chat'], answers: [aborting] })
    await settle()
    run.leave.abort()
    const { answer, lost } = await run.sent
    expect([answer.kind, lost?.usage]).toEqual(['client_left', inputs(1)])
    expect(await run.outcome).toMatchObject({ status: 499, cost: INPUT })
  })

  it('pays nothing before anything was sent, nor for an error', async () => {
    const run = await failoverOf({ routes: ['chat'], answers: [], leftBefore: true })
    expect(await run.outcome).toMatchObject({ status: 499, cost: 0 })
    const refused: Answer = () => {
      queueMicrotask(() => failed.leave.abort())
      return new Response(new ReadableStream(), { status: 500 })
    }
    const failed: FailoverRun = await failoverOf({ routes: ['chat', 'chat'], answers: [refused, silent] })
    expect(await failed.outcome).toMatchObject({ status: 499, cost: 0 })
  })
})
