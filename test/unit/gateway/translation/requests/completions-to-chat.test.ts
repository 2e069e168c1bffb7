import { describe, expect, it } from 'vitest'
import type { Json } from '../../../../../src/gateway/protocols/json.ts'
import { chatToMessages } from '../../../../../src/gateway/translation/requests/chat-to-messages.ts'
import {
  completionToChat,
  echoedPrompt,
} from '../../../../../src/gateway/translation/requests/completions-to-chat.ts'
import { refusal, target, text } from './requests.ts'

describe('the prompt of a legacy completion', () => {
  it.each<[unknown, string]>([
    ['a', 'a'],
    ['', ''],
    [['a'], 'a'],
  ])('%j', (prompt, content) => {
    expect(completionToChat({ prompt }).messages).toEqual([{ role: 'user', content }])
    expect(echoedPrompt({ prompt }, [])).toBe(content)
  })

  const TOKENS = 'prompt: prompts of tokens are not supported by this model: send the prompt as text.'
  it.each<[unknown, string]>([
    [undefined, 'prompt: a prompt is required.'],
    [null, 'prompt: a prompt is required.'],
    [[], 'prompt: a prompt is required.'],
    [
      ['a', 'b'],
      'prompt: only one prompt is supported by this model: send one request for each prompt, or use a model that ' +
        'serves completions natively.',
    ],
    [[1, 2], TOKENS],
    [[[1], [2]], TOKENS],
    [['a', 1], TOKENS],
    [{}, 'prompt: Input should be a string or an array of strings.'],
    [[null], 'prompt: Input should be a string or an array of strings.'],
  ])('refuses %j', (prompt, converted) => {
    expect(refusal(() => completionToChat({ prompt }))).toBe(converted)
  })
})

describe('a legacy completion as a chat', () => {
  const asChat = (members: Json, model?: ReturnType<typeof target>) =>
    completionToChat({ model: 'm', prompt: 'x', ...members }, model)

  it('sends the prompt as the user’s, with the vendor’s default maximum', () => {
    expect(asChat({})).toEqual({ model: 'm', messages: [{ role: 'user', content: 'x' }], max_tokens: 16 })
    expect(asChat({ max_tokens: null })).toHaveProperty('max_tokens', 16)
  })

  it.each<[string, Json, ReturnType<typeof target>, Json]>([
    ['takes little effort', { max_tokens: 40 }, target('reasoning'), { max_completion_tokens: 40 }],
    ['has room to reason', {}, target('reasoning'), { max_completion_tokens: 4096 }],
    ['has little room', {}, { ...target('reasoning'), maxOutputTokens: 900 }, { max_completion_tokens: 900 }],
    [
      'can do without',
      {},
      target('reasoning', 'tools_without_reasoning'),
      { max_completion_tokens: 16, reasoning_effort: 'none' },
    ],
    [
      'refuses sampling',
      {
        max_tokens: 40,
        temperature: 0,
        top_p: 0.1,
        presence_penalty: 1,
        frequency_penalty: 1,
        logit_bias: { 1: 1 },
        seed: 1,
        n: 2,
        stop: ['a'],
        user: 'u',
      },
      target('reasoning'),
      { max_completion_tokens: 40, seed: 1, n: 2, stop: ['a'], user: 'u' },
    ],
  ])('speaks to a model that reasons as it asks for it: %s', (_case, members, model, said) => {
    expect(asChat(members, model)).toEqual({
      model: 'm',
      messages: [{ role: 'user', content: 'x' }],
      reasoning_effort: 'low',
      ...said,
    })
  })

  it('keeps what chat completions have too', () => {
    const members = {
      max_tokens: 9,
      n: 2,
      stop: ['a'],
      temperature: 0,
      top_p: 0.1,
      seed: 1,
      presence_penalty: 1,
      frequency_penalty: 1,
      logit_bias: { 1: 1 },
      user: 'u',
      stream: true,
      stream_options: { include_usage: true },
    }
    expect(asChat({ ...members, echo: true, suffix: '', best_of: 1, a_member_of_tomorrow: 1 })).toEqual({
      model: 'm',
      messages: [{ role: 'user', content: 'x' }],
      ...members,
    })
  })

  it.each<[Json, string]>([
    [{ suffix: 'z' }, 'suffix: text cannot be inserted before a suffix on this model.'],
    [{ best_of: 2 }, 'best_of: the best of several completions cannot be chosen on this model.'],
    [{ logprobs: 0 }, 'logprobs: log probabilities are not supported by this model.'],
  ])('refuses %j', (members, converted) => {
    expect(refusal(() => asChat(members))).toBe(converted)
  })

  it('goes on to the messages protocol', () => {
    expect(chatToMessages(asChat({ stop: '#', temperature: 2 }), target()).body).toEqual({
      model: 'upstream-model',
      max_tokens: 16,
      temperature: 1,
      stop_sequences: ['#'],
      messages: [{ role: 'user', content: [text('x')] }],
    })
    expect(refusal(() => chatToMessages(asChat({ n: 2 }), target()))).toBe(
      'n: only one choice is supported by this model.',
    )
  })
})
