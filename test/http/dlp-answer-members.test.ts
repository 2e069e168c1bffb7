import { beforeAll, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { jsonOf } from '../harness/send.ts'
import type { Tenant } from '../harness/tenant.ts'
import { registerAnswers, registerScript } from '../harness/upstream.ts'
import {
  CHAT_TO_MESSAGES,
  CHAT_WAY,
  COMPLETIONS_WAY,
  callWay,
  codePolicy,
  expectBalance,
  governedTenant,
  MESSAGES_WAY,
  recordOf,
  someCode,
  tracesOf,
} from './support/dlp.ts'
import { answerScript, cut, framesOf, say, think, toldBy, toldIn } from './support/dlp-answers.ts'
import { payloadsOf } from './support/translated-pairs.ts'

let redacting: Tenant
const HIDDEN = '[REDACTED:CODE]'

beforeAll(async () => {
  redacting = await governedTenant(codePolicy('redact'))
})

describe('of a chat answer', () => {
  const head = { id: 'c', created: 1, model: 'm' }
  const whole = (message: object, more: object = {}) => ({
    ...head,
    object: 'chat.completion',
    choices: [
      { index: 0, message: { role: 'assistant', content: 'x', ...message }, finish_reason: 'stop', ...more },
    ],
  })
  const frame = (choices: object[]) =>
    `data: ${JSON.stringify({ ...head, object: 'chat.completion.chunk', choices })}\n\n`
  const both = async (message: object, delta: object, more: object = {}) => {
    const frames = [
      frame([{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null }]),
      frame([{ index: 0, delta, finish_reason: null, ...more }]),
      frame([{ index: 0, delta: {}, finish_reason: 'stop' }]),
      'data: [DONE]\n\n',
    ]
    const script = await registerAnswers(gateway(), [
      { streamed: [{ sse: frames }], whole: [{ json: whole(message, more) }] },
    ])
    const answers = [false, true].map((stream) => callWay(CHAT_WAY, redacting, script, { stream }))
    return Promise.all(answers)
  }

  it.each(['refusal', 'reasoning_content', 'reasoning', 'a_member_of_tomorrow'])(
    '%s is edited',
    async (name) => {
      const code = someCode()
      for (const answer of await both({ [name]: `a ${code} b` }, { [name]: `a ${code} b` })) {
        expect(answer.text).toContain(`a ${HIDDEN}`)
        for (const trace of tracesOf(code)) expect(answer.text).not.toContain(trace)
      }
    },
  )

  it('annotations are whole, and edited as such', async () => {
    const code = someCode()
    const annotations = [
      {
        type: 'url_citation',
        url_citation: { url: `https://example.com/${code}`, title: `On ${code}`, start_index: 0 },
      },
    ]
    const [one, streamed] = await both({ annotations }, { annotations })
    const expected = JSON.stringify(annotations).replaceAll(code, HIDDEN)
    expect(one?.text).toContain(expected)
    expect(streamed?.text).toContain(expected)
  })

  it('log probabilities, which repeat the text, are left out', async () => {
    const code = someCode()
    const logprobs = { content: [{ token: code, bytes: [1], logprob: 0, top_logprobs: [] }], refusal: null }
    for (const answer of await both({}, { content: 'x' }, { logprobs })) {
      expect(answer.text).toContain('"logprobs":null')
      expect(answer.text).not.toContain(code)
      expectBalance(await recordOf(redacting, answer))
    }
  })

  it('several choices are followed each by itself', async () => {
    const codes = [someCode(), someCode(), someCode()]
    const pieces = codes.map((code) => cut(`a ${code} b ${code}`, [5, 2, 9]))
    const frames: string[] = []
    for (let at = 0; pieces.some((left) => at < left.length); at++) {
      const choices = pieces.flatMap((left, index) =>
        left[at] === undefined ? [] : [{ index, delta: { content: left[at] }, finish_reason: null }],
      )
      // Places in a chunk say nothing.
      frames.push(frame(choices.reverse()))
    }
    for (const index of [2, 0, 1]) frames.push(frame([{ index, delta: {}, finish_reason: 'stop' }]))
    const script = await registerScript(gateway(), [{ sse: [...frames, 'data: [DONE]\n\n'] }])
    const answer = await callWay(CHAT_WAY, redacting, script, { stream: true, n: 3 })
    const told = ['', '', '']
    for (const payload of payloadsOf(answer.text)) {
      for (const { index, delta } of payload.choices as Array<{
        index: number
        delta: { content?: string }
      }>) {
        told[index] += delta.content ?? ''
      }
    }
    expect(told).toEqual(codes.map(() => `a ${HIDDEN} b ${HIDDEN}`))
    expectBalance(await recordOf(redacting, answer))
  })

  it('an error in the middle is told without the value', async () => {
    const code = someCode()
    const frames = [
      frame([{ index: 0, delta: { content: `so ${code.slice(0, 8)}` }, finish_reason: null }]),
      `data: ${JSON.stringify({ error: { message: `bad ${code}`, type: 'server_error' } })}\n\n`,
    ]
    const script = await registerScript(gateway(), [{ sse: frames }])
    const answer = await callWay(CHAT_WAY, redacting, script, { stream: true })
    expect(answer.text).toContain(`bad ${HIDDEN}`)
    for (const trace of tracesOf(code)) expect(answer.text).not.toContain(trace)
    expectBalance(await recordOf(redacting, answer))
  })
})

describe('of a messages answer', () => {
  const event = (data: { type: string } & Record<string, unknown>) =>
    `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`
  const START = framesOf('messages', [], undefined, false)
  const END = framesOf('messages', []).slice(1)
  const block = (index: number, content_block: object, ...deltas: object[]) => [
    event({ type: 'content_block_start', index, content_block }),
    ...deltas.map((delta) => event({ type: 'content_block_delta', index, delta })),
    event({ type: 'content_block_stop', index }),
  ]
  const streamOf = async (...frames: string[]) => {
    const script = await registerScript(gateway(), [{ sse: [...START, ...frames, ...END] }])
    return callWay(MESSAGES_WAY, redacting, script, { stream: true })
  }

  it.each(['at its beginning', 'at its end'])(
    'thinking with a value %s loses its signature',
    async (where) => {
      const code = someCode()
      const text = where === 'at its end' ? `so ${code}` : `${code} is it, I think`
      const answer = await callWay(MESSAGES_WAY, redacting, await answerScript('messages', [think(text)]), {
        stream: true,
      })
      expect(toldBy(answer.text)).toMatchObject({ reasoning: text.replace(code, HIDDEN), signature: '' })
      const whole = await callWay(MESSAGES_WAY, redacting, await answerScript('messages', [think(text)]))
      expect(toldIn(jsonOf(whole))).toMatchObject({ reasoning: text.replace(code, HIDDEN), signature: '' })
      for (const each of [answer, whole]) expectBalance(await recordOf(redacting, each))
    },
  )

  it('thinking that is not changed keeps it, also where its end was held back', async () => {
    const script = await answerScript('messages', [think('so KX-12'), say('x')])
    const answer = await callWay(MESSAGES_WAY, redacting, script, { stream: true })
    expect(toldBy(answer.text)).toMatchObject({ reasoning: 'so KX-12', signature: 'c2ln' })
    const deltas = payloadsOf(answer.text).flatMap(({ delta }) => (delta as { type?: string })?.type ?? [])
    expect(deltas.lastIndexOf('thinking_delta')).toBeLessThan(deltas.indexOf('signature_delta'))
  })

  it('a signature that stands before its thinking is lost with it', async () => {
    const code = someCode()
    const json = {
      type: 'message',
      role: 'assistant',
      content: [{ signature: 'c2ln', type: 'thinking', thinking: code }],
    }
    const answer = await callWay(
      MESSAGES_WAY,
      redacting,
      await registerAnswers(gateway(), [{ steps: [{ json }] }]),
    )
    expect(jsonOf(answer).content).toEqual([{ signature: '', type: 'thinking', thinking: HIDDEN }])
  })

  it('a text that begins with its block is one with its deltas', async () => {
    const code = someCode()
    const start = { type: 'text', text: `so ${code.slice(0, 6)}` }
    const answer = await streamOf(...block(0, start, { type: 'text_delta', text: code.slice(6) }))
    for (const trace of tracesOf(code)) expect(answer.text).not.toContain(trace)
    expect(answer.text).toContain(HIDDEN)
    expectBalance(await recordOf(redacting, answer))
  })

  it('citations, results of searches and inputs of server tools are edited', async () => {
    const code = someCode()
    const citation = {
      type: 'char_location',
      cited_text: code,
      document_title: `T ${code}`,
      start_char_index: 1,
    }
    const found = [
      { type: 'web_search_result', title: code, url: `https://a.example/${code}`, encrypted_content: 'x' },
    ]
    const frames = [
      ...block(0, {
        type: 'server_tool_use',
        id: 's',
        name: 'web_search',
        input: { query: code, [code]: 1 },
      }),
      ...block(1, { type: 'web_search_tool_result', tool_use_id: 's', content: found }),
      ...block(
        2,
        { type: 'text', text: '' },
        { type: 'text_delta', text: 'x' },
        { type: 'citations_delta', citation },
      ),
    ]
    const answer = await streamOf(...frames)
    for (const trace of tracesOf(code)) expect(answer.text).not.toContain(trace)
    expect(answer.text.split(HIDDEN)).toHaveLength(1 + 2 + 2 + 2)
    expectBalance(await recordOf(redacting, answer))
  })

  it('an unknown kind of delta is inspected across its pieces', async () => {
    const code = someCode()
    const pieces = cut(`so ${code} and KX-12`, [4]).map((content) => ({ type: 'compaction_delta', content }))
    const answer = await streamOf(...block(0, { type: 'compaction', content: '' }, ...pieces))
    const deltas = payloadsOf(answer.text).map(({ delta }) => (delta ?? {}) as Record<string, string>)
    expect(deltas.map(({ content }) => content ?? '').join('')).toBe(`so ${HIDDEN} and KX-12`)
    expect(new Set(deltas.map(({ type }) => type))).toEqual(new Set(['compaction_delta', undefined]))
    expectBalance(await recordOf(redacting, answer))
  })

  it('an error in the middle is told without the value', async () => {
    const code = someCode()
    const error = event({ type: 'error', error: { type: 'api_error', message: `bad ${code}` } })
    const answer = await callWay(
      MESSAGES_WAY,
      redacting,
      await registerScript(gateway(), [
        { sse: [...framesOf('messages', [say(`so ${code.slice(0, 7)}`)], [9], false), error] },
      ]),
      { stream: true },
    )
    expect(answer.text).toContain(`bad ${HIDDEN}`)
    for (const trace of tracesOf(code)) expect(answer.text).not.toContain(trace)
    expectBalance(await recordOf(redacting, answer))
    const translated = await callWay(
      CHAT_TO_MESSAGES,
      redacting,
      await registerScript(gateway(), [{ sse: [...START, error] }]),
      { stream: true },
    )
    expect(translated.text).toContain(`bad ${HIDDEN}`)
    expectBalance(await recordOf(redacting, translated))
  })
})

it('a text that is not UTF-8 is edited where the value stands', async () => {
  const code = someCode()
  const bytes = Buffer.concat([
    Buffer.from('{"choices":[{"index":0,"text":"a '),
    Buffer.from([0xff, 0xe2, 0x82, 0xf0, 0x9f]),
    Buffer.from(` ${code} b","finish_reason":"stop"}]}`),
  ])
  const whole = [
    { status: 200, headers: { 'content-type': 'application/json' } },
    { chunkBase64: bytes.toString('base64') },
    { end: true as const },
  ]
  const streamed = [
    { status: 200, headers: { 'content-type': 'text/event-stream' } },
    {
      chunkBase64: Buffer.concat([
        Buffer.from('data: '),
        bytes,
        Buffer.from('\n\ndata: [DONE]\n\n'),
      ]).toString('base64'),
    },
    { end: true as const },
  ]
  for (const [stream, steps] of [
    [false, whole],
    [true, streamed],
  ] as const) {
    const script = await registerAnswers(gateway(), [{ steps }])
    const answer = await callWay(COMPLETIONS_WAY, redacting, script, { stream })
    expect(answer.text).toContain(` ${HIDDEN} b`)
    for (const trace of tracesOf(code)) expect(answer.text).not.toContain(trace)
    expectBalance(await recordOf(redacting, answer))
  }
})
