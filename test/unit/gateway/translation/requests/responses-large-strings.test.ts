import { describe, expect, it } from 'vitest'
import { type Json, objectOf } from '../../../../../src/gateway/protocols/json.ts'
import {
  cutLargeStrings,
  restoreLargeStrings,
} from '../../../../../src/gateway/translation/requests/large-strings.ts'
import { joinBytes } from '../../../../../src/lib/byte-edits.ts'
import { target } from './requests.ts'
import { answers, calls, input, item, ofFamily, output, reasoning, toChat, toMessages } from './responses.ts'

const LARGE = 16 * 1024
const long = (letter: string) => letter.repeat(LARGE)
/** With escapes that say nothing, as some clients write them. */
const bytesOf = (value: unknown) => new TextEncoder().encode(JSON.stringify(value).replaceAll('/', '\\/'))
const cutTexts = (value: unknown) =>
  cutLargeStrings(bytesOf(value)).cut.map((bytes) => new TextDecoder().decode(bytes))

const image = (letter: string): Json => ({
  type: 'input_image',
  image_url: `data:image/png;base64,${long(letter)}`,
})
const custom = (type: string, more: Json): Json => ({ type, call_id: 'p', ...more })

describe('long strings of a turn of responses', () => {
  it.each<[string, Json[], string[]]>([
    ['content', [item('user', long('a'))], [long('a')]],
    ['texts', [item('assistant', [output(long('a'))]), reasoning(long('b'))], [long('a'), long('b')]],
    ['outputs', [answers('c', long('a')), answers('d', [input(long('b'))])], [long('a'), long('b')]],
    ['images', [item('user', [image('A')])], [long('A')]],
    [
      'sound',
      [item('user', [{ type: 'input_audio', input_audio: { data: long('A'), format: 'wav' } }])],
      [long('A')],
    ],
    ['no arguments', [calls('c', 'f', long(' '))], []],
    ['no input of a custom tool', [custom('custom_tool_call', { name: 'f', input: long('a') })], []],
    [
      'no signature and no other URL',
      [
        reasoning('a', { signature: long('s') }),
        item('user', [{ image_url: `https://a.example/${long('a')}` }]),
      ],
      [],
    ],
  ])('are cut: %s', (_case, items, cut) => {
    expect(cutTexts({ input: items })).toEqual(cut)
  })

  const request = {
    input: [
      item('developer', long('i')),
      item('user', [
        input(`"${long('é')}/"`),
        image('A'),
        { type: 'input_file', file_data: `data:application/pdf;base64,${long('B')}` },
        { type: 'input_file', filename: 'b.pdf', file_data: long('C') },
      ]),
      reasoning(long('r')),
      item('assistant', [output(long('o'))]),
      item('assistant', long('p')),
      calls('c', 'f', JSON.stringify({ a: long('x') })),
      custom('custom_tool_call', { name: 'patch', input: `"${long('y')}"` }),
      answers('c', long('s')),
      custom('custom_tool_call_output', { output: [input(long('t')), image('D')] }),
    ],
  }

  it.each<[string, (json: Json) => Json]>([
    ['chat completions', (json) => toChat(json, target())],
    ['messages', (json) => toMessages(json, ofFamily('reasoning'))],
  ])('are sent unchanged on %s', (_protocol, translation) => {
    const body = bytesOf(request)
    const { text, cut } = cutLargeStrings(body)
    expect(cut).toHaveLength(11)
    expect(text.length).toBeLessThan(3 * LARGE + 4_000)
    const json = JSON.stringify(translation(objectOf(JSON.parse(text))))
    const converted = new TextDecoder().decode(joinBytes(restoreLargeStrings(json, cut)))
    expect(JSON.parse(converted)).toEqual(JSON.parse(JSON.stringify(translation(request))))
  })
})
