import { describe, expect, it } from 'vitest'
import type { Json } from '../../../../../src/gateway/protocols/json.ts'
import { fromChat, refusal, target } from './requests.ts'

describe('members of a chat completion request', () => {
  it('has only the required members by default', () => {
    expect(fromChat({})).toEqual({
      model: 'upstream-model',
      max_tokens: 10_000,
      messages: [{ role: 'user', content: [{ type: 'text', text: 'Hello' }] }],
    })
  })

  const SAID: Array<[asked: Json, said: Json]> = [
    [{ stream: true, stream_options: { include_usage: true } }, { stream: true }],
    [{ stream: false }, {}],
    [{ max_tokens: 5 }, { max_tokens: 5 }],
    [{ max_completion_tokens: 7, max_tokens: 5 }, { max_tokens: 7 }],
    [{ max_tokens: 20_000 }, { max_tokens: 10_000 }],
    [{ max_tokens: null }, { max_tokens: 10_000 }],
    [{ temperature: 0.5 }, { temperature: 0.5 }],
    [{ temperature: 0 }, { temperature: 0 }],
    [{ temperature: 1.7 }, { temperature: 1 }],
    [{ temperature: null, top_p: 0.2 }, { top_p: 0.2 }],
    [{ temperature: 0.5, top_p: 0.2 }, { temperature: 0.5 }],
    [{ stop: 'END' }, { stop_sequences: ['END'] }],
    [{ stop: ['a', '', ' b '] }, { stop_sequences: ['a', ' b '] }],
    [{ stop: '' }, {}],
    [{ stop: null }, {}],
    [{ stop: [] }, {}],
    [{ user: 'user-1' }, { metadata: { user_id: 'user-1' } }],
    [{ user: 'user-1', safety_identifier: 'hash' }, { metadata: { user_id: 'hash' } }],
    [{ user: 'a@b.example' }, {}],
    [{ user: '+44 20 7946 0000' }, {}],
    [{ user: 'x'.repeat(257) }, {}],
    [{ safety_identifier: 'a@b.example', user: 'user-1' }, { metadata: { user_id: 'user-1' } }],
    [{ n: 1, logprobs: false, top_logprobs: 3, modalities: ['text'], functions: [], audio: null }, {}],
    [
      {
        seed: 1,
        frequency_penalty: 1,
        presence_penalty: 1,
        logit_bias: { 1: 1 },
        service_tier: 'flex',
        prompt_cache_key: 'k',
        verbosity: 'low',
        store: true,
        prediction: { type: 'content', content: 'x' },
        metadata: { a: 'b' },
        parallel_tool_calls: false,
        tool_choice: 'auto',
        a_member_of_tomorrow: 1,
      },
      {},
    ],
  ]
  it.each(SAID)('%j', (asked, said) => {
    const { model: _model, messages: _messages, ...members } = fromChat(asked)
    expect(members).toEqual({ max_tokens: 10_000, ...said })
  })

  const BLANK_STOP =
    'stop: sequences of white space alone are not supported by this model: cut the answer where you need it.'
  const REFUSED: Array<[asked: Json, converted: string]> = [
    [{ n: 2 }, 'n: only one choice is supported by this model.'],
    [{ logprobs: true }, 'logprobs: log probabilities are not supported by this model.'],
    [{ logprobs: {} }, 'logprobs: log probabilities are not supported by this model.'],
    [{ stop: '\n' }, BLANK_STOP],
    [{ stop: ['a', ' \t'] }, BLANK_STOP],
    [{ audio: { voice: 'v', format: 'mp3' } }, 'audio: audio output is not supported by this model.'],
    [{ modalities: ['text', 'audio'] }, 'modalities: only text output is supported by this model.'],
    [
      { functions: [{ name: 'f' }] },
      'functions: functions are not supported by this model: send them as tools.',
    ],
    [
      { moderation: { model: 'm' } },
      'moderation: moderation within the request is not supported by this model.',
    ],
  ]
  it.each(REFUSED)('refuses %j', (asked, converted) => {
    expect(refusal(() => fromChat(asked))).toBe(converted)
  })
})

