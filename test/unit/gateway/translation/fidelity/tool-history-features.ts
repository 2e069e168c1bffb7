import type { Json } from '../../../../../src/gateway/protocols/json.ts'
import { assistant, becomes, conversation, type Group, refused, text, user } from './features.ts'
import { CHAT_TOOLS, MESSAGES_TOOLS } from './tool-features.ts'

const call = (id: string, json = '{"city":"Bern"}', name = 'look'): Json => ({
  id,
  type: 'function',
  function: { name, arguments: json },
})
const use = (id: string, input: Json = { city: 'Bern' }, name = 'look'): Json => ({
  type: 'tool_use',
  id,
  name,
  input,
})
const answered = (id: string, content: unknown, more: Json = {}): Json => ({
  role: 'tool',
  tool_call_id: id,
  content,
  ...more,
})
const result = (id: string, content: unknown, more: Json = {}): Json => ({
  type: 'tool_result',
  tool_use_id: id,
  content,
  ...more,
})
const IMAGE = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } }
const IMAGE_PART = { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }
const HELLO = user('Hello')
const called = assistant(null, { tool_calls: [call('call_1')] })
const using = assistant([use('call_1')])
const chatHistory = (...messages: Json[]): Json => ({
  ...CHAT_TOOLS,
  ...conversation(HELLO, called, ...messages),
})
const messagesHistory = (...blocks: Json[]): Json => ({
  ...MESSAGES_TOOLS,
  ...conversation(HELLO, using, user(blocks)),
})
const REST = { chat: ['messages.1', 'messages.2', 'messages.3'], messages: ['messages.1', 'messages.2'] }
const LAST = { chat: ['messages.2', 'messages.3'], messages: ['messages.2.content'] }

