import type { Json } from '../../../../../src/gateway/protocols/json.ts'
import { type AnswerFeature, becomes, type Expected, type Group, type PairName } from './features.ts'

const chatChoice = (finishReason: string, more: Json = {}): Json => ({
  choices: [
    {
      index: 0,
      message: { role: 'assistant', content: 'Hello' },
      logprobs: null,
      finish_reason: finishReason,
      ...more,
    },
  ],
})
const REASON = 'choices.0.finish_reason'
const WHY = { chat: [REASON], messages: ['stop_reason', 'stop_sequence'], completions: [REASON] }

/** Chat completions and completions have the same words for it, but for calls. */
const ended = (
  name: string,
  { chat, messages, more = {} }: { chat?: string; messages?: string; more?: Json },
  [onChat, onMessages, onCompletions = onChat]: [onChat: string, onMessages?: string, onCompletions?: string],
  note = '',
): AnswerFeature => ({
  name,
  said: {
    ...(chat ? { chat: chatChoice(chat) } : {}),
    ...(messages ? { messages: { stop_reason: messages, ...more } } : {}),
  },
  places: WHY,
  expected: {
    'chat:messages': becomes({ [REASON]: onChat }),
    'messages:chat': becomes({ stop_reason: onMessages }),
    'completions:chat': chat === onCompletions ? 'kept' : becomes({ [REASON]: onCompletions }),
    'completions:messages': becomes({ [REASON]: onCompletions }),
  },
  note,
})

const endings: Group<AnswerFeature> = {
  title: 'Why it ended',
  features: [
    ended('Ordinary end', { chat: 'stop', messages: 'end_turn' }, ['stop', 'end_turn']),
    ended('`max_tokens` reached', { chat: 'length', messages: 'max_tokens' }, ['length', 'max_tokens']),
    ended('Calls tools', { chat: 'tool_calls', messages: 'tool_use' }, ['tool_calls', 'tool_use', 'stop']),
    ended('Content filter', { chat: 'content_filter' }, ['content_filter', 'refusal']),
    ended('Refusal', { messages: 'refusal' }, ['content_filter']),
    ended(
      'Stop sequence',
      { messages: 'stop_sequence', more: { stop_sequence: '#' } },
      ['stop'],
      'as an ordinary end, without the sequence: chat has no such stop reason',
    ),
    ended('Context window full', { messages: 'model_context_window_exceeded' }, ['length']),
    ended('A reason of tomorrow', { chat: 'tired', messages: 'tired' }, ['stop', 'end_turn']),
  ],
}

const chatUsage = (more: Json): Json => ({
  usage: { prompt_tokens: 50, completion_tokens: 9, total_tokens: 59, ...more },
})
const messagesUsage = (more: Json): Json => ({ usage: { input_tokens: 50, output_tokens: 9, ...more } })
const TOLD = ['usage.prompt_tokens', 'usage.completion_tokens', 'usage.total_tokens']
const TOTALS = { chat: TOLD, messages: ['usage.input_tokens', 'usage.output_tokens'], completions: TOLD }
const totals = (input: number, output: number, total: number) => ({
  'usage.prompt_tokens': input,
  'usage.completion_tokens': output,
  'usage.total_tokens': total,
})
const CACHED = 'usage.prompt_tokens_details.cached_tokens'
const WRITTEN = 'usage.prompt_tokens_details.cache_write_tokens'
const THOUGHT = 'usage.completion_tokens_details.reasoning_tokens'

const usage: Group<AnswerFeature> = {
  title: 'Usage',
  features: [
    {
      name: 'Tokens in and out',
      said: { chat: chatUsage({}), messages: messagesUsage({}), completions: chatUsage({}) },
      places: TOTALS,
      expected: {
        'chat:messages': becomes(totals(50, 9, 59)),
        'messages:chat': becomes({ 'usage.input_tokens': 50, 'usage.output_tokens': 9 }),
        'completions:messages': becomes(totals(50, 9, 59)),
      },
    },
    {
      name: 'Tokens read from the cache',
      said: {
        chat: chatUsage({ prompt_tokens_details: { cached_tokens: 20 } }),
        messages: messagesUsage({ cache_read_input_tokens: 20 }),
      },
      places: {
        chat: ['usage.prompt_tokens', CACHED],
        messages: ['usage.input_tokens', 'usage.cache_read_input_tokens'],
        completions: ['usage.prompt_tokens', CACHED],
      },
      expected: {
        'chat:messages': becomes({ 'usage.prompt_tokens': 70, [CACHED]: 20 }),
        'messages:chat': becomes({ 'usage.input_tokens': 30, 'usage.cache_read_input_tokens': 20 }),
        'completions:messages': becomes({ 'usage.prompt_tokens': 70, [CACHED]: 20 }),
      },
      note: 'a part of the prompt on chat, beside the input on messages',
    },
    {
      name: 'Tokens written to the cache, by ttl',
      said: {
        messages: messagesUsage({
          cache_creation_input_tokens: 30,
          cache_creation: { ephemeral_5m_input_tokens: 10, ephemeral_1h_input_tokens: 20 },
        }),
      },
      places: {
        chat: ['usage.prompt_tokens', WRITTEN],
        messages: ['usage.cache_creation'],
        completions: ['usage.prompt_tokens', WRITTEN],
      },
      expected: {
        'chat:messages': becomes({ 'usage.prompt_tokens': 80, [WRITTEN]: 30 }),
        'completions:messages': becomes({ 'usage.prompt_tokens': 80, [WRITTEN]: 30 }),
      },
      note: 'in one figure; credits are charged for both',
    },
    {
      name: 'Tokens of reasoning',
      said: {
        chat: chatUsage({ completion_tokens_details: { reasoning_tokens: 4 } }),
        messages: messagesUsage({ output_tokens_details: { thinking_tokens: 4 } }),
      },
      places: { chat: [THOUGHT], messages: ['usage.output_tokens_details'], completions: [THOUGHT] },
      expected: {
        'chat:messages': becomes({ [THOUGHT]: 4 }),
        'messages:chat': becomes({ 'usage.output_tokens_details': { thinking_tokens: 4 } }),
        'completions:messages': becomes({ [THOUGHT]: 4 }),
      },
    },
    {
      name: 'Calls of the provider’s tools',
      said: { messages: messagesUsage({ server_tool_use: { web_search_requests: 2 } }) },
      places: { chat: ['usage.server_tool_use'], messages: ['usage.server_tool_use'] },
      expected: { 'chat:messages': 'dropped', 'completions:messages': 'dropped' },
    },
    {
      name: 'Tokens of accepted and rejected predictions, of sound',
      said: {
        chat: chatUsage({ completion_tokens_details: { accepted_prediction_tokens: 3, audio_tokens: 2 } }),
      },
      places: {
        chat: ['usage.completion_tokens_details.accepted_prediction_tokens'],
        completions: ['usage.completion_tokens_details.accepted_prediction_tokens'],
      },
      expected: { 'messages:chat': 'dropped', 'completions:chat': 'dropped' },
    },
  ],
}

