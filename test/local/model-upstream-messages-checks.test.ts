import { describe, expect, it } from 'vitest'
import { post, useUpstream } from './model-upstream-harness.ts'
import {
  adaptive,
  asking,
  budget,
  budgeted,
  format,
  heard,
  inUser,
  type Json,
  marked,
  object,
  refusalOf,
  result,
  said,
  text,
  tool,
  use,
} from './model-upstream-requests.ts'

useUpstream()

describe('messages refuses', () => {
  it.each<[string, string, Json]>([
    ['a member of chat completions', 'n: Extra inputs are not permitted', { n: 1 }],
    ['a member within a block', 'messages.0.content.0.text.x: Extra', inUser(text('hi', { x: 1 }))],
    ['a member within a message', 'messages.0.name: Extra', { messages: [{ ...asking, name: 'ada' }] }],
    ['a member of a beta that was not asked for', 'context_management: Extra', { context_management: {} }],
    ['text that is white space', 'must contain non-whitespace text', inUser(text(' \n'))],
    [
      'empty text within a result',
      'must be non-empty',
      { messages: [asking, said(use()), heard({ ...result(), content: [text('')] })] },
    ],
    [
      'an empty message',
      'messages.0: all messages must have non-empty content',
      { messages: [{ role: 'user', content: [] }] },
    ],
    [
      'the assistant first',
      'first message must use the "user" role',
      { messages: [said(text('hello')), asking] },
    ],
    [
      'text before the results',
      'without `tool_result` blocks immediately after',
      { messages: [asking, said(use()), heard(text('so'), result())] },
    ],
    [
      'two results of one call',
      'each tool_use must have a single result',
      { messages: [asking, said(use()), heard(result(), result())] },
    ],
    [
      'two calls of one id',
      '`tool_use` ids must be unique',
      { messages: [asking, said(use(), use()), heard(result())] },
    ],
    ['a call at the end', 'without `tool_result` blocks', { messages: [asking, said(use())] }],
    ['a call by the user', 'can only be in `assistant` messages', { messages: [heard(use())] }],
    [
      'an image of the assistant',
      'can only be in `user` messages',
      {
        messages: [
          asking,
          said({ type: 'image', source: { type: 'url', url: 'https://example.com/a.png' } }),
          asking,
        ],
      },
    ],
    [
      'a call id of other letters',
      "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
      { messages: [asking, said(use('call.1')), heard(result())] },
    ],
    [
      'input as text',
      'messages.1.content.0.tool_use.input: Input should be a valid dictionary',
      { messages: [asking, said(use('a', { input: '{}' }))] },
    ],
    [
      'an image of a kind unheard of',
      "image.source.base64.media_type: Input should be 'image/jpeg'",
      inUser({ type: 'image', source: { type: 'base64', media_type: 'image/bmp', data: 'AAAA' } }),
    ],
    [
      'a data URL in place of data',
      'valid base64 data',
      inUser({
        type: 'image',
        source: { type: 'base64', media_type: 'image/png', data: 'data:image/png;base64,AAAA' },
      }),
    ],
    [
      'an image of chat completions',
      "Input tag 'image_url' found using 'type'",
      inUser({ type: 'image_url', image_url: { url: 'https://example.com' } }),
    ],
    [
      'a document that is no PDF',
      'document.source.base64.media_type',
      inUser({ type: 'document', source: { type: 'base64', media_type: 'text/html', data: 'AAAA' } }),
    ],
    ['a tool of chat completions', 'Input tag', { tools: [{ type: 'function', function: { name: 'f' } }] }],
    ['a tool without schema', 'tools.0.custom.input_schema: Field required', { tools: [{ name: 'f' }] }],
    [
      'a schema that is no object',
      "tools.0.custom.input_schema.type: Input should be 'object'",
      { tools: [{ name: 'f', input_schema: { type: 'string' } }] },
    ],
    [
      'a tool with a dot in its name',
      "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
      { tools: [{ ...tool, name: 'a.b' }] },
    ],
    ['two tools of one name', 'Tool names must be unique', { tools: [tool, tool] }],
    ['a choice in the words of chat completions', 'tool_choice', { tools: [tool], tool_choice: 'auto' }],
    [
      'a choice without tools',
      'may only be specified while providing tools',
      { tool_choice: { type: 'auto' } },
    ],
    [
      'a choice of a tool unheard of',
      "Tool 'g' not found",
      { tools: [tool], tool_choice: { type: 'tool', name: 'g' } },
    ],
    ['a stop sequence of white space', 'must contain non-whitespace', { stop_sequences: ['\n\n'] }],
    ['stop sequences as text', 'stop_sequences: Input should be a valid list', { stop_sequences: 'END' }],
    ['a high temperature', 'temperature: Input should be less than or equal to 1', { temperature: 1.5 }],
    ['no max_tokens', 'max_tokens: Field required', { max_tokens: undefined }],
    [
      'too many tokens',
      'max_tokens: 99999 > 32000, which is the maximum',
      { model: adaptive, max_tokens: 99_999 },
    ],
    [
      'a small budget',
      'thinking.enabled.budget_tokens: Input should be greater than or equal to 1024',
      { ...budget, thinking: { type: 'enabled', budget_tokens: 10 } },
    ],
    [
      'a budget of all tokens',
      '`max_tokens` must be greater than `thinking.budget_tokens`',
      { ...budget, max_tokens: 1024 },
    ],
    ['temperature beside thinking', '`temperature` may only be set to 1', { ...budget, temperature: 0.5 }],
    ['top_p beside thinking', '`top_p` must be', { ...budget, top_p: 0.5 }],
    ['top_k beside thinking', '`top_k` must be unset', { ...budget, top_k: 3 }],
    [
      'a forced tool beside thinking',
      'Thinking may not be enabled when tool_choice forces tool use',
      { ...budget, tools: [tool], tool_choice: { type: 'any' } },
    ],
    [
      'a budget for a model without',
      '"thinking.type.enabled" is not supported for this model',
      { ...budget, model: adaptive },
    ],
    [
      'adaptive thinking for an older model',
      'adaptive thinking is not supported',
      { model: budgeted, thinking: { type: 'adaptive' } },
    ],
    [
      'temperature for a model without',
      '`temperature` is deprecated for this model',
      { model: adaptive, temperature: 0.5 },
    ],
    [
      'temperature beside top_p',
      'cannot both be specified',
      { model: budgeted, temperature: 0.5, top_p: 0.5 },
    ],
    [
      'an effort for a model without',
      'does not support the effort parameter',
      { model: budgeted, output_config: { effort: 'low' } },
    ],
    [
      'an effort unheard of',
      "output_config.effort: Input should be 'low', 'medium', 'high', 'xhigh' or 'max'",
      { output_config: { effort: 'minimal' } },
    ],
    [
      'a format for a model without',
      'does not support output format',
      { model: budgeted, ...format(object()) },
    ],
    [
      'an open schema',
      "'additionalProperties' must be explicitly set to false",
      format({ type: 'object', properties: {} }),
    ],
    [
      'an open schema within',
      "'additionalProperties: true' is not supported",
      format(object({ properties: { a: { type: 'object', additionalProperties: true } } })),
    ],
    [
      'bounds in a schema',
      "For 'integer' type, properties minimum are not supported",
      format(object({ properties: { a: { type: 'integer', minimum: 1 } } })),
    ],
    ['an open schema of a strict tool', 'tools.0.custom: For', { tools: [{ ...tool, strict: true }] }],
    [
      'the format of chat completions',
      'response_format: Extra',
      { response_format: { type: 'json_object' } },
    ],
    [
      'five cache markers',
      'A maximum of 4 blocks with cache_control may be provided. Found 5.',
      { system: [marked(), marked()], messages: [heard(marked(), marked(), marked())] },
    ],
    ['an odd lifetime', "cache_control.ttl: Input should be '5m' or '1h'", inUser(marked('2h'))],
    [
      'an hour after five minutes',
      "a ttl='1h' cache_control block must not come after",
      { system: [marked()], ...inUser(marked('1h')) },
    ],
    [
      'a prefilled answer',
      'does not support assistant message prefill',
      { model: adaptive, messages: [asking, said(text('{'))] },
    ],
    [
      'a prefilled answer that ends with a space',
      'cannot end with trailing whitespace',
      { messages: [asking, said(text('so '))] },
    ],
    [
      'a search without its result',
      'found without a corresponding `web_search_tool_result` block',
      {
        messages: [
          asking,
          said({ type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: {} }, text('so')),
          asking,
        ],
      },
    ],
    [
      'a result without its search',
      'must have a corresponding `server_tool_use` block',
      {
        messages: [
          asking,
          said({ type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [] }, text('so')),
          asking,
        ],
      },
    ],
    ['empty instructions', 'system: text content blocks must be non-empty', { system: [text('')] }],
  ])('%s', async (_, reason, more) => {
    const { message } = await refusalOf(await post('/v1/messages', 'hi', more))
    expect(message).toContain(reason)
  })

  it('members that a later version of the protocol dropped, and what a token count does not take', async () => {
    const version = { 'anthropic-version': '2026-10-21' }
    const later = await refusalOf(await post('/v1/messages', 'hi', { temperature: 1 }, version))
    expect(later.message).toBe('temperature: Extra inputs are not permitted')
    const count = await refusalOf(await post('/v1/messages/count_tokens', 'hi'))
    expect(count.message).toBe('max_tokens: Extra inputs are not permitted')
  })

  it('nothing of what the vendor takes', async () => {
    const rich = {
      model: 'claude-sonnet-4-6',
      system: [marked('1h')],
      tools: [tool, { type: 'web_search_20250305', name: 'web_search', max_uses: 3 }],
      tool_choice: { type: 'auto', disable_parallel_tool_use: true },
      metadata: { user_id: 'u' },
      context_management: {},
      ...format(object({ properties: { a: { type: 'array', items: { type: 'string' }, minItems: 1 } } })),
      messages: [
        heard(
          { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' } },
          text('a'),
        ),
        { role: 'user', content: 'b' },
        said(text('c'), use()),
        heard(
          {
            ...result(),
            content: [
              text('1'),
              { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'x' } },
            ],
            is_error: true,
          },
          text('d'),
        ),
      ],
    }
    const betas = { 'anthropic-beta': 'context-management-2025-06-27' }
    expect((await post('/v1/messages', '', rich, betas)).status).toBe(200)
  })
})
