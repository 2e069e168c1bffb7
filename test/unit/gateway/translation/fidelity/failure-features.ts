import type { Json } from '../../../../../src/gateway/protocols/json.ts'
import { type AnswerFeature, becomes, type Expected, type Group, text } from './features.ts'

const CHAT_BEGUN: Json = {
  id: 'chatcmpl-7',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'upstream-model',
  choices: [{ index: 0, delta: { role: 'assistant', content: 'Hel' }, logprobs: null, finish_reason: null }],
}
const CHAT_FINISHED: Json = {
  ...CHAT_BEGUN,
  choices: [{ index: 0, delta: {}, logprobs: null, finish_reason: 'stop' }],
}
const COMPLETION_BEGUN: Json = {
  ...CHAT_BEGUN,
  object: 'text_completion',
  choices: [{ index: 0, text: 'Hel', logprobs: null, finish_reason: null }],
}
const MESSAGES_BEGUN: Json[] = [
  {
    type: 'message_start',
    message: {
      id: 'msg_7',
      type: 'message',
      role: 'assistant',
      model: 'upstream-model',
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: { input_tokens: 5, output_tokens: 1 },
    },
  },
  { type: 'content_block_start', index: 0, content_block: text('') },
  { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hel' } },
]
const EVERY = { chat: {}, messages: {}, completions: {} }
const ERROR = { chat: ['error'], messages: ['error'], completions: ['error'] }
const TEXT_AND_ERROR = {
  chat: ['choices.0.message.content', 'error', 'ended'],
  messages: ['content.0.text', 'error', 'ended'],
  completions: ['choices.0.text', 'error', 'ended'],
}
const cut = (wire: 'chat' | 'messages' | 'completions'): Expected => {
  const message = 'The upstream ended its answer early.'
  const said = {
    chat: 'choices.0.message.content',
    messages: 'content.0.text',
    completions: 'choices.0.text',
  }
  return wire === 'messages'
    ? becomes({ [said[wire]]: 'Hel', error: { type: 'api_error', message }, ended: false })
    : becomes({
        [said[wire]]: 'Hel',
        error: { message, type: 'server_error', code: 'stream_error' },
        ended: true,
      })
}
const inTheStream = (message: string) =>
  becomes({ error: { message, type: 'server_error', code: 'stream_error' } })
const chatError = (message: string, type: string, code: string | null = null): Json => ({
  error: { message, type, param: null, code },
})
const messagesError = (message: string, type: string): Json => ({ type: 'error', error: { type, message } })
const WITH_STATUS = {
  chat: ['error', 'status'],
  messages: ['error', 'status'],
  completions: ['error', 'status'],
}

export const failures: Group<AnswerFeature> = {
  title: 'Failures',
  features: [
    {
      name: 'Error in place of an answer',
      forms: ['whole'],
      status: 429,
      said: {
        chat: chatError('Slow down.', 'rate_limit_error'),
        messages: messagesError('Slow down.', 'rate_limit_error'),
        completions: chatError('Slow down.', 'rate_limit_error'),
      },
      places: WITH_STATUS,
      expected: {
        'messages:chat': becomes({
          error: {
            type: 'rate_limit_error',
            message: "A limit of the model's provider is reached: Slow down.",
          },
          status: 429,
        }),
      },
      note: 'chat and completions receive the provider’s body unchanged (interface); on messages, a 429 says whose limit it is',
    },
    {
      name: 'Error: conversation too long',
      forms: ['whole'],
      status: 400,
      said: {
        chat: chatError('Too many tokens.', 'invalid_request_error', 'context_length_exceeded'),
        messages: messagesError('prompt is too long: 9 tokens', 'invalid_request_error'),
      },
      places: WITH_STATUS,
      expected: {
        'messages:chat': becomes({
          error: { type: 'invalid_request_error', message: 'prompt is too long: Too many tokens.' },
          status: 400,
        }),
      },
      note: 'with the message on which clients of messages compact the conversation',
    },
    {
      name: 'Error amid the stream',
      forms: ['streamed'],
      said: EVERY,
      streams: {
        chat: [CHAT_BEGUN, { error: { message: 'Overloaded.', type: 'server_error', code: 503 } }],
        messages: [
          ...MESSAGES_BEGUN,
          { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded.' } },
        ],
        completions: [
          COMPLETION_BEGUN,
          { error: { message: 'Overloaded.', type: 'server_error', code: 503 } },
        ],
      },
      places: ERROR,
      expected: {
        'chat:chat': inTheStream('Overloaded.'),
        'completions:completions': inTheStream('Overloaded.'),
        'chat:messages': inTheStream('Overloaded.'),
        'messages:chat': becomes({ error: { type: 'api_error', message: 'Overloaded.' } }),
        'completions:chat': inTheStream('Overloaded.'),
        'completions:messages': inTheStream('Overloaded.'),
      },
      note: 'its message in the caller’s format; the provider’s own code only on messages → messages',
    },
    {
      name: 'Stream that breaks off',
      forms: ['streamed'],
      said: EVERY,
      streams: { chat: [CHAT_BEGUN], messages: MESSAGES_BEGUN, completions: [COMPLETION_BEGUN] },
      places: TEXT_AND_ERROR,
      expected: {
        'chat:chat': cut('chat'),
        'messages:messages': cut('messages'),
        'completions:completions': cut('completions'),
        'chat:messages': cut('chat'),
        'messages:chat': cut('messages'),
        'completions:chat': cut('completions'),
        'completions:messages': cut('completions'),
      },
      note: 'the text so far, then an error',
    },
    {
      name: 'Stream without `[DONE]` after its finish reason',
      forms: ['streamed'],
      said: { chat: {} },
      streams: { chat: [CHAT_BEGUN, CHAT_FINISHED] },
      places: TEXT_AND_ERROR,
      expected: {
        'chat:chat': becomes({ 'choices.0.message.content': 'Hel', ended: true }),
        'messages:chat': becomes({ 'content.0.text': 'Hel', ended: true }),
        'completions:chat': becomes({ 'choices.0.text': 'Hel', ended: true }),
      },
      note: 'counts as complete, and the end is sent',
    },
  ],
}