describe('reasoning', () => {
  const budget = target('reasoning')
  const adaptive = target('reasoning', 'adaptive_thinking')
  const forced = { tools: [{ type: 'function', function: { name: 'f' } }], tool_choice: 'required' }
  const toolTurn = {
    messages: [
      { role: 'user', content: 'x' },
      { role: 'assistant', tool_calls: [{ id: 'a', type: 'function', function: { name: 'f' } }] },
      { role: 'tool', tool_call_id: 'a', content: 'y' },
    ],
  }
  const none = {}
  const thinks = (budget_tokens: number) => ({ thinking: { type: 'enabled', budget_tokens } })
  const effort = (level: string) => ({ thinking: { type: 'adaptive' }, output_config: { effort: level } })

  it.each<[string, typeof budget, Json, Json]>([
    ['no model that reasons', target(), { reasoning_effort: 'high' }, none],
    ['no effort', budget, {}, none],
    ['none', budget, { reasoning_effort: 'none' }, none],
    ['an effort of tomorrow', budget, { reasoning_effort: 'enormous' }, none],
    ['an effort named like an object’s member', adaptive, { reasoning_effort: 'constructor' }, none],
    ['minimal', budget, { reasoning_effort: 'minimal' }, thinks(1024)],
    ['low', budget, { reasoning_effort: 'low' }, thinks(2048)],
    ['medium', budget, { reasoning_effort: 'medium' }, thinks(8192)],
    ['high, as far as the maximum goes', budget, { reasoning_effort: 'high' }, thinks(10_000 - 1024)],
    ['too little room', budget, { reasoning_effort: 'high', max_tokens: 2000 }, none],
    ['just enough room', budget, { reasoning_effort: 'high', max_tokens: 2048 }, thinks(1024)],
    ['a forced call', budget, { reasoning_effort: 'low', ...forced }, none],
    ['a turn of tools', budget, { reasoning_effort: 'low', ...toolTurn }, none],
    ['a given budget', budget, { thinking: { type: 'enabled', budget_tokens: 3000 } }, thinks(3000)],
    [
      'a given budget beyond the maximum',
      budget,
      { thinking: { type: 'enabled', budget_tokens: 9_500 } },
      thinks(8976),
    ],
    ['adaptive where there is only a budget', budget, { thinking: { type: 'adaptive' } }, thinks(8192)],
    ['thinking disabled', budget, { thinking: { type: 'disabled' }, reasoning_effort: 'high' }, none],
    ['adaptive none', adaptive, { reasoning_effort: 'none' }, { output_config: { effort: 'low' } }],
    ['adaptive minimal', adaptive, { reasoning_effort: 'minimal' }, effort('low')],
    ['adaptive medium', adaptive, { reasoning_effort: 'medium' }, effort('medium')],
    ['adaptive xhigh', adaptive, { reasoning_effort: 'xhigh' }, effort('high')],
    ['adaptive max', adaptive, { reasoning_effort: 'max' }, effort('max')],
    ['adaptive, no effort', adaptive, {}, none],
    [
      'a budget where there is none',
      adaptive,
      { thinking: { type: 'enabled', budget_tokens: 20_000 } },
      effort('high'),
    ],
    [
      'adaptive with a display',
      adaptive,
      { thinking: { type: 'adaptive', display: 'summarized' } },
      { thinking: { type: 'adaptive', display: 'summarized' } },
    ],
    ['adaptive disabled', adaptive, { thinking: { type: 'disabled' } }, { output_config: { effort: 'low' } }],
    [
      'adaptive, a forced call',
      adaptive,
      { reasoning_effort: 'low', ...forced },
      { output_config: { effort: 'low' } },
    ],
    ['adaptive, a turn of tools', adaptive, { reasoning_effort: 'low', ...toolTurn }, effort('low')],
  ])('%s', (_case, model, asked, said) => {
    const { thinking, output_config } = fromChat(asked, model)
    expect({ thinking, output_config }).toEqual({ thinking: undefined, output_config: undefined, ...said })
  })

  it('leaves sampling out where the model thinks, and on models that think adaptively', () => {
    const sampling = { temperature: 0.3, top_p: 0.3 }
    expect(fromChat({ ...sampling, reasoning_effort: 'low' }, budget)).not.toHaveProperty('temperature')
    expect(fromChat({ ...sampling }, adaptive)).not.toHaveProperty('temperature')
    expect(fromChat({ ...sampling }, adaptive)).not.toHaveProperty('top_p')
    expect(fromChat({ ...sampling, reasoning_effort: 'low', ...forced }, budget)).toHaveProperty(
      'temperature',
      0.3,
    )
  })
})
