import { beforeAll, describe, expect, it } from 'vitest'
import { gateway, upstreamControl } from '../harness/gateway.ts'
import { openStream } from '../harness/open-stream.ts'
import { auditEntryOf } from '../harness/records.ts'
import { type Answer, jsonOf, send } from '../harness/send.ts'
import { bearer, createTenant, type Tenant, uniqueName } from '../harness/tenant.ts'
import { registerScript, type ScriptStep } from '../harness/upstream.ts'
import { refusalBody } from '../matrices/envelopes.ts'
import {
  ALL_PAIRS,
  COMPLETION_PAIRS,
  endOf,
  failureFrames,
  NATIVE_PAIRS,
  named,
  PAIRS,
  streamedText,
  type TranslatedPair,
  wholeText,
} from './support/translated-pairs.ts'

const unknownError = (frame: string) => frame.replace(/"(overloaded|server)_error"/, '"new_error"')

let tenant: Tenant

beforeAll(async () => {
  tenant = await createTenant(gateway())
})

const SCRIPTED_TEXT = 'This is the scripted answer, with an é and a 🦉.'

function call(pair: TranslatedPair, text: string, more = {}): Promise<Answer> {
  const body = JSON.stringify(pair.request(text, more))
  return send(gateway().baseUrl + pair.route.path, { method: 'POST', headers: bearer(tenant.key), body })
}

const stream = (pair: TranslatedPair, text: string, more = {}) => call(pair, text, { stream: true, ...more })

/** Sends frames of the upstream, and then what is asked. */
const framesScript = (frames: readonly string[], ...then: ScriptStep[]) =>
  registerScript(gateway(), [{ sse: [...frames] }, ...then])

// A completion is read from its provider as a chat or a message is, and refused as a chat is. So its pairs have what its own
// encoder makes of a stream and of an answer, and one refusal.
const everyPair = [...NATIVE_PAIRS, ...ALL_PAIRS]
const isCompletion = (pair: TranslatedPair) => COMPLETION_PAIRS.includes(pair)
const SCRIPTS = ['canned', 'split-frames', 'crlf', 'unknown-fields', 'usage-on-last-chunk', 'no-done']

describe.each(named(everyPair))('a stream of %s', (_, pair) => {
  const { route, upstream } = pair
  const begun = [...upstream.opening, upstream.text('one '), upstream.text('two ')]

  // Frames pass unchanged between equal protocols, with their line ends.
  const scripts = NATIVE_PAIRS.includes(pair) ? SCRIPTS.filter((script) => script !== 'crlf') : SCRIPTS
  it.each(isCompletion(pair) ? SCRIPTS.slice(0, 1) : scripts)('tells %s to its end, once', async (script) => {
    const answer = await stream(pair, `script:${script}`)
    expect(answer.status).toBe(200)
    expect(answer.headers['content-type']).toMatch(/^text\/event-stream/)
    expect(answer.headers).toMatchObject({
      'cache-control': 'no-cache, no-transform',
      'x-accel-buffering': 'no',
    })
    expect(answer.headers).not.toHaveProperty('content-length')
    expect(answer.headers).not.toHaveProperty('content-encoding')
    expect(streamedText(answer.text)).toBe(SCRIPTED_TEXT)
    expect(answer.text.endsWith(endOf(route))).toBe(true)
    expect(answer.text.split(endOf(route))).toHaveLength(2)
    expect(answer.text).not.toContain('event: error')
  })

  it('hands on each event when the upstream has sent it, and not later', async () => {
    const signals = [uniqueName('second'), uniqueName('rest')] as const
    const script = await registerScript(gateway(), [
      { sse: [...upstream.opening, upstream.text('one ')] },
      { waitForSignal: signals[0] },
      { sse: [upstream.text('two ')] },
      { waitForSignal: signals[1] },
      { sse: [...upstream.ending] },
    ])
    const body = JSON.stringify(pair.request(script, { stream: true }))
    const open = await openStream(gateway().baseUrl + route.path, bearer(tenant.key), body)
    await open.until((text) => text.includes('one ') && text.endsWith('\n\n'))
    expect(open.text()).not.toContain('two ')
    await upstreamControl(gateway()).release(signals[0])
    await open.until((text) => text.includes('two ') && text.endsWith('\n\n'))
    expect(open.text().endsWith(endOf(route))).toBe(false)
    await upstreamControl(gateway()).release(signals[1])
    expect(streamedText(await open.end())).toBe('one two ')
  })

  it.each(
    [
      ['ends early', { end: true }, 'The upstream ended its answer early.'],
      ['is reset', { destroy: true }, 'The upstream broke off its answer.'],
    ].slice(0, isCompletion(pair) ? 1 : 2) as Array<[string, ScriptStep, string]>,
  )('tells when the upstream %s, after all that came before', async (_how, step, message) => {
    const answer = await stream(pair, await framesScript(begun, step))
    expect(answer.status).toBe(200)
    expect(streamedText(answer.text)).toBe('one two ')
    expect(answer.text.endsWith(failureFrames(route, message))).toBe(true)
    expect(answer.text.split('event: error')).toHaveLength(2)
    const { record } = await auditEntryOf(gateway(), tenant, answer.headers['x-request-id'])
    expect(record).toMatchObject({ status: 200, errorCode: 'stream_error', provenance: 'estimated' })
    expect(record.flags).toContain('stream_cut')
  })

  it.runIf(!isCompletion(pair))('stays whole beside many others', async () => {
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) => stream(pair, `script:long-stream tokens=${50 + index}`)),
    )
    answers.forEach(({ text }, index) => {
      expect(streamedText(text)).toBe(' word'.repeat(50 + index))
      expect(text.endsWith(endOf(route))).toBe(true)
    })
  })

  // Between equal protocols, frames of one chunk are forwarded before they are read.
  it.runIf(!NATIVE_PAIRS.includes(pair))(
    'ends with the end of the answer, whatever the upstream sends after it',
    async () => {
      const frames = [...begun, ...upstream.ending, upstream.text('more'), upstream.error('late')]
      const answer = await stream(pair, await framesScript(frames, { waitForSignal: uniqueName('never') }))
      expect(streamedText(answer.text)).toBe('one two ')
      expect(answer.text.endsWith(endOf(route))).toBe(true)
      const { record } = await auditEntryOf(gateway(), tenant, answer.headers['x-request-id'])
      expect(record).toMatchObject({ errorCode: null, provenance: 'reported' })
    },
  )
})

