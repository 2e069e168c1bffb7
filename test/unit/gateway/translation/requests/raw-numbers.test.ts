import { describe, expect, it } from 'vitest'
import {
  isObject,
  type Json,
  numberOf,
  objectIn,
  objectOf,
  parseJson,
} from '../../../../../src/gateway/protocols/json.ts'
import { constrainedSchema } from '../../../../../src/gateway/translation/requests/schemas.ts'
import { toolInput } from '../../../../../src/gateway/translation/tool-input.ts'
import { fromChat, fromMessages, refusal, target } from './requests.ts'

const HUGE = '12345678901234567890'
const huge = parseJson(HUGE)
const parsed = (text: string) => objectOf(parseJson(text))

describe('a number of more digits than a number has here', () => {
  it('is no object, and has a numeric value', () => {
    expect(JSON.stringify(huge)).toBe(HUGE)
    expect(isObject(huge)).toBe(false)
    expect(objectOf(huge)).toEqual({})
    expect(numberOf(huge)).toBe(Number(HUGE))
    expect([1.5, '1', null, undefined, {}, [1], true].map(numberOf)).toEqual([
      1.5,
      ...Array(6).fill(undefined),
    ])
  })

  it('is no object in a text, and no input of a tool', () => {
    expect([HUGE, '1', '[1]', 'null', '"a"', '{"a"', ''].map(objectIn)).toEqual(Array(7).fill(null))
    expect(toolInput(HUGE)).toEqual({ INVALID_JSON: HUGE })
    expect(JSON.stringify(toolInput(`{"n":${HUGE}}`))).toBe(`{"n":${HUGE}}`)
    expect(toolInput(' ')).toEqual({})
  })

  const THINKING = parsed(`{"thinking":{"type":"enabled","budget_tokens":${HUGE}}}`)
  it.each<[Json, string, unknown]>([
    [THINKING, 'thinking', { type: 'enabled', budget_tokens: 8976 }],
    [{ max_tokens: huge }, 'max_tokens', 10_000],
    [{ max_completion_tokens: huge }, 'max_tokens', 10_000],
    [{ temperature: huge }, 'temperature', 1],
    [{ thinking: huge, response_format: huge, tool_choice: 'auto' }, 'max_tokens', 10_000],
    [{ user: huge, tools: [], web_search_options: huge }, 'metadata', undefined],
  ])('is a number from chat: %j', (members, name, said) => {
    expect(fromChat(members, target('reasoning'))[name]).toEqual(said)
  })

  it.each<[Json, string, unknown]>([
    [THINKING, 'reasoning_effort', 'high'],
    [{ max_tokens: huge }, 'max_completion_tokens', 10_000],
    [{ output_config: huge, thinking: huge, tool_choice: huge, system: huge }, 'reasoning_effort', undefined],
  ])('is a number from messages: %j', (members, name, said) => {
    expect(fromMessages(members, target('reasoning'))[name]).toEqual(said)
  })

  it('is a number where one is refused', () => {
    expect(refusal(() => fromChat({ n: huge }))).toBe('n: only one choice is supported by this model.')
  })

  it('is no content', () => {
    expect(refusal(() => fromChat({ messages: [{ role: 'user', content: [huge] }] }))).toBe(
      'messages.0.content.0: parts without a type are not supported by this model.',
    )
    expect(refusal(() => fromMessages({ messages: [{ role: 'user', content: [huge] }] }))).toBe(
      'messages.0.content.0: blocks without a type are not supported by this model.',
    )
  })

  it('is a plain value of a schema', () => {
    const schema = parsed(`{"const":${HUGE},"enum":[${HUGE}],"maximum":${HUGE}}`)
    expect(JSON.stringify(constrainedSchema(schema))).toBe(
      `{"const":${HUGE},"enum":[${HUGE}],"description":"(maximum: ${HUGE})"}`,
    )
  })
})
