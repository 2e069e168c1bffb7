import { describe, expect, it } from 'vitest'
import {
  initialResponse,
  outputTextOf,
  responseUsage,
} from '../../../src/responses/model/response-members.ts'
import { type OutputItem, responseSettings } from '../../../src/wire/responses.ts'
import { checkResponseObject } from '../../harness/conformance-rules.ts'

const head = {
  responseId: 'resp_1',
  createdAt: 7_999,
  conversationId: null,
  compatibility: 'headgate' as const,
}
const violations = (response: object) => {
  const found: string[] = []
  checkResponseObject({ ...response }, (_rule, detail) => found.push(detail))
  return found
}

describe('a response at its beginning', () => {
  it('is whole where the request says nothing', () => {
    const response = initialResponse(responseSettings.parse({ model: 'm', store: false }), [], head)
    expect(violations(response)).toEqual([])
    expect(Object.values(response)).not.toContain(undefined)
    expect(response).toMatchObject({
      status: 'in_progress',
      created_at: 7,
      conversation: null,
      store: false,
      output: [],
      output_text: '',
      usage: null,
      tool_choice: 'auto',
      parallel_tool_calls: true,
      text: { format: { type: 'text' } },
      reasoning: null,
      temperature: 1,
      top_p: 1,
      metadata: {},
    })
  })

  it('is whole where the request says null', () => {
    const names = Object.keys(responseSettings.shape).filter((name) => name !== 'model')
    const nulls = Object.fromEntries(names.map((name) => [name, null]))
    const settings = responseSettings.parse({ model: 'm', ...nulls })
    expect(initialResponse(settings, [], head)).toEqual(
      initialResponse(responseSettings.parse({ model: 'm' }), [], head),
    )
  })

  it('says what the request asked for', () => {
    const asked = {
      model: 'm',
      instructions: 'Be brief.',
      previous_response_id: 'resp_0',
      tool_choice: { type: 'function', name: 'look' },
      metadata: { a: 'b' },
      background: true,
      max_output_tokens: 9,
      max_tool_calls: 3,
      parallel_tool_calls: false,
      text: { verbosity: 'low' },
      reasoning: { effort: 'high' },
      truncation: 'auto',
      temperature: 0,
      top_p: 0,
      top_logprobs: 2,
      presence_penalty: 0.5,
      frequency_penalty: -0.5,
      service_tier: 'flex',
      safety_identifier: 's',
      prompt_cache_key: 'k',
      user: 'u',
    }
    const tools = [{ type: 'shell' }]
    const settings = responseSettings.parse({ ...asked, tools, conversation: 'other', stream: true })
    const response = initialResponse(settings, tools, { ...head, conversationId: 'conv_1' })
    expect(violations(response)).toEqual([])
    expect(response).toMatchObject({
      ...asked,
      text: { verbosity: 'low', format: { type: 'text' } },
      reasoning: { effort: 'high', summary: null },
      conversation: { id: 'conv_1' },
      store: true,
      tools,
    })
    expect(response).not.toHaveProperty('stream')
  })
})

describe('usage', () => {
  it('counts what was cached as input, and reasoning as output', () => {
    const usage = {
      input: 1,
      cacheRead: 20,
      cacheWrite5Minutes: 300,
      cacheWrite1Hour: 4000,
      output: 50_000,
      reasoning: 6,
    }
    expect(responseUsage(usage)).toEqual({
      input_tokens: 4321,
      input_tokens_details: { cached_tokens: 20, cache_write_tokens: 4300 },
      output_tokens: 50_000,
      output_tokens_details: { reasoning_tokens: 6 },
      total_tokens: 54_321,
    })
  })

  it('has figures even where nothing is known', () => {
    const { input_tokens, output_tokens, total_tokens } = responseUsage(null)
    expect([input_tokens, output_tokens, total_tokens]).toEqual([0, 0, 0])
  })
})

describe('the text of an output', () => {
  it('is that of all messages, without refusals', () => {
    const text = (value: string) => ({
      type: 'output_text' as const,
      text: value,
      annotations: [],
      logprobs: [],
    })
    const message = { id: 'msg_1', type: 'message', role: 'assistant', status: 'completed' } as const
    const output: OutputItem[] = [
      { ...message, content: [text('a'), { type: 'refusal', refusal: 'no' }, text('b')] },
      { id: 'rs_1', type: 'reasoning', status: 'completed', summary: [{ type: 'summary_text', text: 'x' }] },
      { ...message, id: 'msg_2', content: [text('c')] },
    ]
    expect(outputTextOf(output)).toBe('abc')
    expect(outputTextOf([])).toBe('')
  })
})
