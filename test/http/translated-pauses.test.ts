import { beforeAll, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { auditEntryOf } from '../harness/records.ts'
import { type Answer, jsonOf, send } from '../harness/send.ts'
import { bearer, createTenant, type Tenant } from '../harness/tenant.ts'
import { marker, registerAnswers, type ScriptAnswer, seenRequests } from '../harness/upstream.ts'
import {
  CHAT_ON_MESSAGES,
  COMPLETION_PAIRS,
  endOf,
  payloadsOf,
  streamedText,
  type TranslatedPair,
  wholeText,
} from './support/translated-pairs.ts'

type Json = Record<string, unknown>

const { opening, text: textFrame, ending, whole } = CHAT_ON_MESSAGES.upstream
const COMPLETION = COMPLETION_PAIRS.find(({ upstream }) => upstream.protocol === 'messages') as TranslatedPair
let tenant: Tenant

beforeAll(async () => {
  tenant = await createTenant(gateway())
})

const SEARCH = { web_search_options: {} }
const STREAMED = { stream: true, stream_options: { include_usage: true } }
const CALLERS: Array<[name: string, pair: TranslatedPair, more: Json]> = [
  ['chat, whole', CHAT_ON_MESSAGES, SEARCH],
  ['chat, streamed', CHAT_ON_MESSAGES, { ...SEARCH, ...STREAMED }],
  ['completions, whole', COMPLETION, {}],
  ['completions, streamed', COMPLETION, STREAMED],
]

function call({ route, request }: TranslatedPair, text: string, more: Json): Promise<Answer> {
  const body = JSON.stringify(request(text, more))
  return send(gateway().baseUrl + route.path, { method: 'POST', headers: bearer(tenant.key), body })
}

interface Told {
  text: string
  finishes: unknown[]
  usage: unknown
}

/** An answer in either form. */
function toldBy(answer: Answer): Told {
  expect(answer.status, answer.text).toBe(200)
  const streamed = answer.headers['content-type']?.includes('event-stream')
  const payloads = streamed ? payloadsOf(answer.text) : [jsonOf(answer)]
  const choices = payloads.flatMap(({ choices }) => choices as Array<{ finish_reason: unknown }>)
  return {
    text: streamed ? streamedText(answer.text) : wholeText(jsonOf(answer)),
    finishes: choices.map(({ finish_reason }) => finish_reason).filter((reason) => reason !== null),
    usage: payloads.findLast(({ usage }) => usage)?.usage,
  }
}

/** An answer that says a text and then pauses, or ends. */
const says = (text: string, stopReason: string): ScriptAnswer => {
  const turn = (frame: string) => frame.replaceAll('"end_turn"', `"${stopReason}"`)
  return {
    streamed: [{ sse: [...opening, textFrame(text), ...ending].map(turn) }],
    whole: [{ json: JSON.parse(turn(JSON.stringify(whole(text)))) }],
  }
}

describe.each(CALLERS)('a turn that its provider paused, for a caller of %s', (_, pair, more) => {
  it('ends as cut off, in one request that is charged as reported', async () => {
    const mark = marker()
    const script = await registerAnswers(gateway(), [says('one', 'pause_turn'), says('two', 'end_turn')])
    const answer = await call(pair, `${mark} ${script}`, more)
    const told = toldBy(answer)
    expect(told).toMatchObject({ text: 'one', finishes: ['length'] })
    expect(told.usage).toMatchObject({ prompt_tokens: 3, completion_tokens: 5 })
    if ('stream' in more) expect(answer.text.endsWith(endOf(pair.route))).toBe(true)
    expect(await seenRequests(gateway(), mark)).toHaveLength(1)
    const { record } = await auditEntryOf(gateway(), tenant, answer.headers['x-request-id'])
    expect(record).toMatchObject({
      status: 200,
      errorCode: null,
      provenance: 'reported',
      usage: { input: 3, output: 5 },
    })
    expect(record.attempts).toHaveLength(1)
  })
})

const CHAT_FORMS = CALLERS.filter(([, pair]) => pair === CHAT_ON_MESSAGES)

describe.each(CHAT_FORMS)('a paused turn of %s', (_, pair, more) => {
  it('goes on when its caller sends the answer back', async () => {
    const mark = marker()
    const script = await registerAnswers(gateway(), [says('one', 'pause_turn'), says('two', 'end_turn')])
    const question = { role: 'user', content: `${mark} ${script}` }
    const first = toldBy(await call(pair, '', { ...more, messages: [question] }))
    const messages = [question, { role: 'assistant', content: first.text }]
    const second = toldBy(await call(pair, '', { ...more, messages }))
    expect(second).toMatchObject({ text: 'two', finishes: ['stop'] })
    const [, seen] = await seenRequests(gateway(), mark)
    expect((JSON.parse(seen?.body ?? '') as { messages: Json[] }).messages.at(-1)).toMatchObject({
      role: 'assistant',
      content: [{ type: 'text', text: 'one' }],
    })
  })

  it('that called a function is told with the call', async () => {
    const tool = { type: 'tool_use', id: 'toolu_1', name: 'look', input: { at: 1 } }
    const json = {
      ...whole('one'),
      content: [{ type: 'text', text: 'one' }, tool],
      stop_reason: 'pause_turn',
    }
    const frame = (data: Json) => `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`
    const streamed = [
      ...opening,
      textFrame('one'),
      frame({ type: 'content_block_stop', index: 0 }),
      frame({ type: 'content_block_start', index: 1, content_block: tool }),
      frame({ type: 'content_block_stop', index: 1 }),
      frame({ type: 'message_delta', delta: { stop_reason: 'pause_turn' }, usage: { output_tokens: 5 } }),
      frame({ type: 'message_stop' }),
    ]
    const script = await registerAnswers(gateway(), [{ streamed: [{ sse: streamed }], whole: [{ json }] }])
    const tools = [{ type: 'function', function: { name: 'look', parameters: { type: 'object' } } }]
    const answer = await call(pair, script, { ...more, tools })
    expect(toldBy(answer)).toMatchObject({ text: 'one', finishes: ['length'] })
    expect(answer.text).toContain('"id":"toolu_1"')
  })
})

it('a native caller of messages is told the pause, and its turn goes on with the content that it sends back', async () => {
  const ask = async (messages: Json[]) =>
    jsonOf(
      await send(`${gateway().baseUrl}/v1/messages`, {
        method: 'POST',
        headers: bearer(tenant.key),
        body: JSON.stringify({
          model: CHAT_ON_MESSAGES.model,
          max_tokens: 500,
          tools: [{ type: 'web_search_20250305', name: 'web_search' }],
          messages,
        }),
      }),
    )
  const question = { role: 'user', content: `${marker()} script:pause-turn` }
  const paused = await ask([question])
  expect(paused).toMatchObject({ stop_reason: 'pause_turn' })
  const ended = await ask([question, { role: 'assistant', content: paused.content }])
  expect(ended, JSON.stringify(ended)).toMatchObject({ stop_reason: 'end_turn' })
})