const LOGPROBS = {
  content: [{ token: 'Hello', logprob: -0.1, bytes: null, top_logprobs: [] }],
  refusal: null,
}
const TWO = [0, 1].map((index) => ({
  index,
  message: { role: 'assistant', content: `Answer ${index}` },
  logprobs: null,
  finish_reason: 'stop',
}))

const member = (
  name: string,
  value: unknown,
  wires: ReadonlyArray<'chat' | 'messages' | 'completions'>,
  expected: Partial<Record<PairName, Expected>>,
  note = '',
): AnswerFeature => ({
  name: `\`${name}\``,
  said: Object.fromEntries(wires.map((wire) => [wire, { [name]: value }])),
  places: { chat: [name], messages: [name], completions: [name] },
  expected,
  note,
})
const LOST = {
  'chat:messages': 'dropped',
  'messages:chat': 'dropped',
  'completions:chat': 'dropped',
  'completions:messages': 'dropped',
} as const

const frame: Group<AnswerFeature> = {
  title: 'Around it',
  features: [
    {
      name: 'Id',
      said: { chat: { id: 'chatcmpl-9' }, messages: { id: 'msg_9' }, completions: { id: 'cmpl-9' } },
      places: { chat: ['id'], messages: ['id'], completions: ['id'] },
      expected: {
        'chat:messages': becomes({ id: 'chatcmpl-msg_9' }),
        'messages:chat': becomes({ id: 'msg_chatcmpl-9' }),
        'completions:chat': becomes({ id: 'cmpl-9' }),
        'completions:messages': becomes({ id: 'cmpl-msg_9' }),
      },
      note: 'under the caller’s prefix',
    },
    {
      name: 'Model',
      said: {
        chat: { model: 'gpt-of-today' },
        messages: { model: 'claude-of-today' },
        completions: { model: 'gpt-of-today' },
      },
      places: { chat: ['model'], messages: ['model'], completions: ['model'] },
      expected: Object.fromEntries(
        [
          'chat:chat',
          'messages:messages',
          'completions:completions',
          'chat:messages',
          'messages:chat',
          'completions:chat',
          'completions:messages',
        ].map((pair) => [pair, becomes({ model: 'some-model' })]),
      ),
      note: 'always the id of the caller’s request',
    },
    member('created', 1_650_000_000, ['chat', 'completions'], { 'messages:chat': 'dropped' }),
    {
      name: 'Several choices',
      said: { chat: { choices: TWO } },
      places: {
        chat: ['choices.0.message.content', 'choices.1.message.content'],
        messages: ['content.1'],
        completions: ['choices.0.text', 'choices.1.text'],
      },
      asked: { chat: { n: 2 }, completions: { n: 2 } },
      expected: {
        'messages:chat': 'dropped',
        'completions:chat': becomes({ 'choices.0.text': 'Answer 0', 'choices.1.text': 'Answer 1' }),
      },
      note: 'callers of messages cannot request them; only the first would be sent',
    },
    {
      name: 'Log probabilities',
      said: { chat: chatChoice('stop', { logprobs: LOGPROBS }) },
      places: { chat: ['choices.0.logprobs.content'], completions: ['choices.0.logprobs'] },
      expected: { 'messages:chat': 'dropped', 'completions:chat': 'dropped' },
      note: 'refused on a translated call',
    },
    member('service_tier', 'flex', ['chat'], LOST),
    member('system_fingerprint', 'fp_1', ['chat', 'completions'], LOST),
    member('context_management', { applied_edits: [] }, ['messages'], LOST),
    member('a_member_of_tomorrow', { value: 1 }, ['chat', 'messages', 'completions'], LOST),
  ],
}

export const endingGroups: ReadonlyArray<Group<AnswerFeature>> = [endings, usage, frame]
