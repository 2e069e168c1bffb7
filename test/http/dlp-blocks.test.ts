import { beforeAll, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { openStream } from '../harness/open-stream.ts'
import { jsonOf } from '../harness/send.ts'
import { bearer, type Tenant, uniqueName } from '../harness/tenant.ts'
import { marker, registerScript, seenRequest } from '../harness/upstream.ts'
import { refusalBody } from '../matrices/envelopes.ts'
import {
  CHAT_WAY,
  callWay,
  codePolicy,
  expectBalance,
  governedTenant,
  MESSAGES_TO_CHAT,
  MESSAGES_WAY,
  namedWays,
  recordOf,
  someCode,
  tracesOf,
  WAYS,
} from './support/dlp.ts'
import { answerScript, callTool, framesOf, say, toldBy } from './support/dlp-answers.ts'
import { failureFrames, payloadsOf } from './support/translated-pairs.ts'

let blocking: Tenant
let redacting: Tenant
const MESSAGE = 'A data-loss prevention policy blocks this call: it found code.'

beforeAll(async () => {
  blocking = await governedTenant(codePolicy('block', { directions: ['response', 'tool_arguments'] }))
  redacting = await governedTenant(codePolicy('redact'))
})

/** A protocol finds where a text is cut; a translation or a completion shows what it makes of the end. */
const sizesOf = (way: (typeof WAYS)[number]) =>
  way === CHAT_WAY || way === MESSAGES_WAY ? [1, 5, 64] : way.upstream === 'completions' ? [5, 64] : [5]

describe.each(namedWays(WAYS))('an answer of %s that must not pass', (_, way) => {
  it('is refused whole, and paid for', async () => {
    const code = someCode()
    const script = await answerScript(way.upstream, [say(`so ${code} it is`)])
    const answer = await callWay(way, blocking, script)
    expect(jsonOf(answer)).toEqual(
      refusalBody(way.route.surface, { status: 400, code: 'dlp_blocked', message: MESSAGE }),
    )
    expect(answer.status).toBe(400)
    expect(answer.headers['x-should-retry']).toBe('false')
    const recorded = await recordOf(blocking, answer)
    expect(recorded.record).toMatchObject({
      status: 400,
      errorCode: 'dlp_blocked',
      usage: { input: 3, output: 5 },
    })
    expect(recorded.record.cost).toBeGreaterThan(0)
    expect(recorded.dlp?.findings).toEqual({ code: 1 })
    expect(expectBalance(recorded)).toEqual(['request', 'response'])
    expect(recorded.response).toMatchObject({ released: 0 })
  })

  it.each(sizesOf(way))(
    'ends in the middle of a stream in pieces of %i, and its upstream with it',
    async (size) => {
      const code = someCode()
      const mark = marker()
      const before = 'All is well. '
      const never = uniqueName('never')
      const frames = framesOf(way.upstream, [say(`${before}${code} and more`)], [size], false)
      const script = await registerScript(gateway(), [{ sse: frames }, { waitForSignal: never }])
      const answer = await callWay(way, blocking, `${script} ${mark}`, { stream: true })
      if (way.upstream === 'completions' && size === 64) {
        // The first event of all is the one that must not pass.
        expect(answer.status).toBe(400)
        expect(answer.headers['x-should-retry']).toBe('false')
        const recorded = await recordOf(blocking, answer)
        expect(recorded.record).toMatchObject({ errorCode: 'dlp_blocked', provenance: 'estimated' })
        expect(recorded.record.cost).toBeGreaterThan(0)
        expectBalance(recorded)
        return
      }
      expect(answer.status).toBe(200)
      expect(answer.text.endsWith(failureFrames(way.route, MESSAGE)), answer.text).toBe(true)
      expect(before.startsWith(toldBy(answer.text).text)).toBe(true)
      // A piece of the code can be one of the upstream's time.
      const text = answer.text.replaceAll('1700000000', '')
      for (const trace of tracesOf(code)) expect(text).not.toContain(trace)
      const { clientClosedAt } = await seenRequest(
        gateway(),
        mark,
        (request) => request.clientClosedAt !== null,
      )
      expect(clientClosedAt).not.toBeNull()
      const recorded = await recordOf(blocking, answer)
      expect(recorded.record).toMatchObject({
        status: 200,
        errorCode: 'dlp_blocked',
        provenance: 'estimated',
      })
      expect(recorded.record.cost).toBeGreaterThan(0)
      expect(recorded.dlp?.findings).toEqual({ code: 1 })
      expectBalance(recorded)
    },
  )

  it('ends where it is only known at the end of a stream', async () => {
    const code = someCode()
    const answer = await callWay(way, blocking, await answerScript(way.upstream, [say(`so ${code}`)]), {
      stream: true,
    })
    expect(answer.text.endsWith(failureFrames(way.route, MESSAGE)), answer.text).toBe(true)
    for (const trace of tracesOf(code)) expect(answer.text).not.toContain(trace)
    expectBalance(await recordOf(blocking, answer))
  })
})

it.each(namedWays([CHAT_WAY, MESSAGES_WAY, MESSAGES_TO_CHAT]))(
  'a tool is not called with what must not pass: %s',
  async (_, way) => {
    const code = someCode()
    const script = await answerScript(way.upstream, [say('I look. '), callTool('find', { a: 'b', code })])
    const streamed = await callWay(way, blocking, script, { stream: true })
    expect(streamed.text.endsWith(failureFrames(way.route, MESSAGE))).toBe(true)
    const told = toldBy(streamed.text)
    expect(told.text).toBe('I look. ')
    expect(told.calls.map(({ json }) => json).join('')).toBe('')
    const whole = await callWay(way, blocking, script)
    expect(whole.status).toBe(400)
    for (const answer of [streamed, whole]) expectBalance(await recordOf(blocking, answer))
  },
)

describe('what is held back', () => {
  it.each(namedWays(WAYS))('of %s is never told when the stream is cut', async (_, way) => {
    const code = someCode()
    // The action does not change what is held back: both actions are tested once for each protocol, one for the other
    // ways.
    for (const tenant of way === CHAT_WAY || way === MESSAGES_WAY ? [blocking, redacting] : [redacting]) {
      for (const [text, end] of [
        [`well ${code}`, { destroy: true }],
        [`well ${code.slice(0, 9)}`, { end: true }],
      ] as const) {
        const frames = framesOf(way.upstream, [say(text)], [4], false)
        const script = await registerScript(gateway(), [{ sse: frames }, end])
        const answer = await callWay(way, tenant, script, { stream: true })
        expect(answer.status).toBe(200)
        expect(toldBy(answer.text).text).toBe('well ')
        for (const trace of tracesOf(code).slice(-1)) expect(answer.text).not.toContain(trace)
        const recorded = await recordOf(tenant, answer)
        expect(recorded.record).toMatchObject({ errorCode: 'stream_error' })
        expectBalance(recorded)
        expect(recorded.response?.withheld).toBeGreaterThan(0)
      }
    }
  })

  it.each(namedWays([CHAT_WAY, MESSAGES_WAY]))(
    'of %s is never told to a caller that leaves',
    async (_, way) => {
      const code = someCode()
      const never = uniqueName('never')
      const parts = [say('well, '), callTool('f', { code: `${code}${' '.repeat(2_000)}` })]
      const frames = framesOf(way.upstream, parts, [4], false)
      const slowly = frames.flatMap((frame) => [{ sse: [frame] }, { waitMilliseconds: 10 }])
      const script = await registerScript(gateway(), [...slowly, { waitForSignal: never }])
      const body = JSON.stringify(way.route.request(script, { model: way.model, stream: true }))
      const stream = await openStream(gateway().baseUrl + way.route.path, bearer(redacting.key), body)
      // A call of a tool is released only at its end; empty frames arrive meanwhile.
      await stream.until((told) => told.includes('wel'))
      await seenRequest(gateway(), script, ({ eventsWritten }) => eventsWritten > 15)
      stream.leave()
      for (const trace of tracesOf(code)) expect(stream.text()).not.toContain(trace)
      const recorded = await recordOf(redacting, stream)
      expect(recorded.record).toMatchObject({ status: 499, errorCode: 'client_left' })
      expect(recorded.response?.withheld).toBeGreaterThan(20)
      expectBalance(recorded)
    },
  )
})

it('answers beside each other do not mix', async () => {
  const codes = Array.from({ length: 12 }, () => someCode())
  const scripts = await Promise.all(
    codes.map((code) => answerScript('chat', [say(`it is ${code}, really`)], [2])),
  )
  const answers = await Promise.all(
    scripts.map((script, index) =>
      callWay(CHAT_WAY, index % 2 ? redacting : blocking, script, { stream: true }),
    ),
  )
  for (const [index, { text }] of answers.entries()) {
    for (const code of codes) expect(text).not.toContain(code)
    expect(toldBy(text).text).toBe(index % 2 ? 'it is [REDACTED:CODE], really' : 'it is ')
    expect(payloadsOf(text).some(({ error }) => error !== undefined)).toBe(index % 2 === 0)
  }
})
