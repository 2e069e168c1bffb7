import { beforeAll, describe, expect, it } from 'vitest'
import { gateway, query } from '../harness/gateway.ts'
import { refusalBody } from '../matrices/envelopes.ts'
import {
  addPolicy,
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
import { openStream } from './support/open-stream.ts'
import { auditEntries, settledCredits } from './support/records.ts'
import { jsonOf } from './support/send.ts'
import { administrator, bearer, createTenant, type Tenant, uniqueName } from './support/tenant.ts'
import { failureFrames, payloadsOf } from './support/translated-pairs.ts'
import { marker, registerAnswers, registerScript, seenRequest, seenRequests } from './support/upstream.ts'

let blocking: Tenant
let redacting: Tenant
const MESSAGE = 'A data-loss prevention policy blocks this call: it found code.'

beforeAll(async () => {
  blocking = await governedTenant(codePolicy('block', { directions: ['response', 'tool_arguments'] }))
  redacting = await governedTenant(codePolicy('redact'))
})

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

  it.each([1, 5, 64])(
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
      for (const trace of tracesOf(code)) expect(answer.text).not.toContain(trace)
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
    for (const tenant of [blocking, redacting]) {
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
      // Of a call of a tool nothing is told before its end; frames without a word keep coming.
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

describe('content of answers that cannot be inspected', () => {
  const data = Buffer.alloc(90, 7).toString('base64')
  const head = { id: 'c', created: 1, model: 'm' }
  const usage = { prompt_tokens: 3, completion_tokens: 5, total_tokens: 8 }
  const image = { type: 'image_url', image_url: { url: `data:image/png;base64,${data}` } }
  const chatAnswers = (member: object) => ({
    whole: [
      {
        json: {
          ...head,
          object: 'chat.completion',
          choices: [
            { index: 0, message: { role: 'assistant', content: 'x', ...member }, finish_reason: 'stop' },
          ],
          usage,
        },
      },
    ],
    streamed: [
      {
        sse: [
          `data: ${JSON.stringify({ ...head, choices: [{ index: 0, delta: { content: 'so ' } }] })}\n\n`,
          `data: ${JSON.stringify({ ...head, choices: [{ index: 0, delta: member }] })}\n\n`,
          ...framesOf('chat', []).slice(1),
        ],
      },
    ],
  })
  const pages = { type: 'base64', media_type: 'application/pdf', data }
  const fetched = (source: object) => ({
    type: 'web_fetch_tool_result',
    tool_use_id: 's',
    content: { type: 'web_fetch_result', url: 'https://a.example', content: { type: 'document', source } },
  })
  const messagesAnswers = (block: object) => {
    const [start = '', ...end] = framesOf('messages', [])
    const event = (type: string, more: object) =>
      `event: ${type}\ndata: ${JSON.stringify({ type, index: 0, ...more })}\n\n`
    const whole = {
      ...head,
      type: 'message',
      role: 'assistant',
      content: [block],
      usage: { input_tokens: 3, output_tokens: 5 },
    }
    return {
      whole: [{ json: whole }],
      streamed: [
        {
          sse: [
            start,
            event('content_block_start', { content_block: block }),
            event('content_block_stop', {}),
            ...end,
          ],
        },
      ],
    }
  }

  it.each([
    ['images of a chat', CHAT_WAY, chatAnswers({ images: [image] }), 'response'],
    ['sound of a chat', CHAT_WAY, chatAnswers({ audio: { id: 'a', data, transcript: 'hi' } }), 'response'],
    ['an image of a message', MESSAGES_WAY, messagesAnswers({ type: 'image', source: pages }), 'response'],
    ['a page that a tool of the provider got', MESSAGES_WAY, messagesAnswers(fetched(pages)), 'tool_result'],
  ] as const)('%s passes unless a policy blocks it', async (_name, way, answers, direction) => {
    const script = await registerAnswers(gateway(), [answers as never])
    const only = { rules: [], patterns: [], directions: [direction] }
    const [strict, mild] = await Promise.all(
      ['block', 'allow'].map((treatment) =>
        governedTenant(codePolicy('warn', { ...only, uninspectable: { [direction]: treatment } })),
      ),
    )
    for (const stream of [true, false]) {
      const [refused, passed] = await Promise.all(
        [strict, mild].map((tenant) => callWay(way, tenant as Tenant, script, { stream })),
      )
      expect(passed?.text).toContain(data)
      expect(refused?.text).not.toContain(data)
      expect(refused?.text).toContain('content that cannot be inspected')
      expect(refused?.status).toBe(stream ? 200 : 400)
      expectBalance(await recordOf(strict as Tenant, refused as never))
    }
  })

  it('a page of text that a tool of the provider got is read', async () => {
    const code = someCode()
    const source = { type: 'text', media_type: 'text/plain', data: `a ${code}` }
    const script = await registerAnswers(gateway(), [messagesAnswers(fetched(source)) as never])
    for (const stream of [true, false]) {
      const answer = await callWay(MESSAGES_WAY, redacting, script, { stream })
      expect(answer.text).toContain('a [REDACTED:CODE]')
    }
  })
})

describe('a policy', () => {
  it('counts on the next call after it changes', async () => {
    const tenant = await createTenant(gateway())
    const { ask } = administrator(gateway())
    const code = someCode()
    const outcome = async () => {
      const mark = marker()
      const { status } = await callWay(CHAT_WAY, tenant, `${mark} ${code}`)
      if (status !== 200) return 'blocked'
      return (await seenRequest(gateway(), mark)).body.includes(code) ? 'passed' : 'edited'
    }
    expect(await outcome()).toBe('passed')
    const { id } = await addPolicy(tenant, codePolicy('block'))
    expect(await outcome()).toBe('blocked')
    const path = `${tenant.base}/dlp/policies/${id}`
    await ask('PUT', path, { version: 1, rules: [{ custom: 'code', action: 'mask' }] })
    expect(await outcome()).toBe('edited')
    await ask('PUT', path, { version: 2, enabled: false })
    expect(await outcome()).toBe('passed')
    await ask('PUT', path, { version: 3, enabled: true })
    expect(await outcome()).toBe('edited')
    await ask('DELETE', path)
    expect(await outcome()).toBe('passed')
    const calls = (await auditEntries(gateway(), tenant)).filter(({ kind }) => kind === 'call')
    const versions = calls.map(({ record }) => (record.dlp as { policyVersion: string }).policyVersion)
    expect(versions.map((version) => version.replace(id, 'id')).reverse()).toEqual([
      'none',
      'id@1',
      'id@2',
      'none',
      'id@4',
      'none',
    ])
  })

  const BROKEN: Array<[name: string, change: string]> = [
    [
      'asks for a detector that is not known',
      `jsonb_set(body, '{rules}', '[{"detector":"no-such","action":"block"}]')`,
    ],
    ['has a pattern that does not compile', `jsonb_set(body, '{patterns,0,pattern}', '"(?=x)"')`],
    ['has a shape that is not known', `jsonb_set(body, '{rules,0,action}', '"vanish"')`],
  ]
  it.each(BROKEN)('that %s stops every call', async (_name, change) => {
    // Every direction by itself: what cannot be read on the way back must not be sent on the way there.
    for (const direction of ['request', 'response']) {
      const tenant = await createTenant(gateway())
      const { id } = await addPolicy(tenant, codePolicy('redact', { directions: [direction] }))
      await query(gateway(), `update dlp_policy_versions set body = ${change} where policy_id = $1`, [id])
      for (const way of [CHAT_WAY, MESSAGES_WAY]) {
        const mark = marker()
        const answer = await callWay(way, tenant, mark)
        expect(answer.status).toBe(500)
        expect(answer.text).toContain('The data-loss prevention policy could not be applied.')
        expect(answer.text).not.toMatch(/no-such|\(\?=|vanish|pattern/)
        expect(await seenRequests(gateway(), mark)).toEqual([])
        expect((await recordOf(tenant, answer)).record).toMatchObject({
          status: 500,
          errorCode: 'dlp_unavailable',
        })
      }
      const { balance, available } = await settledCredits(gateway(), tenant)
      expect([balance, available]).toEqual([1_000_000_000, 1_000_000_000])
    }
  })
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
