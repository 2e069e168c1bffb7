import type OpenAI from 'openai'
import { describe, expect, it } from 'vitest'
import { responsesCountRequest } from '../../../src/gateway/token-count/responses-count-request.ts'
import { ApiError } from '../../../src/lib/api-error.ts'

/** A body that the vendor's own types accept. */
const WEATHER = {
  model: 'gpt-6',
  instructions: 'Be brief.\n\nBe kind.',
  input: [
    {
      type: 'message',
      role: 'user',
      content: [
        { type: 'input_text', text: 'What is this, and how warm is it there?' },
        { type: 'input_image', image_url: 'data:image/png;base64,iVBORw0K', detail: 'auto' },
        { type: 'input_file', filename: 'map.pdf', file_data: 'data:application/pdf;base64,JVBERi0x' },
      ],
    },
    { type: 'message', role: 'assistant', content: 'Let me see.' },
    { type: 'function_call', call_id: 'toolu_01', name: 'get_weather', arguments: '{"place":"Oslo"}' },
    { type: 'function_call_output', call_id: 'toolu_01', output: '-4 °C' },
    { type: 'message', role: 'user', content: 'Thanks!' },
  ],
  tools: [
    {
      type: 'function',
      name: 'get_weather',
      description: 'Tells the weather.',
      parameters: { type: 'object', properties: { place: { type: 'string' } } },
      strict: false,
    },
  ],
  tool_choice: { type: 'function', name: 'get_weather' },
  parallel_tool_calls: false,
} satisfies OpenAI.Responses.InputTokenCountParams

describe('the request to the counter of the responses protocol', () => {
  it('says what the call would say', () => {
    const request = {
      model: 'our-name',
      max_tokens: 100,
      system: [
        { type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral' } },
        { type: 'text', text: 'Be kind.' },
      ],
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'What is this, and how warm is it there?' },
            { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBORw0K' } },
            {
              type: 'document',
              title: 'map',
              source: { type: 'base64', media_type: 'application/pdf', data: 'JVBERi0x' },
            },
          ],
        },
        {
          role: 'assistant',
          content: [
            { type: 'thinking', thinking: 'Oslo, I think.', signature: 'c2ln' },
            { type: 'text', text: 'Let me see.' },
            { type: 'tool_use', id: 'toolu_01', name: 'get_weather', input: { place: 'Oslo' } },
          ],
        },
        {
          role: 'user',
          content: [
            { type: 'tool_result', tool_use_id: 'toolu_01', content: [{ type: 'text', text: '-4 °C' }] },
            { type: 'text', text: 'Thanks!' },
          ],
        },
      ],
      tools: [
        {
          name: 'get_weather',
          description: 'Tells the weather.',
          input_schema: { type: 'object', properties: { place: { type: 'string' } } },
        },
      ],
      tool_choice: { type: 'tool', name: 'get_weather', disable_parallel_tool_use: true },
    }
    expect(responsesCountRequest(request, 'gpt-6')).toEqual(WEATHER)
  })

  it('says no more than there is', () => {
    const request = {
      model: 'x',
      messages: [{ role: 'user', content: 'hi' }],
      thinking: { type: 'disabled' },
    }
    expect(responsesCountRequest(request, 'gpt-6')).toEqual({
      model: 'gpt-6',
      input: [{ type: 'message', role: 'user', content: 'hi' }],
    })
  })

  it('counts the beginning of an answer', () => {
    const messages = [
      { role: 'user', content: 'Count to three.' },
      { role: 'assistant', content: 'One, two' },
    ]
    expect(responsesCountRequest({ messages }, 'gpt-6').input).toEqual([
      { type: 'message', role: 'user', content: 'Count to three.' },
      { type: 'message', role: 'assistant', content: 'One, two' },
    ])
  })

  it.each(['output_format', 'output_config'])('says the form of the answer: %s', (member) => {
    const schema = { type: 'object', properties: {}, additionalProperties: false, required: [] }
    const format = { type: 'json_schema', schema }
    const request = {
      messages: [{ role: 'user', content: 'hi' }],
      [member]: member === 'output_format' ? format : { format },
    }
    expect(responsesCountRequest(request, 'gpt-6').text).toEqual({
      format: { type: 'json_schema', name: 'answer', strict: true, schema },
    })
  })

  it.each(['auto', 'any', 'none'])('says whether tools may be called: %s', (type) => {
    const tools = [{ name: 'look', input_schema: { type: 'object' } }]
    const request = { messages: [{ role: 'user', content: 'hi' }], tools, tool_choice: { type } }
    expect(responsesCountRequest(request, 'gpt-6').tool_choice).toBe(type === 'any' ? 'required' : type)
  })

  it('refuses what the call itself would be refused for', () => {
    const messages = [{ role: 'user', content: [{ type: 'container_upload', file_id: 'file_1' }] }]
    expect(() => responsesCountRequest({ messages }, 'gpt-6')).toThrow(ApiError)
    const tools = [{ type: 'web_search_20250305', name: 'web_search' }]
    expect(() => responsesCountRequest({ messages: [], tools }, 'gpt-6')).toThrow(ApiError)
  })
})