describe.each(named(PAIRS))('a stream of %s', (_, pair) => {
  const { route, upstream } = pair
  const begun = [...upstream.opening, upstream.text('one '), upstream.text('two ')]

  it('is made of a whole answer where the upstream would not stream', async () => {
    const json = upstream.whole('not streamed, é 🦉')
    const name = uniqueName('whole')
    await upstreamControl(gateway()).putScript(name, { steps: [{ json }] })
    const answer = await stream(pair, `script:${name}`)
    expect(answer.status).toBe(200)
    expect(answer.headers['content-type']).toBe('text/event-stream; charset=utf-8')
    expect(streamedText(answer.text)).toBe('not streamed, é 🦉')
    expect(answer.text.endsWith(endOf(route))).toBe(true)
    const { record } = await auditEntryOf(gateway(), tenant, answer.headers['x-request-id'])
    expect(record).toMatchObject({ provenance: 'reported', usage: { input: 3, output: 5 } })
  })

  it("tells an error in the middle in the caller's words for it", async () => {
    const script = await framesScript([...begun, upstream.error('Overloaded: "é"'), ...upstream.ending])
    const answer = await stream(pair, script)
    expect(answer.status).toBe(200)
    expect(streamedText(answer.text)).toBe('one two ')
    expect(answer.text.endsWith(failureFrames(route, 'Overloaded: "é"'))).toBe(true)
    const { record } = await auditEntryOf(gateway(), tenant, answer.headers['x-request-id'])
    expect(record).toMatchObject({ errorCode: 'stream_error', provider: pair.provider })
    expect(record.flags).toContain('stream_error')
  })

  it('cuts our credential out of an error in the middle', async () => {
    const script = await framesScript([...begun, upstream.error('Wrong key scripted-upstream, sorry.')])
    const answer = await stream(pair, script)
    expect(answer.text.endsWith(failureFrames(route, 'Wrong key [redacted], sorry.'))).toBe(true)
    expect(answer.text).not.toContain('scripted-upstream')
  })

  it('tells of an event in the middle that is not JSON', async () => {
    const answer = await stream(
      pair,
      await framesScript([...begun, 'data: {"broken\n\n', ...upstream.ending]),
    )
    expect(streamedText(answer.text)).toBe('one two ')
    expect(answer.text.endsWith(failureFrames(route, 'The upstream sent an event that is not JSON.'))).toBe(
      true,
    )
  })

  it('passes over events that say nothing', async () => {
    const nothings = '[]|"text"|7|null|{}|{"choices":7,"type":"odd"}|{"type":{},"choices":[null]}'.split('|')
    const frames = nothings.flatMap((payload, index) => [`data: ${payload}\n\n`, upstream.text(`${index}`)])
    const answer = await stream(pair, await framesScript([...begun, ...frames, ...upstream.ending]))
    expect(streamedText(answer.text)).toBe('one two 0123456')
    expect(answer.text.endsWith(endOf(route))).toBe(true)
    expect(answer.text).not.toContain('event: error')
  })

  const beforeTheFirst: Array<[name: string, steps: () => ScriptStep[], says: RegExp]> = [
    ['nothing at all', () => [{ sse: [] }, { end: true }], /empty/],
    ['comments only', () => [{ sse: [': hi\n\n', ': hi\n\n'] }, { end: true }], /empty/],
    ['an empty body', () => [{ status: 200, headers: {}, body: '' }], /empty/],
    ['a reset', () => [{ status: 200 }, { destroy: true }], /broke off|reached/],
    // Errors of known types have a status of their own: errors-under-200.test.ts.
    ['an error', () => [{ sse: [unknownError(upstream.error('Overloaded'))] }], /^Overloaded$/],
    ['an event that is not JSON', () => [{ sse: ['data: {"broken\n\n'] }], /not JSON/],
    ['a keep-alive and an end', () => [{ sse: [upstream.keepAlive] }, { end: true }], /empty/],
  ]
  it.each(beforeTheFirst)('tells %s before the first event as 502', async (_what, steps, says) => {
    const answer = await stream(pair, await registerScript(gateway(), steps()))
    expect(jsonOf(answer)).toEqual(
      refusalBody(route.surface, { status: 502, code: 'upstream_empty_body', message: says }),
    )
    expect(answer.status).toBe(502)
    expect(answer.headers['content-type']).toMatch(/^application\/json/)
  })
})

