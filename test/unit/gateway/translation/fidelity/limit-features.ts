import { becomes, type Expected, type Feature, type Group, type PairName, refused } from './features.ts'

const REASONS = ['reasoning', 'json_object', 'json_schema', 'vision']

/** A top-level member of one name. */
const member = (
  name: string,
  value: unknown,
  wires: ReadonlyArray<'chat' | 'messages' | 'completions'>,
  expected: Partial<Record<PairName, Expected>>,
  more: Partial<Feature> = {},
): Feature => ({
  name: `\`${name}\``,
  said: Object.fromEntries(wires.map((wire) => [wire, { [name]: value }])),
  places: { chat: [name], messages: [name], completions: [name] },
  expected,
  ...more,
})

const LIMITS = {
  chat: ['max_tokens', 'max_completion_tokens'],
  messages: ['max_tokens'],
  completions: ['max_tokens'],
}
const STOP = { chat: ['stop'], messages: ['stop_sequences'], completions: ['stop'] }
const NO_TWIN = { 'chat:messages': 'dropped', 'completions:messages': 'dropped' } as const

export const limitFeatures: Group = {
  title: 'Length, stop, sampling',
  features: [
    {
      name: 'Most tokens of the answer',
      said: { chat: { max_tokens: 500 }, messages: { max_tokens: 500 }, completions: { max_tokens: 500 } },
      places: LIMITS,
      expected: {},
    },
    {
      name: 'The same, model that reasons',
      capabilities: REASONS,
      said: { chat: { max_tokens: 500 }, messages: { max_tokens: 500 }, completions: { max_tokens: 500 } },
      places: LIMITS,
      expected: {
        'messages:chat': becomes({ max_completion_tokens: 500 }),
        'completions:chat': becomes({ max_completion_tokens: 500 }),
      },
      note: 'chat models that reason refuse the older name',
    },
    {
      name: '`max_completion_tokens`',
      said: { chat: { max_completion_tokens: 500 } },
      places: { chat: ['max_completion_tokens'], messages: ['max_tokens'] },
      expected: { 'chat:messages': becomes({ max_tokens: 500 }) },
    },
    {
      name: 'More tokens than the model can give',
      said: {
        chat: { max_tokens: 900_000 },
        messages: { max_tokens: 900_000 },
        completions: { max_tokens: 900_000 },
      },
      places: LIMITS,
      expected: {
        'chat:messages': becomes({ max_tokens: 8_000 }),
        'messages:chat': becomes({ max_tokens: 8_000 }),
        'completions:messages': becomes({ max_tokens: 8_000 }),
      },
      note: 'the model’s maximum; between equal protocols the provider decides',
    },
    {
      name: 'Stop sequences',
      said: {
        chat: { stop: ['#'] },
        messages: { stop_sequences: ['#'] },
        completions: { stop: ['#'] },
      },
      places: STOP,
      expected: {
        'chat:messages': becomes({ stop_sequences: ['#'] }),
        'messages:chat': becomes({ stop: ['#'] }),
        'completions:messages': becomes({ stop_sequences: ['#'] }),
      },
    },
    {
      name: 'Stop sequence of white space alone',
      said: { chat: { stop: '\n' }, completions: { stop: ['\n'] } },
      places: STOP,
      expected: {
        'chat:messages': refused('white space alone'),
        'completions:messages': refused('white space alone'),
      },
      note: 'providers of messages refuse it',
    },
    {
      name: 'Stop sequences, model that reasons',
      capabilities: REASONS,
      said: {
        chat: { stop: ['#'] },
        messages: { stop_sequences: ['#'] },
        completions: { stop: ['#'] },
      },
      places: STOP,
      expected: {
        'chat:messages': becomes({ stop_sequences: ['#'] }),
        'messages:chat': becomes({ stop: ['#'] }),
        'completions:messages': becomes({ stop_sequences: ['#'] }),
      },
      note: 'passed on; some chat models that reason refuse them',
    },
    member('temperature', 0.5, ['chat', 'messages', 'completions'], {}),
    member(
      'temperature',
      1.5,
      ['chat', 'completions'],
      {
        'chat:messages': becomes({ temperature: 1 }),
        'completions:messages': becomes({ temperature: 1 }),
      },
      { name: '`temperature` above 1', note: 'the range of messages ends at 1' },
    ),
    member(
      'temperature',
      0.5,
      ['chat', 'messages', 'completions'],
      { 'messages:chat': 'dropped', 'completions:chat': 'dropped' },
      {
        name: '`temperature`, model that reasons',
        capabilities: REASONS,
        note: 'such chat models refuse it; on chat → chat it is passed on',
      },
    ),
    member(
      'temperature',
      0.5,
      ['chat', 'completions'],
      { ...NO_TWIN, 'completions:chat': 'dropped' },
      {
        name: '`temperature`, model that thinks adaptively',
        capabilities: [...REASONS, 'adaptive_thinking'],
        note: 'such models refuse it',
      },
    ),
    member('top_p', 0.5, ['chat', 'messages', 'completions'], {}),
    {
      name: '`top_p` beside `temperature`',
      said: {
        chat: { top_p: 0.5, temperature: 0.5 },
        messages: { top_p: 0.5, temperature: 0.5 },
        completions: { top_p: 0.5, temperature: 0.5 },
      },
      places: { chat: ['top_p'], messages: ['top_p'], completions: ['top_p'] },
      expected: NO_TWIN,
      note: 'models of messages take one of them',
    },
    member('top_k', 5, ['messages'], { 'messages:chat': 'dropped' }),
    member('seed', 7, ['chat', 'completions'], NO_TWIN),
    member('frequency_penalty', 0.5, ['chat', 'completions'], NO_TWIN),
    member('presence_penalty', 0.5, ['chat', 'completions'], NO_TWIN),
    member('logit_bias', { 50: -100 }, ['chat', 'completions'], NO_TWIN, {
      note: 'counts tokens of another tokenizer',
    }),
    member('logprobs', true, ['chat'], { 'chat:messages': refused('log probabilities') }),
    member(
      'logprobs',
      3,
      ['completions'],
      {
        'completions:chat': refused('log probabilities'),
        'completions:messages': refused('log probabilities'),
      },
      { name: '`logprobs` of completions' },
    ),
    member('n', 2, ['chat', 'completions'], {
      'chat:messages': refused('only one choice'),
      'completions:messages': refused('only one choice'),
    }),
    member('prediction', { type: 'content', content: 'Hello' }, ['chat'], NO_TWIN, {
      note: 'only makes the answer faster',
    }),
    member('verbosity', 'low', ['chat'], NO_TWIN),
  ],
}
