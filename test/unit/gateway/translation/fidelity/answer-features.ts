import type { Json } from '../../../../../src/gateway/protocols/json.ts'
import { type AnswerFeature, becomes, type Group, text } from './features.ts'

export const choice = (message: Json, finishReason = 'stop', more: Json = {}): Json => ({
  choices: [
    {
      index: 0,
      message: { role: 'assistant', ...message },
      logprobs: null,
      finish_reason: finishReason,
      ...more,
    },
  ],
})
export const content = (...blocks: Json[]): Json => ({ content: blocks })
export const MESSAGE = 'choices.0.message'
const SAID = { chat: [`${MESSAGE}.content`], messages: ['content'], completions: ['choices.0.text'] }

export const words: Group<AnswerFeature> = {
  title: 'Content',
  features: [
    {
      name: 'Text',
      said: {
        chat: choice({ content: 'Grüezi 🦉' }),
        messages: content(text('Grüezi 🦉')),
        completions: { choices: [{ index: 0, text: 'Grüezi 🦉', logprobs: null, finish_reason: 'stop' }] },
      },
      places: SAID,
      expected: {
        'chat:messages': becomes({ [`${MESSAGE}.content`]: 'Grüezi 🦉' }),
        'messages:chat': becomes({ content: [text('Grüezi 🦉')] }),
        'completions:chat': becomes({ 'choices.0.text': 'Grüezi 🦉' }),
        'completions:messages': becomes({ 'choices.0.text': 'Grüezi 🦉' }),
      },
    },
    {
      name: 'Several blocks of text',
      said: { messages: content(text('One, '), text('two.')) },
      places: SAID,
      expected: {
        'chat:messages': becomes({ [`${MESSAGE}.content`]: 'One, two.' }),
        'completions:messages': becomes({ 'choices.0.text': 'One, two.' }),
      },
      note: 'joined to one text',
    },
    {
      name: 'Code fence around requested JSON',
      onlyOn: ['chat:messages'],
      asked: { chat: { response_format: { type: 'json_object' } } },
      said: { messages: content(text('```json\n{"a": 1}\n```')) },
      places: SAID,
      expected: { 'chat:messages': becomes({ [`${MESSAGE}.content`]: '{"a": 1}' }) },
      note: 'removed',
    },
    {
      name: 'Text around requested JSON in a code fence',
      onlyOn: ['chat:messages'],
      asked: { chat: { response_format: { type: 'json_object' } } },
      said: { messages: content(text('Here is the JSON:\n```json\n{"a": 1}\n```\n\nDone.')) },
      places: SAID,
      expected: { 'chat:messages': becomes({ [`${MESSAGE}.content`]: '{"a": 1}' }) },
      note: 'removed: all text after the fence, and up to 1,024 characters before it; text without a fence is kept',
    },
    {
      name: 'Prompt before the answer (`echo`)',
      onlyOn: ['completions:chat', 'completions:messages'],
      asked: { completions: { prompt: 'Say hello. ', echo: true } },
      said: { chat: {}, messages: {} },
      places: SAID,
      expected: {
        'completions:chat': becomes({ 'choices.0.text': 'Say hello. Hello' }),
        'completions:messages': becomes({ 'choices.0.text': 'Say hello. Hello' }),
      },
    },
    {
      name: 'Refusal with a text of the model',
      said: { chat: choice({ content: null, refusal: 'I cannot do that.' }) },
      places: {
        chat: [`${MESSAGE}.refusal`],
        messages: ['content', 'stop_reason', 'stop_details'],
        completions: ['choices.0.text'],
      },
      expected: {
        'messages:chat': becomes({
          content: [text('I cannot do that.')],
          stop_reason: 'refusal',
          stop_details: { type: 'refusal', category: null, explanation: 'I cannot do that.' },
        }),
        'completions:chat': becomes({ 'choices.0.text': 'I cannot do that.' }),
      },
      note: 'text, with the stop reason `refusal`',
    },
    {
      name: 'Refusal, with the provider’s explanation',
      said: {
        messages: {
          content: [text('Well')],
          stop_reason: 'refusal',
          stop_details: { type: 'refusal', category: 'cyber', explanation: 'Not that.' },
        },
      },
      places: {
        chat: [`${MESSAGE}.refusal`, 'choices.0.finish_reason'],
        messages: ['stop_reason', 'stop_details'],
        completions: ['choices.0.finish_reason'],
      },
      expected: {
        'chat:messages': becomes({
          [`${MESSAGE}.refusal`]: 'Not that.',
          'choices.0.finish_reason': 'content_filter',
        }),
        'completions:messages': becomes({ 'choices.0.finish_reason': 'content_filter' }),
      },
      note: '`content_filter`, with the explanation as `refusal`, without its category',
    },
    {
      name: 'Reasoning that can be read',
      said: {
        chat: choice({ reasoning_content: 'Two and two.', content: '4' }),
        messages: content({ type: 'thinking', thinking: 'Two and two.', signature: 'c2ln' }, text('4')),
      },
      places: {
        chat: [`${MESSAGE}.reasoning_content`],
        messages: ['content.0.type', 'content.0.thinking'],
        completions: ['choices.0.reasoning_content'],
      },
      expected: {
        'chat:messages': becomes({ [`${MESSAGE}.reasoning_content`]: 'Two and two.' }),
        'messages:chat': becomes({ 'content.0.type': 'thinking', 'content.0.thinking': 'Two and two.' }),
        'completions:chat': 'dropped',
        'completions:messages': 'dropped',
      },
      note: '`reasoning_content` on chat, a thinking block without a signature on messages',
    },
    {
      name: 'Signature of thinking',
      said: { messages: content({ type: 'thinking', thinking: 'Hm.', signature: 'c2ln' }, text('4')) },
      places: {
        chat: [`${MESSAGE}.reasoning_details`, `${MESSAGE}.thinking_blocks`, `${MESSAGE}.signature`],
        messages: ['content.0.signature'],
      },
      expected: { 'chat:messages': 'dropped', 'completions:messages': 'dropped' },
      note: 'chat cannot send it back; the gateway never invents one',
    },
    {
      name: 'Redacted thinking',
      said: { messages: content({ type: 'redacted_thinking', data: 'c2VhbGVk' }, text('4')) },
      places: { chat: [`${MESSAGE}.reasoning_content`], messages: ['content.0.data'] },
      expected: { 'chat:messages': 'dropped', 'completions:messages': 'dropped' },
    },
    {
      name: 'Sound',
      said: { chat: choice({ content: 'Hi', audio: { id: 'audio_1', data: 'AAAA', expires_at: 1 } }) },
      places: { chat: [`${MESSAGE}.audio`], messages: ['content.1'] },
      expected: { 'messages:chat': 'dropped', 'completions:chat': 'dropped' },
      note: 'cannot be requested there',
    },
  ],
}

