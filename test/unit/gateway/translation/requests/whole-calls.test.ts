import { describe, expect, it } from 'vitest'
import { parseFrame } from '../../../../../src/lib/sse.ts'
import {
  type CallOptions,
  encoder,
  encoderOf,
  eventsOf,
  type Json,
  requestOf,
  resultOf,
  textOf,
  translatedCall,
} from '../../translated-call-harness.ts'
import { refusal, target } from './requests.ts'

const SCHEMA = { type: 'object', properties: { a: {} } }
const FENCED = '```json\n{"a":1}\n```'
const completionOf = (content: string): Json => ({
  id: 'chatcmpl-1',
  choices: [{ index: 0, message: { content }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 3, completion_tokens: 5 },
})
const chunkOf = (delta: Json, finish: string | null = null): Json => ({
  id: 'chatcmpl-1',
  choices: [{ index: 0, delta, finish_reason: finish }],
})

describe('a schema that a chat model cannot be held to', () => {
  const asked = (capabilities: Parameters<typeof target>, stream = false): CallOptions => ({
    caller: 'messages',
    upstream: 'chat_completions',
    target: target(...capabilities),
    request: { stream, tools: [], output_config: { format: { type: 'json_schema', schema: SCHEMA } } },
  })
  const textIn = (answer: Json) => (answer.content as Json[]).map((block) => block.text).join('')

  it.each<[Parameters<typeof target>, string]>([
    [[], '{"a":1}'],
    [['json_object'], '{"a":1}'],
    [['json_schema'], FENCED],
  ])('has its answer rid of a code fence: %j', (capabilities, converted) => {
    expect(textIn(resultOf(asked(capabilities), completionOf(FENCED)))).toBe(converted)
  })

  it('has its stream rid of one too', () => {
    const call = translatedCall(asked([], true))
    const pieces = ['``', '`json\n{"a"', ':1}\n`', '``'].map((content) => chunkOf({ content }))
    const events = [...pieces, chunkOf({}, 'stop')].flatMap((chunk) => eventsOf(call, chunk))
    const encoding = encoderOf('messages')
    const converted = textOf([...events, ...call.ending()].flatMap((event) => encoding.frames(event)))
    const texts = converted
      .split('\n\n')
      .filter((frame) => frame.includes('text_delta'))
      .map((frame) => parseFrame(encoder.encode(`${frame}\n\n`)).data)
      .map((data) => JSON.parse(new TextDecoder().decode(data ?? new Uint8Array())).delta.text)
    expect(texts.join('')).toBe('{"a":1}')
  })

  it('leaves answers unchanged where JSON was not requested', () => {
    const options: CallOptions = { caller: 'messages', upstream: 'chat_completions', target: target() }
    expect(textIn(resultOf(options, completionOf(FENCED)))).toBe(FENCED)
  })
})

describe('long prompts of legacy completions', () => {
  const MEGABYTE = 1024 * 1024
  const long = `"é"\n${'a'.repeat(9 * MEGABYTE)}`
  const asked = (request: Json, upstream: 'messages' | 'chat_completions'): CallOptions => ({
    caller: 'completions',
    upstream,
    request: { stream: false, ...request },
  })

  it.each(['messages', 'chat_completions'] as const)(
    'do not count as a tree on the way to %s',
    (upstream) => {
      for (const prompt of [long, [long]]) {
        const [message] = requestOf(translatedCall(asked({ prompt }, upstream))).messages as Json[]
        const content = upstream === 'messages' ? [{ type: 'text', text: long }] : long
        expect(message?.content).toEqual(content)
      }
    },
  )

  it('are echoed unchanged, and refused above the limit', () => {
    const prompt = `"é"\n${'a'.repeat(20_000)}`
    const { choices } = resultOf(asked({ prompt, echo: true }, 'chat_completions'), completionOf('!'))
    expect((choices as Json[])[0]?.text).toBe(`${prompt}!`)
    expect(refusal(() => translatedCall(asked({ prompt: long, echo: true }, 'messages')))).toBe(
      'echo: a prompt of more than 8388608 bytes is not echoed by this model.',
    )
  })

  it('leave no room for anything else that is as large', () => {
    expect(refusal(() => translatedCall(asked({ prompt: 'a', stop: [long] }, 'messages')))).toMatch(
      /^The body is too large for a model of another protocol/,
    )
  })
})