export const toolHistory: Group = {
  title: 'Earlier calls and their results',
  features: [
    {
      name: 'Call and result',
      said: {
        chat: chatHistory(answered('call_1', 'Cold.')),
        messages: messagesHistory(result('call_1', 'Cold.')),
      },
      places: REST,
      expected: {
        'chat:messages': becomes({
          'messages.1': using,
          'messages.2': user([result('call_1', [text('Cold.')])]),
        }),
        'messages:chat': becomes({ 'messages.1': called, 'messages.2': answered('call_1', 'Cold.') }),
      },
    },
    {
      name: 'Parallel calls',
      said: {
        chat: {
          ...CHAT_TOOLS,
          ...conversation(
            HELLO,
            assistant('Both.', { tool_calls: [call('call_1'), call('call_2')] }),
            answered('call_1', 'Cold.'),
            answered('call_2', 'Warm.'),
          ),
        },
        messages: {
          ...MESSAGES_TOOLS,
          ...conversation(
            HELLO,
            assistant([text('Both.'), use('call_1'), use('call_2')]),
            user([result('call_1', 'Cold.'), result('call_2', 'Warm.')]),
          ),
        },
      },
      places: REST,
      expected: {
        'chat:messages': becomes({
          'messages.1': assistant([text('Both.'), use('call_1'), use('call_2')]),
          'messages.2': user([result('call_1', [text('Cold.')]), result('call_2', [text('Warm.')])]),
        }),
        'messages:chat': becomes({
          'messages.1': assistant('Both.', { tool_calls: [call('call_1'), call('call_2')] }),
          'messages.2': answered('call_1', 'Cold.'),
          'messages.3': answered('call_2', 'Warm.'),
        }),
      },
    },
    {
      name: 'Result with an image',
      said: {
        chat: chatHistory(answered('call_1', [text('Here.'), IMAGE_PART])),
        messages: messagesHistory(result('call_1', [text('Here.'), IMAGE])),
      },
      places: LAST,
      expected: {
        'chat:messages': becomes({ 'messages.2.content': [result('call_1', [text('Here.'), IMAGE])] }),
        'messages:chat': becomes({
          'messages.2': answered('call_1', 'Here.'),
          'messages.3': user([IMAGE_PART]),
        }),
      },
      note: 'on chat a message of the user that follows',
    },
    {
      name: 'Result that is an error',
      said: { messages: messagesHistory(result('call_1', 'No such city.', { is_error: true })) },
      places: LAST,
      expected: { 'messages:chat': becomes({ 'messages.2': answered('call_1', 'Error: No such city.') }) },
      note: 'marked in its text',
    },
    {
      name: 'Text of the user beside a result',
      said: {
        chat: chatHistory(answered('call_1', 'Cold.'), user('And now?')),
        messages: messagesHistory(result('call_1', 'Cold.'), text('And now?')),
      },
      places: LAST,
      expected: {
        'chat:messages': becomes({
          'messages.2.content': [result('call_1', [text('Cold.')]), text('And now?')],
        }),
        'messages:chat': becomes({
          'messages.2': answered('call_1', 'Cold.'),
          'messages.3': user('And now?'),
        }),
      },
    },
    {
      name: '`cache_control` within a result',
      said: {
        chat: chatHistory(answered('call_1', [text('Cold.', { cache_control: { type: 'ephemeral' } })])),
        messages: messagesHistory(result('call_1', 'Cold.', { cache_control: { type: 'ephemeral' } })),
      },
      places: {
        chat: ['messages.2.content.0.cache_control', 'messages.2.cache_control'],
        messages: ['messages.2.content.0.cache_control'],
      },
      expected: { 'messages:chat': 'dropped' },
      note: 'on messages the result itself is marked',
    },
    {
      name: 'Arguments that are not JSON',
      said: {
        chat: {
          ...CHAT_TOOLS,
          ...conversation(
            HELLO,
            assistant(null, { tool_calls: [call('call_1', '{"city":')] }),
            answered('call_1', 'Try again.'),
          ),
        },
      },
      places: { chat: ['messages.1.tool_calls.0.function'], messages: ['messages.1.content.0.input'] },
      expected: {
        'chat:messages': becomes({ 'messages.1.content.0.input': { INVALID_JSON: '{"city":' } }),
      },
      note: 'messages takes objects only; the text is wrapped in one',
    },
    {
      name: 'Id that the other protocol does not take',
      said: {
        chat: {
          ...CHAT_TOOLS,
          ...conversation(
            HELLO,
            assistant(null, { tool_calls: [call('look:0')] }),
            answered('look:0', 'Cold.'),
          ),
        },
        messages: {
          ...MESSAGES_TOOLS,
          ...conversation(
            HELLO,
            assistant([use(`toolu_${'x'.repeat(40)}`)]),
            user([result(`toolu_${'x'.repeat(40)}`, 'Cold.')]),
          ),
        },
      },
      places: {
        chat: ['messages.1.tool_calls.0.id', 'messages.2.tool_call_id'],
        messages: ['messages.1.content.0.id', 'messages.2.content.0.tool_use_id'],
      },
      expected: {
        'chat:messages': becomes({
          'messages.1.content.0.id': 'call_1',
          'messages.2.content.0.tool_use_id': 'call_1',
        }),
        'messages:chat': becomes({
          'messages.1.tool_calls.0.id': 'call_1',
          'messages.2.tool_call_id': 'call_1',
        }),
      },
      note: 'numbered, the same in every request of the conversation',
    },
    {
      name: 'Calls in a conversation that offers no tools now',
      said: {
        chat: conversation(HELLO, called, answered('call_1', 'Cold.')),
        messages: conversation(HELLO, using, user([result('call_1', 'Cold.')])),
      },
      places: { chat: ['messages.1', 'tools'], messages: ['messages.1', 'tools', 'tool_choice'] },
      expected: {
        'chat:messages': becomes({
          'messages.1': using,
          tools: [
            {
              name: 'look',
              description: 'Was used earlier and cannot be called any more.',
              input_schema: { type: 'object' },
            },
          ],
          tool_choice: { type: 'none' },
        }),
        'messages:chat': becomes({ 'messages.1': called }),
      },
      note: 'providers of messages require the tools; none of them may be called',
    },
    {
      name: 'Call without a result',
      said: { chat: { ...CHAT_TOOLS, ...conversation(HELLO, called, user('And now?')) } },
      places: REST,
      expected: { 'chat:messages': refused('has no tool message') },
      note: 'every provider refuses it; here before the call is sent',
    },
    {
      name: 'Earlier calls of a tool of the provider, with their results',
      said: {
        messages: conversation(
          HELLO,
          assistant([
            { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'Bern' } },
            { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [] },
            text('It is cold.'),
          ]),
          user('And now?'),
        ),
      },
      places: { chat: ['messages.1'], messages: ['messages.1'] },
      expected: { 'messages:chat': becomes({ 'messages.1': assistant('It is cold.') }) },
      note: 'the assistant’s text about them is kept',
    },
  ],
}
