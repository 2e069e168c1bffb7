import { describe, expect, it } from 'vitest'
import { drained } from '../../../src/lib/slices.ts'
import { readItem } from '../../../src/responses/items/input-items.ts'
import { bytesOf, itemOf, parsed } from './items.ts'

const read = (value: unknown) => parsed(itemOf(value).bytes)

describe('messages', () => {
  it('get a type, an id and a status, and a content of parts', () => {
    const item = itemOf({ role: 'developer', content: 'Be brief.' })
    expect(item.id).toMatch(/^msg_[0-9A-Za-z]{22}$/)
    expect(item).toMatchObject({ type: 'message', role: 'developer', callId: null })
    expect(parsed(item.bytes)).toEqual({
      id: item.id,
      type: 'message',
      role: 'developer',
      status: 'completed',
      content: [{ type: 'input_text', text: 'Be brief.' }],
    })
  })

  it('of the assistant hold output', () => {
    expect(read({ role: 'assistant', content: 'Hi' }).content).toEqual([
      { type: 'output_text', text: 'Hi', annotations: [] },
    ])
    const content = [
      { type: 'text', text: 'a' },
      { type: 'input_text', text: 'b', annotations: null },
      { type: 'output_text', text: 'c', annotations: [{ type: 'url_citation' }], logprobs: [] },
      { type: 'refusal', refusal: 'no' },
    ]
    expect(read({ role: 'assistant', content }).content).toEqual([
      { type: 'output_text', text: 'a', annotations: [] },
      { type: 'output_text', text: 'b', annotations: [] },
      { type: 'output_text', text: 'c', annotations: [{ type: 'url_citation' }], logprobs: [] },
      { type: 'refusal', refusal: 'no' },
    ])
  })

  it('of others hold input, and all that stands beside it', () => {
    const content = [
      { text: 'a', type: 'text', cache: { x: [1] } },
      { type: 'input_image', image_url: 'https://a.example/b.png', file_id: null, detail: 'low' },
      { type: 'input_file', file_data: 'data:application/pdf;base64,AA==', filename: 'a.pdf' },
      { type: 'input_audio', input_audio: { data: 'AA==', format: 'wav' } },
    ]
    const item = read({ type: 'message', role: 'user', content, phase: 'commentary' })
    expect(item.content).toEqual([{ ...content[0], type: 'input_text' }, ...content.slice(1)])
    expect(item.phase).toBe('commentary')
  })

  it('that are sent again get a new id, and keep a status', () => {
    const item = itemOf({
      id: 'msg_theirs',
      type: 'message',
      status: 'incomplete',
      role: 'user',
      content: [],
    })
    expect(parsed(item.bytes)).toEqual({
      id: item.id,
      type: 'message',
      status: 'incomplete',
      role: 'user',
      content: [],
    })
    expect(item.id).not.toBe('msg_theirs')
    expect(read({ id: null, status: null, role: 'user', content: '' })).toMatchObject({ status: 'completed' })
  })

  it('keep their texts byte for byte, blanks and escapes included', () => {
    const source =
      '{ "content" : [ {"text" : "\\u0041\\/\\ud83d\\ude00 \\n😀", "type":"input_text"} ] ,\n"role":"user" }'
    const text = new TextDecoder().decode(itemOf(source).bytes)
    expect(text).toContain('[ {"text" : "\\u0041\\/\\ud83d\\ude00 \\n😀", "type":"input_text"} ]')
    expect(JSON.parse(text)).toMatchObject({ content: [{ type: 'input_text', text: 'A/😀 \n😀' }] })
  })
})

describe('calls and outputs', () => {
  it.each([
    [{ type: 'function_call', call_id: 'c', name: 'n', arguments: '{"a":1}', namespace: 'mcp' }, /^fc_/],
    [{ type: 'custom_tool_call', call_id: 'c', name: 'n', input: 'x' }, /^ctc_/],
    [{ type: 'function_call_output', call_id: 'c', output: 'x' }, /^fco_/],
    [{ type: 'custom_tool_call_output', call_id: 'c', output: '' }, /^ctco_/],
  ])('%o', (value, id) => {
    const item = itemOf({ ...value, id: 'theirs' })
    expect(item).toMatchObject({ type: value.type, role: null, callId: 'c' })
    expect(item.id).toMatch(id)
    expect(parsed(item.bytes)).toEqual({ ...value, id: item.id, status: 'completed' })
  })

  it('may hold parts', () => {
    const output = [
      { type: 'output_text', text: 'a' },
      { type: 'input_image', file_id: 'f' },
    ]
    expect(read({ type: 'function_call_output', call_id: 'c', output }).output).toEqual([
      { type: 'input_text', text: 'a' },
      { type: 'input_image', file_id: 'f' },
    ])
  })
})

describe('reasoning', () => {
  it('loses text that is reserved for the gateway, in any place', () => {
    const source = `{"signature":"s","origin":"anthropic","type":"reasoning","redacted":"r","summary":null,"\\u0073ignature2":1,"encrypted_content":"e","content":null}`
    const item = itemOf(source)
    expect(item.id).toMatch(/^rs_/)
    expect(parsed(item.bytes)).toEqual({
      id: item.id,
      type: 'reasoning',
      signature2: 1,
      encrypted_content: 'e',
      summary: [],
      status: 'completed',
    })
    expect(parsed(itemOf('{"type":"reasoning","s\\u0069gnature":"x"}').bytes)).not.toHaveProperty('signature')
  })
})

describe('references', () => {
  it.each([{ type: 'item_reference', id: 'msg_1' }, { id: 'msg_1' }, { type: null, id: 'msg_1' }])(
    '%o',
    (value) => {
      expect(drained(readItem(bytesOf(value), 'input[0]'))).toEqual({ reference: 'msg_1' })
    },
  )
})

describe('reasoning that was told without what is sealed of it', () => {
  const id = `rs_${'a'.repeat(22)}`
  const reasoning = (more: object) => itemOf({ type: 'reasoning', id, summary: [], ...more })

  it('names the stored item that it repeats', () => {
    for (const more of [{}, { encrypted_content: null }]) {
      const item = reasoning(more)
      expect(item.repeats).toBe(id)
      expect(item.id).not.toBe(id)
    }
  })

  it('repeats none when it is sealed, or from elsewhere', () => {
    const others = [
      { encrypted_content: 'sealed' },
      { id: 'rs_0123456789abcdef0123456789abcdef' },
      { id: null },
    ]
    for (const more of others) expect(reasoning(more)).not.toHaveProperty('repeats')
  })
})

describe('items of others', () => {
  it.each([
    'web_search_call',
    'mcp_call',
    'shell_call_output',
    'service_call',
    'configuration_update',
    'computer_call',
  ])('%s is kept as it is', (type) => {
    const value = {
      id: 'theirs',
      type,
      status: 'searching',
      call_id: 'c',
      output: [{ type: 'logs', logs: 'x' }, 7],
    }
    const item = itemOf(value)
    expect(item).toMatchObject({ type, role: null, callId: 'c' })
    expect(parsed(item.bytes)).toEqual({ ...value, id: item.id })
  })
})
