import { describe, expect, it } from 'vitest'
import type { Json } from '../../../../../src/gateway/protocols/json.ts'
import { assistant, target, text, user } from './requests.ts'
import { answers, calls, FAMILY, item, ofFamily, reasoning, toMessages, tool } from './responses.ts'

const hi = item('user', 'Hi')
const use = (id: string, name = 'look', given: Json = { a: 1 }): Json => ({
  type: 'tool_use',
  id,
  name,
  input: given,
})
const result = (id: string, ...content: Json[]): Json =>
  content.length === 0
    ? { type: 'tool_result', tool_use_id: id }
    : { type: 'tool_result', tool_use_id: id, content }
const thinking = (words: string): Json => ({ type: 'thinking', thinking: words, signature: 'sig' })
const HI = user([text('Hi')])
const SO = user([text('So?')])
const so = item('user', 'So?')

describe('reasoning', () => {
  const budget = ofFamily('reasoning')
  const redacted: Json = { type: 'reasoning', redacted: 'data', origin: FAMILY }
  const turns = (items: Json[], model = budget) => toMessages({ input: items }, model).messages

  it.each<[string, Json[], Json[]]>([
    [
      'stands before what came of it',
      [hi, reasoning('a'), redacted, item('assistant', 'b'), calls('c'), answers('c')],
      [
        HI,
        assistant([thinking('a'), { type: 'redacted_thinking', data: 'data' }, text('b'), use('c')]),
        user([result('c', text('found'))]),
      ],
    ],
    [
      'stands between calls',
      [hi, reasoning('a'), calls('c'), answers('c'), reasoning('b'), calls('d'), answers('d')],
      [
        HI,
        assistant([thinking('a'), use('c')]),
        user([result('c', text('found'))]),
        assistant([thinking('b'), use('d')]),
        user([result('d', text('found'))]),
      ],
    ],
    [
      'of a model that tells nothing of it',
      [hi, reasoning(''), item('assistant', 'b'), so],
      [HI, assistant([thinking(''), text('b')]), SO],
    ],
    [
      'of another family',
      [hi, reasoning('a', { signature: 's', origin: 'family-b' }), item('assistant', 'b'), so],
      [HI, assistant([text('b')]), SO],
    ],
    [
      'of nobody',
      [hi, reasoning('a', { signature: 's', origin: undefined }), item('assistant', 'b'), so],
      [HI, assistant([text('b')]), SO],
    ],
    [
      'without a proof',
      [hi, reasoning('a', {}), item('assistant', 'b'), so],
      [HI, assistant([text('b')]), SO],
    ],
    ['that nothing came of', [hi, reasoning('a'), so], [user([text('Hi'), text('So?')])]],
    [
      'that was cut off',
      [hi, reasoning('a'), item('assistant', 'b'), reasoning('c'), so],
      [HI, assistant([thinking('a'), text('b')]), SO],
    ],
    [
      'after text of another model',
      [hi, item('assistant', 'a'), item('system', 's'), reasoning('b'), item('assistant', 'c'), so],
      [HI, assistant([text('a'), text('c')]), SO],
    ],
    [
      'of other types',
      [hi, reasoning('a', { signature: 1, content: 'x' }), item('assistant', 'b'), so],
      [HI, assistant([text('b')]), SO],
    ],
  ])('%s', (_case, items, messages) => {
    expect(turns(items)).toEqual(messages)
  })

  it('goes to no model that does not reason, and to none without a family', () => {
    const items = [hi, reasoning('a'), item('assistant', 'b'), so]
    const without = [HI, assistant([text('b')]), SO]
    expect(turns(items, ofFamily())).toEqual(without)
    expect(turns(items, target('reasoning'))).toEqual(without)
    const nobodys = [hi, reasoning('a', { signature: 's', origin: undefined }), item('assistant', 'b'), so]
    expect(turns(nobodys, target('reasoning'))).toEqual(without)
  })

  const enabled = { thinking: { type: 'enabled', budget_tokens: 2048 } }
  const adaptive = ofFamily('reasoning', 'adaptive_thinking')
  const low = { reasoning: { effort: 'low' } }
  const results = [hi, reasoning('a'), calls('c'), answers('c')]
  it.each<[string, Json, ReturnType<typeof ofFamily>, Json]>([
    ['an effort', low, budget, enabled],
    ['none', { reasoning: { summary: 'auto' } }, adaptive, {}],
    [
      'an effort and a summary',
      { reasoning: { effort: 'low', summary: 'auto' } },
      adaptive,
      { thinking: { type: 'adaptive', display: 'summarized' }, output_config: { effort: 'low' } },
    ],
    ['a turn of tools that began with thinking', { ...low, input: results }, budget, enabled],
    ['a turn of tools that did not', { ...low, input: results.toSpliced(1, 1) }, budget, {}],
    ['a turn of tools of another family', { ...low, input: results }, target('reasoning'), {}],
    ['a forced call', { ...low, tools: [tool('look')], tool_choice: 'required' }, budget, {}],
    [
      'a conversation that the assistant ended',
      { ...low, input: [hi, reasoning('a'), item('assistant', 'b')] },
      budget,
      enabled,
    ],
  ])('is asked for: %s', (_case, members, model, said) => {
    const { thinking, output_config } = toMessages(members, model)
    expect(JSON.parse(JSON.stringify({ thinking, output_config }))).toEqual(said)
  })
})
