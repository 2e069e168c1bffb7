import { describe, expect, it } from 'vitest'
import type { Json } from '../../../../../src/gateway/protocols/json.ts'
import { RESPONSES_ITEMS } from '../../../../../src/gateway/translation/requests/responses-items.ts'
import { assistant, call, system, toolMessage, user } from './requests.ts'
import {
  answers,
  calls,
  IMAGE,
  INLINE_IMAGE,
  input,
  item,
  output,
  PDF,
  reasoning,
  toChat,
} from './responses.ts'

describe('items as messages of chat completions', () => {
  const hi = item('user', 'Hi')
  const said = (...items: Json[]) => toChat({ input: items }).messages

  it.each<[string, Json[], Json[]]>([
    ['a string', [item('user', ' Hi\n')], [user(' Hi\n')]],
    ['no type', [{ role: 'user', content: 'Hi' }], [user('Hi')]],
    ['one part', [item('user', [input('Hi')])], [user('Hi')]],
    [
      'parts',
      [item('user', [input('a'), input(''), IMAGE, input('b')])],
      [
        user([
          { type: 'text', text: 'a' },
          { type: 'image_url', image_url: { url: IMAGE.image_url } },
          { type: 'text', text: 'b' },
        ]),
      ],
    ],
    [
      'an image within the request, and how closely to look',
      [item('user', [INLINE_IMAGE])],
      [user([{ type: 'image_url', image_url: { url: INLINE_IMAGE.image_url, detail: 'high' } }])],
    ],
    [
      'a file',
      [item('user', [PDF])],
      [user([{ type: 'file', file: { filename: 'a.pdf', file_data: PDF.file_data } }])],
    ],
    [
      'sound',
      [item('user', [{ type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } }])],
      [user([{ type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } }])],
    ],
    [
      'a file of base64 alone, without a name',
      [item('user', [{ type: 'input_file', file_data: 'AAAA' }])],
      [
        user([
          {
            type: 'file',
            file: { filename: 'document.pdf', file_data: 'data:application/pdf;base64,AAAA' },
          },
        ]),
      ],
    ],
    ['two messages of the user', [hi, item('user', 'there')], [user('Hi'), user('there')]],
    [
      'instructions anywhere',
      [
        item('developer', 'a'),
        item('system', [input('b'), input(' ')]),
        hi,
        item('assistant', 'Yes'),
        item('developer', 'c'),
      ],
      [system('a\n\nb'), user('Hi'), assistant('Yes'), system('c')],
    ],
    [
      'an answer',
      [hi, item('assistant', [output('a '), output('b')], { id: 'msg_1', phase: 'final_answer' })],
      [user('Hi'), assistant('a b')],
    ],
    [
      'two answers in a row',
      [hi, item('assistant', [output('a')], { phase: 'commentary' }), item('assistant', [output('b')])],
      [user('Hi'), assistant('a\n\nb')],
    ],
    [
      'a refusal',
      [hi, item('assistant', [{ type: 'refusal', refusal: 'No.' }]), hi],
      [user('Hi'), assistant(null, { refusal: 'No.' }), user('Hi')],
    ],
    [
      'an answer without content',
      [hi, item('assistant', null), item('assistant', ''), hi],
      [user('Hi'), user('Hi')],
    ],
    ['reasoning', [hi, reasoning('Hm.'), item('assistant', 'Yes')], [user('Hi'), assistant('Yes')]],
    ['reasoning alone', [hi, reasoning('Hm.')], [user('Hi')]],
    [
      'reasoning, text and calls of one answer',
      [
        hi,
        reasoning('Hm.'),
        item('assistant', [output('I look.')]),
        calls('c1'),
        calls('c2'),
        answers('c1'),
        answers('c2', 'x'),
      ],
      [
        user('Hi'),
        assistant('I look.', { tool_calls: [call('c1'), call('c2')] }),
        toolMessage('c1', 'found'),
        toolMessage('c2', 'x'),
      ],
    ],
    [
      'calls one after the other',
      [hi, calls('c1'), answers('c1'), calls('c2'), answers('c2'), item('assistant', 'Done')],
      [
        user('Hi'),
        assistant(null, { tool_calls: [call('c1')] }),
        toolMessage('c1', 'found'),
        assistant(null, { tool_calls: [call('c2')] }),
        toolMessage('c2', 'found'),
        assistant('Done'),
      ],
    ],
    [
      'outputs in another order, after something else and before their call',
      [
        answers('c3', '3'),
        hi,
        calls('c1'),
        calls('c2'),
        answers('c2', '2'),
        item('user', 'Well?'),
        answers('c1', '1'),
        calls('c3'),
      ],
      [
        user('Hi'),
        assistant(null, { tool_calls: [call('c1'), call('c2')] }),
        toolMessage('c1', '1'),
        toolMessage('c2', '2'),
        user('Well?'),
        assistant(null, { tool_calls: [call('c3')] }),
        toolMessage('c3', '3'),
      ],
    ],
    [
      'one id for several calls',
      [hi, calls('c'), answers('c', '1'), calls('c'), answers('c', '2'), answers('c', '3')],
      [
        user('Hi'),
        assistant(null, { tool_calls: [call('c')] }),
        toolMessage('c', '1'),
        assistant(null, { tool_calls: [call('call_1')] }),
        toolMessage('call_1', '2\n3'),
      ],
    ],
    [
      'ids that are too long, arguments that are none or malformed',
      [hi, calls('x'.repeat(41), 'f', ''), answers('x'.repeat(41)), calls('c', 'f', '{"cut'), answers('c')],
      [
        user('Hi'),
        assistant(null, { tool_calls: [call('call_1', 'f', '{}')] }),
        toolMessage('call_1', 'found'),
        assistant(null, { tool_calls: [call('c', 'f', '{"cut')] }),
        toolMessage('c', 'found'),
      ],
    ],
    [
      'outputs of parts',
      [hi, calls('c'), answers('c', [input('a'), output('b')]), item('user', 'So?')],
      [user('Hi'), assistant(null, { tool_calls: [call('c')] }), toolMessage('c', 'a\nb'), user('So?')],
    ],
    [
      'outputs that show something, after all results of the step',
      [hi, calls('c'), calls('d'), answers('c', [IMAGE]), answers('d', [input('see'), PDF])],
      [
        user('Hi'),
        assistant(null, { tool_calls: [call('c'), call('d')] }),
        toolMessage('c', '(What the tool returned follows as an attachment.)'),
        toolMessage('d', 'see'),
        user([
          { type: 'image_url', image_url: { url: IMAGE.image_url } },
          { type: 'file', file: { filename: 'a.pdf', file_data: PDF.file_data } },
        ]),
      ],
    ],
    [
      'calls of custom tools',
      [
        hi,
        { type: 'custom_tool_call', call_id: 'c', name: 'patch', input: '*** "x"\n' },
        { type: 'custom_tool_call_output', call_id: 'c', output: 'ok' },
      ],
      [
        user('Hi'),
        assistant(null, { tool_calls: [call('c', 'patch', '{"input":"*** \\"x\\"\\n"}')] }),
        toolMessage('c', 'ok'),
      ],
    ],
    [
      'calls within a namespace',
      [hi, calls('c', 'read', '{}', { namespace: 'mcp__gw' }), answers('c')],
      [
        user('Hi'),
        assistant(null, { tool_calls: [call('c', 'mcp__gw__read', '{}')] }),
        toolMessage('c', 'found'),
      ],
    ],
    ['nothing but instructions', [item('system', 'Hi')], [system('Hi')]],
  ])('%s', (_case, items, messages) => {
    expect(said(...items)).toEqual(messages)
  })

  const DROPPED = Object.keys(RESPONSES_ITEMS).filter(
    (type) => RESPONSES_ITEMS[type]?.treatment === 'dropped',
  )
  it.each(DROPPED)('leaves out %s', (type) => {
    expect(said(hi, { type, id: 'x', call_id: 'y', role: 'user', output: 'z' })).toEqual([user('Hi')])
  })

  it('puts instructions before all messages', () => {
    const converted = toChat({ instructions: 'Be brief.', input: [item('developer', 'Really.'), hi] })
    expect(converted.messages).toEqual([system('Be brief.\n\nReally.'), user('Hi')])
  })

  it('takes a string for input', () => {
    expect(toChat({ input: 'Hi' }).messages).toEqual([user('Hi')])
  })
})
