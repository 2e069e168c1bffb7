import { describe, expect, it } from 'vitest'
import type { Json } from '../../../../../src/gateway/protocols/json.ts'
import { refusal } from './requests.ts'
import { answers, calls, IMAGE, item, toChat } from './responses.ts'

describe('items that are none', () => {
  const hi = item('user', 'Hi')
  const file = (more: Json) => [item('user', [{ type: 'input_file', ...more }])]
  it.each<[string, Json, string]>([
    ['no input', { input: undefined }, 'input: Input should be an array.'],
    ['nothing said', { input: [] }, 'input: at least one item must have content.'],
    ['empty content', { input: [item('user', '')] }, 'input: at least one item must have content.'],
    ['an item that is none', { input: [1] }, 'input[0]: Input should be an object.'],
    [
      'no type and no role',
      { input: [{}] },
      'input[0].type: Input should be a string of at least one character.',
    ],
    [
      'an unknown role',
      { input: [item('tool', 'x')] },
      "input[0].role: Input should be 'user', 'assistant', 'system' or 'developer'.",
    ],
    [
      'an unknown item',
      { input: [hi, { type: 'constructor' }] },
      'input[1]: items of type constructor are not supported by this model.',
    ],
    [
      'no content',
      { input: [item('user', null)] },
      'input[0].content: Input should be a string or an array of parts.',
    ],
    [
      'a part that is none',
      { input: [item('user', ['x'])] },
      'input[0].content[0]: Input should be an object.',
    ],
    [
      'an unknown part',
      { input: [item('user', [{ type: 'input_video' }])] },
      'input[0].content[0]: parts of type input_video are not supported by this model.',
    ],
    [
      'a text that is none',
      { input: [item('user', [{ type: 'input_text', text: 1 }])] },
      'input[0].content[0].text: Input should be a string.',
    ],
    [
      'an image of instructions',
      { input: [item('system', [IMAGE])] },
      'input[0].content[0]: parts of instructions of type input_image are not supported by this model.',
    ],
    [
      'an image of the assistant',
      { input: [hi, item('assistant', [IMAGE])] },
      "input[1].content[0]: the assistant's parts of type input_image are not supported by this model.",
    ],
    [
      'an image by id',
      { input: [item('user', [{ type: 'input_image', file_id: 'file-1' }])] },
      'input[0].content[0].file_id: files of other providers are unknown here: send the contents.',
    ],
    [
      'a file by id',
      { input: file({ file_id: 'file-1' }) },
      'input[0].content[0].file_id: files of other providers are unknown here: send the contents.',
    ],
    [
      'a file by URL',
      { input: file({ file_url: 'https://a.example/b.pdf' }) },
      'input[0].content[0].file_url: files by URL are not supported by this model: send file_data.',
    ],
    ['no file', { input: file({}) }, 'input[0].content[0]: a file must be sent as file_data or file_url.'],
    [
      'a call without a name',
      { input: [{ type: 'function_call', call_id: 'c', arguments: '{}' }] },
      'input[0].name: Input should be a string of at least one character.',
    ],
    [
      'a call with an object',
      { input: [{ ...calls('c'), arguments: {} }] },
      'input[0].arguments: Input should be a string.',
    ],
    [
      'a call without an output',
      { input: [hi, calls('c')] },
      'input[1].call_id: No tool output found for function call "c".',
    ],
    [
      'a second call without an output',
      { input: [calls('c'), answers('c'), calls('c')] },
      'input[2].call_id: No tool output found for function call "c".',
    ],
    [
      'an output without a call',
      { input: [hi, answers('c')] },
      'input[1].call_id: No tool call found for function call output with call_id "c".',
    ],
    [
      'an output that is none',
      { input: [calls('c'), answers('c', 7)] },
      'input[1].output: Input should be a string or an array of parts.',
    ],
    ['instructions that are none', { instructions: ['x'] }, 'instructions: Input should be a string.'],
  ])('refuses %s', (_case, members, converted) => {
    expect(refusal(() => toChat(members))).toBe(converted)
  })
})