const WEB = {
  type: 'web_search_result_location',
  cited_text: 'It is 12 degrees.',
  url: 'https://weather.example/bern',
  title: 'Bern',
  encrypted_index: 'ZW5j',
}
const DOCUMENT = {
  type: 'char_location',
  cited_text: 'Cold.',
  document_index: 0,
  document_title: 'Notes',
  start_char_index: 0,
  end_char_index: 5,
}
const ANNOTATION = {
  type: 'url_citation',
  url_citation: { url: WEB.url, title: 'Bern', start_index: 0, end_index: 11 },
}

export const sources: Group<AnswerFeature> = {
  title: 'Sources',
  features: [
    {
      name: 'Source on the web',
      said: {
        messages: content(text('It is cold.', { citations: [WEB] })),
        chat: choice({ content: 'It is cold.', annotations: [ANNOTATION] }),
      },
      places: { chat: [`${MESSAGE}.annotations`], messages: ['content.0.citations'] },
      expected: {
        'chat:messages': becomes({ [`${MESSAGE}.annotations`]: [ANNOTATION] }),
        'messages:chat': 'dropped',
        'completions:chat': 'dropped',
        'completions:messages': 'dropped',
      },
      note: 'citations of messages need data of their own provider, so a chat model’s sources cannot be expressed',
    },
    {
      name: 'Source in a document',
      said: { messages: content(text('It is cold.', { citations: [DOCUMENT] })) },
      places: { chat: [`${MESSAGE}.annotations`], messages: ['content.0.citations'] },
      expected: { 'chat:messages': 'dropped', 'completions:messages': 'dropped' },
    },
  ],
}
