import { describe, expect, it } from 'vitest'
import { AssistantContent } from '../../../../../src/gateway/translation/events/assistant-content.ts'
import { DOCUMENT_CITATION, MESSAGES_STREAMS, WEB_CITATION } from '../fixtures/messages-streams.ts'

type Json = Record<string, unknown>

function blocksOf(stream: Json[]): Json[] {
  const content = new AssistantContent()
  for (const data of stream) content.frame(String(data.type), data)
  return content.blocks()
}
const begin = (index: number, content_block: Json) => ({ type: 'content_block_start', index, content_block })
const delta = (index: number, more: Json) => ({ type: 'content_block_delta', index, delta: more })

describe('the content of a turn', () => {
  it('of a stream keeps text with its sources, and what the provider did', () => {
    expect(blocksOf(MESSAGES_STREAMS.webSearch)).toEqual([
      { type: 'text', text: 'I will look. ' },
      { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'Bern' } },
      {
        type: 'web_search_tool_result',
        tool_use_id: 'srvtoolu_1',
        content: [
          { type: 'web_search_result', url: 'https://weather.example/bern', encrypted_content: 'eHk=' },
        ],
      },
      { type: 'text', text: 'It is cold', citations: [WEB_CITATION] },
      { type: 'text', text: ', they say', citations: [DOCUMENT_CITATION] },
      { type: 'text', text: '.' },
    ])
  })

  it('keeps thinking with its last signature, sealed thinking, and thinking without text', () => {
    expect(blocksOf(MESSAGES_STREAMS.thinking)).toEqual([
      { type: 'thinking', thinking: 'Let me see.', signature: 'c2ln' },
      { type: 'redacted_thinking', data: 'c2VhbGVk' },
      { type: 'text', text: '4' },
    ])
    expect(blocksOf(MESSAGES_STREAMS.thinkingOmitted)[0]).toEqual({
      type: 'thinking',
      thinking: '',
      signature: 'c2ln',
    })
  })

  it('keeps calls with their input and their other members', () => {
    const caller = { type: 'direct' }
    expect(blocksOf(MESSAGES_STREAMS.parallelTools)).toEqual([
      { type: 'tool_use', id: 'toolu_a', name: 'look', input: { q: 1 }, caller },
      { type: 'tool_use', id: 'toolu_b', name: 'now', input: {}, caller },
    ])
    expect(blocksOf(MESSAGES_STREAMS.wholeInput)[0]?.input).toEqual({ q: 1 })
  })

  it('keeps every digit of an input', () => {
    const blocks = blocksOf([
      begin(0, { type: 'tool_use', id: 'a', name: 'look', input: {} }),
      delta(0, { type: 'input_json_delta', partial_json: '{"q":12345678901234567891}' }),
    ])
    expect(JSON.stringify(blocks)).toContain('"input":{"q":12345678901234567891}')
  })

  it.each(['{"q":', '[1]', 'null', '"q"'])('has an object for an input that is none: %s', (json) => {
    const blocks = blocksOf([
      begin(0, { type: 'server_tool_use', id: 'a', name: 'look', input: {} }),
      delta(0, { type: 'input_json_delta', partial_json: json }),
    ])
    expect(blocks[0]?.input).toEqual({})
  })

  it('leaves out empty texts, which the provider refuses', () => {
    const blocks = blocksOf([
      begin(0, { type: 'text', text: '' }),
      begin(1, { type: 'text', text: '' }),
      delta(1, { type: 'text_delta', text: 'a' }),
    ])
    expect(blocks).toEqual([{ type: 'text', text: 'a' }])
  })

  it('keeps blocks that are not known as they are, and passes over deltas that are not', () => {
    const later = { type: 'constructor', value: { deep: [1] } }
    const blocks = blocksOf([
      begin(0, later),
      delta(0, { type: 'constructor', value: 2 }),
      delta(5, { type: 'text_delta', text: 'of no block' }),
      begin(1, { type: 'compaction', content: null }),
      delta(1, { type: 'compaction_delta', content: 'short' }),
    ])
    expect(blocks).toEqual([later, { type: 'compaction', content: 'short' }])
  })

  it('of a whole answer is the content itself', () => {
    const blocks = [
      { type: 'thinking', thinking: 'Hm.', signature: 's' },
      { type: 'text', text: 'a', citations: [WEB_CITATION] },
      { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'Bern' } },
    ]
    const content = new AssistantContent()
    content.answer({ content: [...blocks, { type: 'text', text: '' }] })
    expect(content.blocks()).toEqual(blocks)
  })

  it('takes the name of an event from its payload where the frame has none', () => {
    const content = new AssistantContent()
    for (const data of MESSAGES_STREAMS.text) content.frame(null, data)
    expect(content.blocks()).toEqual([{ type: 'text', text: 'Hello' }])
  })
})
