import { describe, expect, it } from 'vitest'
import type { Json } from '../../../../../src/gateway/protocols/json.ts'
import { usageOfGenerateContent } from '../../../../../src/gateway/protocols/reported-usage.ts'
import { GenerateContentDecoder } from '../../../../../src/gateway/translation/events/generate-content-decoder.ts'
import {
  functionCall,
  GENERATE_CONTENT_STREAMS,
  last,
  text,
  thought,
  USAGE,
} from '../fixtures/generate-content-streams.ts'

const streamed = (name: string) => {
  const decoder = new GenerateContentDecoder()
  const stream = GENERATE_CONTENT_STREAMS[name] ?? []
  return stream.flatMap((chunk) => decoder.frame(null, chunk)).filter(({ type }) => type !== 'usage')
}
const whole = (parts: Json[], finishReason = 'STOP', more: Json = {}) =>
  new GenerateContentDecoder().answer(last(finishReason, parts, more))
const stop = (reason: string, explanation: string | null = null) => ({
  type: 'stop',
  choice: 0,
  reason,
  stopSequence: null,
  explanation,
})

describe('chunks of generateContent', () => {
  it('are increments of a text', () => {
    expect(streamed('text')).toEqual([
      {
        type: 'start',
        id: 'rsp_1',
        model: 'gemini-3-pro-preview',
        createdSeconds: null,
        usage: expect.anything(),
      },
      { type: 'text', choice: 0, text: 'Hel' },
      { type: 'text', choice: 0, text: 'lo ' },
      { type: 'text', choice: 0, text: 'Ü😀.' },
      stop('end'),
    ])
  })

  it('have calls whole, and end with STOP after them too', () => {
    expect(streamed('parallelTools').slice(1)).toEqual([
      { type: 'tool_call', choice: 0, call: 0, id: 'f1', name: 'look', signature: 'U0lH' },
      { type: 'tool_arguments', choice: 0, call: 0, json: '{"q":[1,{"a":null}]}' },
      { type: 'tool_call', choice: 0, call: 1, id: 'f2', name: 'find' },
      { type: 'tool_arguments', choice: 0, call: 1, json: '{"q":2}' },
      stop('tool_calls'),
    ])
  })

  it('have a call without arguments', () => {
    expect(streamed('toolWithoutArguments')).toContainEqual({
      type: 'tool_arguments',
      choice: 0,
      call: 0,
      json: '{}',
    })
  })

  it('have the signature of a text after it', () => {
    expect(streamed('textSigned').slice(1)).toEqual([
      { type: 'text', choice: 0, text: 'Hello' },
      { type: 'reasoning_signature', choice: 0, signature: 'U2lnbmVk' },
      stop('end'),
    ])
  })

  it('are a refusal without a candidate where the prompt is blocked', () => {
    expect(streamed('blocked').slice(1)).toEqual([
      stop('refusal', 'The provider blocked the prompt: PROHIBITED_CONTENT.'),
    ])
  })
})

describe('an answer of generateContent', () => {
  it.each([
    ['STOP', 'end'],
    ['MAX_TOKENS', 'length'],
    ['CONTINUATION', 'length'],
    ['SAFETY', 'refusal'],
    ['RECITATION', 'refusal'],
    ['BLOCKLIST', 'refusal'],
    ['SPII', 'refusal'],
    ['LANGUAGE', 'refusal'],
    ['IMAGE_SAFETY', 'refusal'],
    ['OF_TOMORROW', 'end'],
  ])('that ends with %s has the reason %s', (finishReason, reason) => {
    expect(whole([text('a')], finishReason)).toContainEqual(stop(reason))
  })

  it('keeps thoughts apart, and invents the id of a call without one', () => {
    const events = whole([thought('So.'), functionCall('f', { a: 1 })])
    expect(events.slice(1, 3)).toEqual([
      { type: 'reasoning', choice: 0, text: 'So.' },
      { type: 'tool_call', choice: 0, call: 0, id: expect.stringMatching(/^call_\w{22}$/), name: 'f' },
    ])
  })

  it('has its usage once the thoughts are counted as output', () => {
    expect(whole([text('a')]).at(-1)).toEqual({
      type: 'usage',
      usage: {
        input: 15,
        cacheRead: 5,
        cacheWrite5Minutes: 0,
        cacheWrite1Hour: 0,
        output: 37,
        reasoning: 30,
      },
    })
  })
})

describe('usageOfGenerateContent', () => {
  const usage = (more: Json) => usageOfGenerateContent({ ...USAGE, ...more })

  it('adds what the provider’s tools read to the input', () => {
    expect(usage({ toolUsePromptTokenCount: 100, totalTokenCount: 157 })).toMatchObject({
      input: 115,
      output: 37,
    })
  })

  it('takes thoughts that are in the total alone', () => {
    const { thoughtsTokenCount: _thoughts, ...others } = USAGE
    expect(usageOfGenerateContent(others)).toMatchObject({ output: 37, reasoning: 0 })
  })

  it('counts audio and images apart', () => {
    expect(
      usage({
        promptTokensDetails: [
          { modality: 'TEXT', tokenCount: 8 },
          { modality: 'AUDIO', tokenCount: 12 },
        ],
        cacheTokensDetails: [{ modality: 'AUDIO', tokenCount: 2 }],
        candidatesTokensDetails: [{ modality: 'IMAGE', tokenCount: 4 }],
      }),
    ).toMatchObject({ input: 5, cacheRead: 5, output: 33, units: { audio_input: 10, image_output: 4 } })
  })

  it.each([null, 'x', {}, { promptTokenCount: 'many' }])('is none in %j', (value) => {
    expect(usageOfGenerateContent(value)).toBeNull()
  })
})
