import { describe, expect, it } from 'vitest'
import { estimateInputTokens } from '../../../src/gateway/token-count/input-tokens.ts'
import { familyOf } from '../../../src/gateway/token-count/model-families.ts'
import { TextTokens } from '../../../src/gateway/token-count/text-tokens.ts'
import { JsonSyntaxError } from '../../../src/lib/json-visitor.ts'
import { drained } from '../../../src/lib/slices.ts'
import { SAMPLES } from './token-estimate-samples.ts'
import { TRUE_COUNTS } from './token-estimate-truths.ts'

type Body = Record<string, unknown>

const encode = (text: string): Uint8Array => new TextEncoder().encode(text)
const countSource = (body: string, upstreamModel = 'gpt-4o'): number =>
  drained(estimateInputTokens(encode(body), upstreamModel))
const count = (body: Body, upstreamModel?: string): number => countSource(JSON.stringify(body), upstreamModel)
const said = (content: unknown): Body => ({ messages: [{ role: 'user', content }] })

/** Tokens of a text alone, as it stands in a body. */
function tokensOf(text: string, upstreamModel: string): number {
  const json = encode(JSON.stringify(text))
  const tokens = new TextTokens(json)
  tokens.add(1, json.length - 1)
  return drained(tokens.of(familyOf(upstreamModel)))
}

const ASCII = [
  'english',
  'markdown',
  'typescript',
  'python',
  'sql',
  'html',
  'json',
  'logs',
  'csv',
  'identifiers',
]

describe('the estimate of a text', () => {
  it.each(Object.entries(SAMPLES))('is near its count by the vocabulary of OpenAI: %s', (name, text) => {
    const ratio = tokensOf(text, 'gpt-4o') / Number(TRUE_COUNTS['gpt-4o']?.[name])
    expect(ratio).toBeGreaterThan(0.95)
    expect(ratio).toBeLessThan(ASCII.includes(name) ? 1.2 : 1.55)
  })

  it.each(Object.entries(TRUE_COUNTS))('is near its count by the tokenizer of %s', (model, truth) => {
    for (const [name, tokens] of Object.entries(truth)) {
      const ratio = tokensOf(SAMPLES[name] ?? '', model) / tokens
      const [least, most] = ASCII.includes(name) ? [0.95, 1.35] : [0.5, 2.2]
      expect(ratio, name).toBeGreaterThan(least)
      expect(ratio, name).toBeLessThan(most)
    }
  })

  it.each([
    ['hello wörld 世界 🚀', 'h\\u0065llo w\\u00f6rld \\u4e16\\u754c \\ud83d\\ude80'],
    ['two\nlines\tof "text"', 'two\\u000alines\\u0009of \\u0022text\\u0022'],
  ])('is about the same however its escapes are written: %s', (text, escaped) => {
    const plain = count(said(text))
    const body = `{"messages":[{"role":"user","content":"${escaped}"}]}`
    expect(Math.abs(countSource(body) - plain)).toBeLessThanOrEqual(0.4 * plain)
  })

  it.each([
    ['claude-3-5-sonnet', 'claude-opus-5'],
    ['gpt-4o', 'gpt-4-turbo'],
    ['gpt-5', 'house-model'],
    ['qwen3', 'llama-2-7b'],
  ])('is lower for %s than for %s', (smaller, larger) => {
    const text = SAMPLES.english + '世界'.repeat(100)
    expect(tokensOf(text, smaller)).toBeLessThan(tokensOf(text, larger))
  })
})

describe('the estimate of a request', () => {
  it('is that of its texts and of what stands around them', () => {
    expect(count(said('hi'))).toBeLessThan(12)
    const long = SAMPLES.english ?? ''
    const messages = [said(long), said('Go on.'), said(long)].flatMap(({ messages }) => messages)
    expect(count({ messages })).toBeLessThanOrEqual(2 * tokensOf(long, 'gpt-4o') + 3 * 8 + 3)
    expect(count({ messages })).toBeGreaterThanOrEqual(2 * tokensOf(long, 'gpt-4o') + 3 * 4 + 3)
  })

  it('is the same in blocks and in texts, and wherever members stand', () => {
    const blocks = said([{ type: 'text', text: SAMPLES.german, cache_control: { type: 'ephemeral' } }])
    expect(count(blocks)).toBe(count(said(SAMPLES.german)))
    const system = [{ type: 'text', text: SAMPLES.python }]
    expect(count({ system, ...said('hi') })).toBe(count({ system: SAMPLES.python, ...said('hi') }))
    const turned = `{ "messages" : [ {"content":[{"text":"hi","type":"text"}],"role":"user"} ] , "system":"four" }`
    expect(countSource(turned)).toBe(count({ system: 'four', ...said('hi') }))
  })

  it('leaves out what is not sent to a model of chat completions', () => {
    const thinking = { type: 'thinking', thinking: SAMPLES.english, signature: 'c2lnbmF0dXJl'.repeat(20) }
    const redacted = { type: 'redacted_thinking', data: 'ZGF0YQ=='.repeat(50) }
    const text = { type: 'text', text: 'x' }
    expect(count(said([text, thinking, redacted]))).toBe(count(said([text])))
    const more = { metadata: { user_id: SAMPLES.english }, stop_sequences: ['END'] }
    expect(count({ ...said('hi'), ...more })).toBe(count(said('hi')))
  })

  it('has calls, their results, tools and formats', () => {
    const plain = count(said('hi'))
    const call = { type: 'tool_use', id: 'toolu_01', name: 'look', input: { place: 'Oslo', days: [1, 2] } }
    const result = {
      type: 'tool_result',
      tool_use_id: 'toolu_01',
      content: [{ type: 'text', text: 'Sunny.' }],
    }
    expect(count(said([{ type: 'text', text: 'hi' }, call]))).toBeGreaterThan(plain + 8)
    expect(count(said([{ type: 'text', text: 'hi' }, result]))).toBeGreaterThan(plain)
    const properties = Object.fromEntries(
      Array.from({ length: 40 }, (_, index) => [`member_${index}`, { type: 'string' }]),
    )
    const schema = { type: 'object', properties }
    const tools = [{ name: 'look', description: 'Looks.', input_schema: schema }]
    const tooled = count({ ...said('hi'), tools })
    expect(tooled).toBeGreaterThan(plain + 40 * 5)
    expect(count({ ...said('hi'), tools, tool_choice: { type: 'any' } })).toBeGreaterThan(tooled)
    const format = { type: 'json_schema', schema }
    expect(count({ ...said('hi'), output_config: { format } })).toBeGreaterThan(plain + 40 * 5)
    expect(count({ ...said('hi'), output_config: { format } })).toBe(
      count({ ...said('hi'), output_format: format }),
    )
  })

  it('is not of a body that is no JSON', () => {
    expect(() => countSource('{"messages":[')).toThrow(JsonSyntaxError)
  })
})
