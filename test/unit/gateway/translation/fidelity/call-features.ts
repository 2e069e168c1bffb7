import type { Json } from '../../../../../src/gateway/protocols/json.ts'
import { choice, content, MESSAGE } from './answer-features.ts'
import { type AnswerFeature, becomes, type Expected, type Group, type PairName, text } from './features.ts'
import { LONG_NAME, SHORT_NAME } from './tool-features.ts'

const call = (id: string, name: string, json: string): Json => ({
  id,
  type: 'function',
  function: { name, arguments: json },
})
const use = (id: string, name: string, input: Json): Json => ({ type: 'tool_use', id, name, input })
const chatCalls = (...calls: Json[]) => choice({ content: null, tool_calls: calls }, 'tool_calls')
const messagesCalls = (...blocks: Json[]): Json => ({ content: blocks, stop_reason: 'tool_use' })
const CALLS = {
  chat: [`${MESSAGE}.tool_calls`],
  messages: ['content'],
  completions: ['choices.0.tool_calls'],
}
const calledIn = (chat: Json[], messages: Json[]) => ({
  said: { chat: chatCalls(...chat), messages: messagesCalls(...messages) },
  places: CALLS,
  expected: {
    'chat:messages': becomes({ [`${MESSAGE}.tool_calls`]: chat }),
    'messages:chat': becomes({ content: messages }),
    'completions:chat': 'dropped',
    'completions:messages': 'dropped',
  } as Partial<Record<PairName, Expected>>,
})
const CHAT_HEAD = { id: 'chatcmpl-7', object: 'chat.completion.chunk', created: 1, model: 'upstream-model' }
const delta = (part: Json, finishReason: string | null = null): Json => ({
  ...CHAT_HEAD,
  choices: [{ index: 0, delta: part, logprobs: null, finish_reason: finishReason }],
})
const fragment = (index: number, more: Json) => delta({ tool_calls: [{ index, ...more }] })

export const calls: Group<AnswerFeature> = {
  title: 'Tool calls',
  features: [
    {
      name: 'Call',
      ...calledIn([call('toolu_a', 'look', '{"city":"Bern"}')], [use('toolu_a', 'look', { city: 'Bern' })]),
      note: 'completions have no tools',
    },
    {
      name: 'Parallel calls',
      ...calledIn(
        [call('toolu_a', 'look', '{"city":"Bern"}'), call('toolu_b', 'look', '{"city":"Thun"}')],
        [use('toolu_a', 'look', { city: 'Bern' }), use('toolu_b', 'look', { city: 'Thun' })],
      ),
    },
    {
      name: 'Call without arguments',
      ...calledIn([call('toolu_a', 'now', '{}')], [use('toolu_a', 'now', {})]),
    },
    {
      name: 'Calls whose fragments are interleaved',
      forms: ['streamed'],
      said: { chat: {} },
      streams: {
        chat: [
          delta({ role: 'assistant' }),
          fragment(0, call('call_a', 'look', '{"city":')),
          fragment(1, call('call_b', 'look', '{"city":')),
          fragment(0, { function: { arguments: '"Bern"}' } }),
          fragment(1, { function: { arguments: '"Thun"}' } }),
          delta({}, 'tool_calls'),
          '[DONE]',
        ],
      },
      places: CALLS,
      expected: {
        'messages:chat': becomes({
          content: [use('call_a', 'look', { city: 'Bern' }), use('call_b', 'look', { city: 'Thun' })],
        }),
        'completions:chat': 'dropped',
      },
      note: 'blocks of messages are sequential: the second waits for the first',
    },
    {
      name: 'Name of a tool that was shortened',
      onlyOn: ['messages:chat'],
      asked: { messages: { tools: [{ name: LONG_NAME, input_schema: { type: 'object' } }] } },
      said: { chat: chatCalls(call('call_a', SHORT_NAME, '{}')) },
      places: CALLS,
      expected: { 'messages:chat': becomes({ content: [use('call_a', LONG_NAME, {})] }) },
      note: 'the caller’s own name',
    },
    {
      name: 'Text before calls',
      said: {
        chat: choice({ content: 'Both.', tool_calls: [call('call_a', 'now', '{}')] }, 'tool_calls'),
        messages: messagesCalls(text('Both.'), use('toolu_a', 'now', {})),
      },
      places: {
        chat: [`${MESSAGE}.content`, `${MESSAGE}.tool_calls`],
        messages: ['content'],
        completions: ['choices.0.text'],
      },
      expected: {
        'chat:messages': becomes({
          [`${MESSAGE}.content`]: 'Both.',
          [`${MESSAGE}.tool_calls`]: [call('toolu_a', 'now', '{}')],
        }),
        'messages:chat': becomes({ content: [text('Both.'), use('call_a', 'now', {})] }),
        'completions:chat': becomes({ 'choices.0.text': 'Both.' }),
        'completions:messages': becomes({ 'choices.0.text': 'Both.' }),
      },
    },
    {
      name: 'Text after a call',
      said: { messages: messagesCalls(use('toolu_a', 'now', {}), text('Wait.')) },
      places: {
        chat: [`${MESSAGE}.content`, `${MESSAGE}.tool_calls`],
        messages: ['content'],
        completions: ['choices.0.text'],
      },
      expected: {
        'chat:messages': becomes({
          [`${MESSAGE}.content`]: 'Wait.',
          [`${MESSAGE}.tool_calls`]: [call('toolu_a', 'now', '{}')],
        }),
        'completions:messages': becomes({ 'choices.0.text': 'Wait.' }),
      },
      note: 'chat does not keep the order of text and calls',
    },
    {
      name: 'Arguments that are not JSON',
      forms: ['whole'],
      said: { chat: chatCalls(call('call_a', 'look', '{"city":')) },
      places: { chat: [`${MESSAGE}.tool_calls.0.function.arguments`], messages: ['content.0.input'] },
      expected: {
        'messages:chat': becomes({ 'content.0.input': { INVALID_JSON: '{"city":' } }),
        'completions:chat': 'dropped',
      },
      note: 'under the vendor’s own key for them; on a stream unchanged',
    },
    {
      name: 'Calls of a tool of the provider, and what it gave',
      said: {
        messages: content(
          { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'Bern' } },
          { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [] },
          text('It is cold.'),
        ),
      },
      places: { chat: [`${MESSAGE}.tool_calls`], messages: ['content.0', 'content.1'] },
      expected: { 'chat:messages': 'dropped', 'completions:messages': 'dropped' },
      note: 'its results are in the text, with their sources',
    },
    {
      name: 'Turn that the provider paused',
      said: { messages: { content: [text('One moment.')], stop_reason: 'pause_turn' } },
      asked: { chat: { web_search_options: {} } },
      places: {
        chat: ['choices.0.finish_reason'],
        messages: ['stop_reason'],
        completions: ['choices.0.finish_reason'],
      },
      expected: {
        'chat:messages': becomes({ 'choices.0.finish_reason': 'length' }),
        'completions:messages': becomes({ 'choices.0.finish_reason': 'length' }),
      },
      note: '`length`; the caller may send the answer back to continue it',
    },
  ],
}
