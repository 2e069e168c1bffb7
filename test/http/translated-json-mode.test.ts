import { beforeAll, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { type Answer, jsonOf, send } from '../harness/send.ts'
import { bearer, createTenant, type Tenant } from '../harness/tenant.ts'
import { marker, registerAnswers, seenRequest } from '../harness/upstream.ts'
import {
  CHAT_ON_MESSAGES,
  MESSAGES_ON_CHAT,
  streamedText,
  type TranslatedPair,
  wholeText,
} from './support/translated-pairs.ts'

type Json = Record<string, unknown>

let tenant: Tenant

beforeAll(async () => {
  tenant = await createTenant(gateway())
})

const JSON_OBJECT = { response_format: { type: 'json_object' } }
const SCHEMA = {
  type: 'object',
  properties: { answer: { type: 'string' }, count: { type: 'integer' } },
  required: ['answer', 'count'],
  additionalProperties: false,
}
const JSON_SCHEMA = {
  response_format: { type: 'json_schema', json_schema: { name: 'answer', schema: SCHEMA } },
}
const TOOLS = { tools: [{ type: 'function', function: { name: 'look', parameters: { type: 'object' } } }] }
const FENCED = '```json\n{"answer": "fenced", "count": 3}\n```'
const RAW = '{"answer": "fenced", "count": 3}'

const forms = [
  ['whole', {}],
  ['streamed', { stream: true }],
] as const

async function call(pair: TranslatedPair, text: string, more: Json): Promise<string> {
  const body = JSON.stringify(pair.request(text, { max_tokens: 4_000, ...more }))
  const url = gateway().baseUrl + pair.route.path
  const answer: Answer = await send(url, { method: 'POST', headers: bearer(tenant.key), body })
  expect(answer.status, answer.text).toBe(200)
  return more.stream === true ? streamedText(answer.text) : wholeText(jsonOf(answer))
}

const chat = (text: string, more: Json) => call(CHAT_ON_MESSAGES, text, more)
const sentWith = async (text: string) => JSON.parse((await seenRequest(gateway(), text)).body) as Json

// The cases are those of the interface, JSON mode.
describe.each(forms)('JSON mode, %s', (_form, form) => {
  it('1: is forwarded to a provider that has it', async () => {
    const text = marker()
    const answered = await chat(`${text} as JSON`, { model: 'scripted-chat', ...JSON_OBJECT, ...form })
    expect(JSON.parse(answered)).toEqual({ answer: `${text} as JSON` })
    expect(await sentWith(text)).toMatchObject(JSON_OBJECT)
  })

  it.each(['scripted-messages', 'scripted-messages-thinking', 'scripted-messages-adaptive'])(
    '2: gives raw JSON without a fence on %s, and the upstream is asked for it',
    async (model) => {
      const text = marker()
      expect(await chat(`${text} script:fenced-json`, { model, ...JSON_OBJECT, ...form })).toBe(RAW)
      const sent = await sentWith(text)
      expect('response_format' in sent).toBe(false)
      expect(JSON.stringify(sent.system)).toMatch(/JSON object/)
      // Current models refuse a prefilled answer.
      expect((sent.messages as Json[]).at(-1)).toMatchObject({ role: 'user' })
    },
  )

  it('2: gives raw JSON in the default answer of a Claude model', async () => {
    const text = marker()
    expect(JSON.parse(await chat(text, { ...JSON_OBJECT, ...form }))).toEqual({ answer: text })
  })

  it('2: is asked for beside the system message of the caller', async () => {
    const text = marker()
    const messages = [
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: `${text} script:fenced-json` },
    ]
    expect(await chat('', { messages, ...JSON_OBJECT, ...form })).toBe(RAW)
    expect(JSON.stringify((await sentWith(text)).system)).toMatch(/Be brief\..*JSON object/)
  })

  it.each([
    ['is raw already', RAW, RAW],
    ['holds a fence inside', '{"code":"```json\\n{}\\n```"}', '{"code":"```json\\n{}\\n```"}'],
    ['is fenced and holds a fence', '```json\n{"code":"```"}\n```', '{"code":"```"}'],
    ['has spaces around', '  \n```JSON\r\n{"a":1}\r\n```\n\n', '{"a":1}'],
    ['is in a bare fence', '```\n[1]\n```', '[1]'],
    ['has words after its fence', '```json\n{"a":1}\n```\n\nDone.', '{"a":1}'],
    ['has words before its fence', 'Here is the JSON:\n\n```json\n{"a":1}\n```', '{"a":1}'],
    ['has words around bare JSON', 'Here it is:\n{"a":1}\n\nDone.', 'Here it is:\n{"a":1}\n\nDone.'],
    ['is prose', 'I cannot do that.', 'I cannot do that.'],
    ['is nothing', '', ''],
    ['ends within its fence', '```json\n{"a":', '{"a":'],
  ])('2: removes the fence where the answer %s', async (_what, said, expected) => {
    const { opening, text: frame, ending, whole } = CHAT_ON_MESSAGES.upstream
    const pieces = said.match(/[\s\S]{1,3}/g) ?? []
    const script = await registerAnswers(gateway(), [
      { streamed: [{ sse: [...opening, ...pieces.map(frame), ...ending] }], whole: [{ json: whole(said) }] },
    ])
    expect(await chat(script, { ...JSON_OBJECT, ...form })).toBe(expected)
  })

  it('3: has no effect on a provider without it', async () => {
    const text = marker()
    const model = 'scripted-chat-plain'
    expect(await chat(`${text} script:fenced-json`, { model, ...JSON_OBJECT, ...form })).toBe(FENCED)
    expect('response_format' in (await sentWith(text))).toBe(false)
  })

  it('4: leaves tools as they are, and the answer as it comes', async () => {
    const text = marker()
    expect(await chat(`${text} script:fenced-json`, { ...TOOLS, ...JSON_OBJECT, ...form })).toBe(FENCED)
    const sent = await sentWith(text)
    expect(sent.tools).toMatchObject([{ name: 'look' }])
    expect(JSON.stringify(sent)).not.toMatch(/JSON object/)
  })

  it.each([
    ['reasoning_effort', { reasoning_effort: 'high' }],
    ['thinking', { thinking: { type: 'enabled', budget_tokens: 1_024 } }],
  ])('5: leaves %s as it is', async (_member, thinks) => {
    const text = marker()
    const model = 'scripted-messages-thinking'
    const answered = await chat(`${text} script:fenced-json`, { model, ...thinks, ...JSON_OBJECT, ...form })
    expect([RAW, FENCED]).toContain(answered)
    expect(await sentWith(text)).toMatchObject({ thinking: { type: 'enabled' } })
  })

  it('takes a schema as the output format of a Claude model', async () => {
    const text = marker()
    const answered = await chat(text, { ...JSON_SCHEMA, ...form })
    expect(JSON.parse(answered)).toEqual({ answer: expect.any(String), count: expect.any(Number) })
    expect((await sentWith(text)).output_config).toMatchObject({
      format: { type: 'json_schema', schema: SCHEMA },
    })
  })

  it('takes a schema beside tools and thinking, too', async () => {
    const text = marker()
    const model = 'scripted-messages-adaptive'
    await chat(text, { model, reasoning_effort: 'low', ...TOOLS, ...JSON_SCHEMA, ...form })
    const sent = await sentWith(text)
    expect(sent.output_config).toMatchObject({ format: { type: 'json_schema' } })
    expect(sent.tools).toHaveLength(1)
  })

  it('asks for a schema in words where the Claude model has no output format', async () => {
    const text = marker()
    const model = 'scripted-messages-thinking'
    expect(await chat(`${text} script:fenced-json`, { model, ...JSON_SCHEMA, ...form })).toBe(RAW)
    expect(JSON.stringify((await sentWith(text)).system)).toContain('additionalProperties')
  })

  it("takes the output format of messages as a chat model's schema", async () => {
    const text = marker()
    const format = { output_config: { format: { type: 'json_schema', schema: SCHEMA } } }
    const answered = await call(MESSAGES_ON_CHAT, text, { ...format, ...form })
    expect(JSON.parse(answered)).toEqual({ answer: expect.any(String), count: expect.any(Number) })
    expect((await sentWith(text)).response_format).toMatchObject({
      type: 'json_schema',
      json_schema: { schema: SCHEMA },
    })
  })
})

describe('a fence on a stream', () => {
  it('is cut wherever the stream is cut', async () => {
    const { opening, text: frame, ending } = CHAT_ON_MESSAGES.upstream
    for (const size of [1, 2, 5, 7, 1_000]) {
      const pieces = FENCED.match(new RegExp(`[\\s\\S]{1,${size}}`, 'g')) ?? []
      const script = await registerAnswers(gateway(), [
        { steps: [{ sse: [...opening, ...pieces.map(frame), ...ending] }] },
      ])
      expect(await chat(script, { ...JSON_OBJECT, stream: true })).toBe(RAW)
    }
  })

  it('is cut when the turn was paused within it', async () => {
    const { opening, text: frame, ending } = CHAT_ON_MESSAGES.upstream
    const sse = [...opening, frame('```json\n{"a":'), ...ending].map((each) =>
      each.replace('end_turn', 'pause_turn'),
    )
    const script = await registerAnswers(gateway(), [{ steps: [{ sse }] }])
    const more = { web_search_options: {}, ...JSON_OBJECT, stream: true }
    expect(await chat(script, more)).toBe('{"a":')
  })
})