describe.each(named(ALL_PAIRS))('a whole answer of %s', (_, pair) => {
  const { route, upstream } = pair

  it('has the content of a stream', async () => {
    for (const script of ['canned', 'refusal', 'large-answer bytes=300000']) {
      const whole = await call(pair, `script:${script}`)
      expect(whole.status).toBe(200)
      expect(whole.headers['content-type']).toBe('application/json')
      const text = wholeText(jsonOf(whole))
      expect(text).toBe(streamedText((await stream(pair, `script:${script}`)).text))
      if (script === 'canned') expect(text).toBe(SCRIPTED_TEXT)
    }
  })

  const noAnswers: Array<[name: string, steps: () => unknown[], says: RegExp]> = [
    ['an empty body', () => [{ status: 200, headers: {}, body: '' }], /empty/],
    ['a 204', () => [{ status: 204, headers: {} }, { end: true }], /empty/],
    ['text', () => [{ status: 200, headers: {}, body: 'Hello' }], /not JSON/],
    [
      'half an answer',
      () => [{ chunk: JSON.stringify(upstream.whole('a')).slice(0, 40) }],
      /not JSON|stream/,
    ],
    [
      'a reset in the middle',
      () => [{ status: 200, headers: {} }, { chunk: '{"id":' }, { destroy: true }],
      /broke/,
    ],
    ['a reset', () => [{ destroy: true }], /could not be reached/],
    [
      'an error under status 200',
      () => [{ json: { error: { message: 'Try later', type: 'x' } } }],
      /^Try later$/,
    ],
    [
      'an error of the messages protocol under status 200',
      () => [{ json: { type: 'error', error: { type: 'new_error', message: 'Try later' } } }],
      /^Try later$/,
    ],
    ['JSON that is no answer', () => [{ json: { ok: true } }], /no answer/],
    ['JSON that is no object', () => [{ json: ['a'] }], /no answer/],
    ['a stream', () => [{ sse: [...upstream.opening, upstream.text('a'), ...upstream.ending] }], /streamed/],
  ]
  it.each(isCompletion(pair) ? noAnswers.slice(0, 1) : noAnswers)(
    'tells %s as 502',
    async (_what, steps, says) => {
      const name = uniqueName('whole')
      await upstreamControl(gateway()).putScript(name, { steps: steps() })
      const answer = await call(pair, `script:${name}`)
      expect(jsonOf(answer)).toEqual(
        refusalBody(route.surface, { status: 502, code: 'upstream_empty_body', message: says }),
      )
      expect(answer.status).toBe(502)
    },
  )
})
