import type { Json } from '../../../../../src/gateway/protocols/json.ts'
import {
  assistant,
  becomes,
  conversation,
  type Expected,
  type Feature,
  type Group,
  type PairName,
  refused,
  text,
  user,
  type Wire,
} from './features.ts'

const HELLO = user('Hello')
const thought = (signature: string) => ({ type: 'thinking', thinking: 'Hm.', signature })
const thinks = (block: Json) => conversation(HELLO, assistant([block, text('Hi.')]), user('And now?'))
const SECOND = { chat: ['messages.1.reasoning_content'], messages: ['messages.1.content.0.signature'] }

export const thoughtFeatures: Group = {
  title: 'Earlier reasoning, sent back',
  features: [
    {
      name: 'Thinking with its signature',
      said: { messages: thinks(thought('c2ln')) },
      places: SECOND,
      expected: { 'messages:chat': 'dropped' },
      note: 'only its own family can verify it',
    },
    {
      name: 'Thinking without a signature (of a model of another family)',
      said: { messages: thinks(thought('')) },
      places: {
        chat: SECOND.chat,
        messages: ['messages.1.content.0.thinking', 'messages.1.content.0.signature'],
      },
      expected: { 'messages:messages': 'dropped', 'messages:chat': 'dropped' },
      note: 'providers that sign thinking would refuse it',
    },
    {
      name: 'Redacted thinking',
      said: { messages: thinks({ type: 'redacted_thinking', data: 'c2VhbGVk' }) },
      places: { chat: SECOND.chat, messages: ['messages.1.content.0.data'] },
      expected: { 'messages:chat': 'dropped' },
      note: 'only its own family can open it',
    },
    {
      name: '`reasoning_content`',
      said: { chat: conversation(HELLO, assistant('Hi.', { reasoning_content: 'Hm.' }), user('And now?')) },
      places: { chat: SECOND.chat, messages: ['messages.1.content.0.thinking'] },
      expected: { 'chat:messages': 'dropped' },
      note: 'without a signature it is no thinking block',
    },
  ],
}

const EVERY = ['chat', 'messages', 'completions'] as const
const HERE_AND_THERE = {
  'chat:messages': 'dropped',
  'messages:chat': 'dropped',
  'completions:chat': 'dropped',
  'completions:messages': 'dropped',
} as const

const member = (
  name: string,
  value: unknown,
  wires: readonly Wire[],
  expected: Partial<Record<PairName, Expected>>,
  note = '',
): Feature => ({
  name: `\`${name}\``,
  said: Object.fromEntries(wires.map((wire) => [wire, { [name]: value }])),
  places: { chat: [name], messages: [name], completions: [name] },
  expected,
  note,
})

export const serviceFeatures: Group = {
  title: 'The provider’s services, and the rest',
  features: [
    {
      name: 'Stream',
      said: { chat: { stream: true }, messages: { stream: true }, completions: { stream: true } },
      places: { chat: ['stream'], messages: ['stream'], completions: ['stream'] },
      expected: {},
    },
    member(
      'metadata',
      { user_id: 'u-1' },
      EVERY,
      {
        'chat:chat': 'dropped',
        'messages:messages': 'dropped',
        'completions:completions': 'dropped',
        ...HERE_AND_THERE,
      },
      'removed on every call (interface)',
    ),
    {
      name: '`user`, `safety_identifier`',
      said: { chat: { user: 'u-1' }, completions: { user: 'u-1' } },
      places: { chat: ['user'], messages: ['metadata'], completions: ['user'] },
      expected: {
        'chat:messages': becomes({ metadata: { user_id: 'u-1' } }),
        'completions:messages': becomes({ metadata: { user_id: 'u-1' } }),
      },
    },
    {
      name: '`user` that is an e-mail address or telephone number',
      said: { chat: { user: 'ada@example.com' }, completions: { user: 'ada@example.com' } },
      places: { chat: ['user'], messages: ['metadata'], completions: ['user'] },
      expected: { 'chat:messages': 'dropped', 'completions:messages': 'dropped' },
      note: 'providers of messages refuse it',
    },
    {
      name: '`service_tier`',
      said: { chat: { service_tier: 'flex' }, messages: { service_tier: 'standard_only' } },
      places: { chat: ['service_tier'], messages: ['service_tier'] },
      expected: { 'chat:messages': 'dropped', 'messages:chat': 'dropped' },
      note: 'tiers of one provider',
    },
    member('store', true, ['chat'], { 'chat:messages': 'dropped' }),
    member('inference_geo', 'us', ['messages'], {
      'messages:chat': refused('region of inference'),
    }),
    member('mcp_servers', [{ type: 'url', url: 'https://mcp.example', name: 'm' }], ['messages'], {
      'messages:chat': refused('MCP servers'),
    }),
    member('container', 'container_1', ['messages'], { 'messages:chat': refused('containers') }),
    member(
      'context_management',
      { edits: [{ type: 'clear_tool_uses_20250919' }] },
      ['messages'],
      {
        'messages:chat': 'dropped',
      },
      'the whole conversation is sent',
    ),
    member(
      'thread',
      { id: 'thread_1' },
      ['messages'],
      { 'messages:messages': refused('thread is not supported'), 'messages:chat': refused('thread') },
      'threads of a provider would be open to every organization',
    ),
    member(
      'a_member_of_tomorrow',
      { value: 1 },
      EVERY,
      HERE_AND_THERE,
      'between equal protocols every member passes as it was sent',
    ),
  ],
}

const PROMPT = { chat: ['messages'], messages: ['messages'], completions: ['prompt'] }

export const completionFeatures: Group = {
  title: 'Legacy completions alone',
  features: [
    {
      name: 'Prompt',
      said: { completions: { prompt: 'Once upon a time' } },
      places: PROMPT,
      expected: {
        'completions:chat': becomes(conversation(user('Once upon a time'))),
        'completions:messages': becomes(conversation(user([text('Once upon a time')]))),
      },
      note: 'a message of the user: a chat model answers it instead of continuing it',
    },
    {
      name: 'Several prompts',
      said: { completions: { prompt: ['One', 'Two'] } },
      places: PROMPT,
      expected: {
        'completions:chat': refused('only one prompt'),
        'completions:messages': refused('only one prompt'),
      },
      note: 'send one request for each prompt, or use a model with native completions',
    },
    {
      name: 'Prompt of tokens',
      said: { completions: { prompt: [9906, 1917] } },
      places: PROMPT,
      expected: {
        'completions:chat': refused('prompts of tokens'),
        'completions:messages': refused('prompts of tokens'),
      },
    },
    member('suffix', 'The end.', ['completions'], {
      'completions:chat': refused('suffix'),
      'completions:messages': refused('suffix'),
    }),
    member('best_of', 3, ['completions'], {
      'completions:chat': refused('best of several'),
      'completions:messages': refused('best of several'),
    }),
  ],
}
