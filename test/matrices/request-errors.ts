import type { RequestRoute } from './routes.ts'

/** A body that a route must refuse with 400, and the expected message. */
export interface BadRequest {
  name: string
  body: string | Buffer
  says: RegExp
}

type Fields = Record<string, unknown>

/** Every invalid body for a route that reads a request for a model. */
export function badRequests(route: RequestRoute): BadRequest[] {
  return [...badJson(route), ...badFields(route), ...badMessages(route), ...badItems(route)]
}

/** Bodies that are no JSON object, or one that two readers could read differently. */
function badJson(route: RequestRoute): BadRequest[] {
  const good = JSON.stringify(route.request('Hello'))
  const insides = good.slice(1, -1)
  const texts: Array<[name: string, body: string | Buffer, says: RegExp]> = [
    ['no body', '', /not valid JSON/],
    ['a body that breaks off', good.slice(0, -2), /not valid JSON/],
    ['a member without a value', '{"model":}', /not valid JSON/],
    ['a comma at the end', `{${insides},}`, /not valid JSON/],
    ['single quotes', `{'model':'m'}`, /not valid JSON/],
    ['text after the object', `${good}x`, /not valid JSON/],
    ['a second object', `${good}\n${good}`, /not valid JSON/],
    ['NaN', `{"temperature":NaN,${insides}}`, /not valid JSON/],
    ['a leading zero', `{"seed":01,${insides}}`, /not valid JSON/],
    ['a control character in a string', `{"user":"a\u0001b",${insides}}`, /not valid JSON/],
    ['an invalid escape', `{"user":"\\x41",${insides}}`, /not valid JSON/],
    ['a comment', `{/* hi */${insides}}`, /not valid JSON/],
    ['a byte order mark', `\ufeff${good}`, /not valid JSON/],
    ['UTF-16', Buffer.from(good, 'utf16le'), /not valid JSON/],
    ['a form', 'model=m&messages=hello', /not valid JSON/],
    [
      'deep nesting',
      `{"x":${'['.repeat(100_000)}${']'.repeat(100_000)},${insides}}`,
      /is nested too deeply \(at most 256 levels\)/,
    ],
    [
      'a model of 100,000 characters',
      JSON.stringify(route.request('Hello', { model: 'm'.repeat(100_000) })),
      /model:? is too long \(at most 256 characters\)/,
    ],
    ['an array', `[${good}]`, /must be a JSON object/],
    ['a string', JSON.stringify(good), /must be a JSON object/],
    ['a number', '1', /must be a JSON object/],
    ['null', 'null', /must be a JSON object/],
    ['a member given twice', `{"model":"other",${insides}}`, /model is given twice/],
    ['a member given twice, once escaped', `{"\\u006dodel":"other",${insides}}`, /model is given twice/],
    ['an unknown member given twice', `{"x":1,"x":1,${insides}}`, /x is given twice/],
    ['invalid UTF-8 in a string', inside(insides, [0x22, 0xc3, 0x28, 0x22]), /UTF-8/],
    ['a UTF-8 surrogate', inside(insides, [0x22, 0xed, 0xa0, 0x80, 0x22]), /UTF-8/],
    ['overlong UTF-8', inside(insides, [0x22, 0xc0, 0xaf, 0x22]), /UTF-8/],
    ['UTF-8 that breaks off', inside(insides, [0x22, 0xf0, 0x9f, 0xa6, 0x22]), /UTF-8/],
  ]
  return texts.map(([name, body, says]) => ({ name, body, says }))
}

const inside = (insides: string, value: number[]) =>
  Buffer.concat([Buffer.from('{"user":'), Buffer.from(value), Buffer.from(`,${insides}}`)])

/** Members of the interface's tables with a value of the wrong type or out of range. */
function badFields(route: RequestRoute): BadRequest[] {
  const { name } = route
  const hasItems = route.surface === 'responses'
  const limit = hasItems ? 'max_output_tokens' : 'max_tokens'
  const both: Fields[] = [
    { model: undefined },
    { model: null },
    { model: 7 },
    { model: '' },
    { model: ['scripted-chat'] },
    { stream: 'true' },
    { stream: 1 },
    ...[0, -1, 1.5, '5', {}, 1e300].map((value) => ({ [limit]: value })),
  ]
  const more: Record<RequestRoute['name'], Fields[]> = {
    'chat completions': CHAT_FIELDS,
    completions: [{ prompt: undefined }, { n: 0 }, { best_of: 0 }, { stream_options: 'usage' }],
    messages: [{ max_tokens: undefined }, { max_tokens: null }, { tool_choice: 'auto' }, ...MESSAGES_FIELDS],
    'count tokens': [{ stream: true }, ...MESSAGES_FIELDS],
    responses: [...RESPONSES_FIELDS, ...CONTEXT_FIELDS],
    compact: RESPONSES_FIELDS,
  }
  return [...both, ...more[name]].map((fields) => {
    const [member = ''] = Object.keys(fields)
    const [value] = Object.values(fields)
    const required = hasItems ? `^${member}: ` : `${member} is required`
    return {
      name: `${member} ${value === undefined ? 'left out' : JSON.stringify(value)}`,
      body: JSON.stringify(route.request('Hello', fields)),
      says: new RegExp(value === undefined ? required : member),
    }
  })
}

const CHAT_FIELDS: Fields[] = [
  { messages: undefined },
  { messages: null },
  { messages: 'Hello' },
  { messages: {} },
  { messages: [] },
  { temperature: 'hot' },
  { top_p: [] },
  { frequency_penalty: '0' },
  { presence_penalty: true },
  { stop: 7 },
  { stop: [1] },
  { tools: {} },
  { tools: 'all' },
  { tool_choice: 5 },
  { response_format: 'json_object' },
  { response_format: {} },
  { user: 7 },
  { seed: 'x' },
  { seed: 1.5 },
  { logprobs: 'yes' },
  { max_completion_tokens: 0 },
  { n: 0 },
  { stream_options: [] },
]

const MESSAGES_FIELDS: Fields[] = [
  { messages: undefined },
  { messages: null },
  { messages: 'Hello' },
  { messages: [] },
  { tools: {} },
]

const RESPONSES_FIELDS: Fields[] = [
  { input: undefined },
  { input: null },
  { input: 7 },
  { input: {} },
  { input: [] },
  { conversation: 7 },
  { conversation: {} },
  { previous_response_id: 7 },
  { instructions: 7 },
  { tools: {} },
  { tools: 'all' },
  { tools: [{}] },
  { tool_choice: 'any' },
  { tool_choice: 5 },
  { metadata: 'x' },
  { metadata: [] },
  { store: 'yes' },
  { background: 1 },
  { max_tool_calls: 0 },
  { parallel_tool_calls: 'no' },
  { text: 'json' },
  { text: { format: 'json_object' } },
  { reasoning: 'high' },
  { include: 'reasoning.encrypted_content' },
  { truncation: 'sometimes' },
  { temperature: 'hot' },
  { temperature: 3 },
  { top_p: [] },
  { top_p: 2 },
  { user: 7 },
]

const CONTEXT_FIELDS: Fields[] = [
  { context_management: {} },
  { context_management: [{}] },
  { context_management: [{ type: 'clear' }] },
  { context_management: [{ type: 'compaction', compact_threshold: 0 }] },
  { context_management: [{ type: 'compaction', compact_threshold: '5' }] },
  { context_management: [{ type: 'compaction' }, { type: 'compaction' }] },
]

const USER = { role: 'user', content: 'Hello' }
const ASSISTANT = { role: 'assistant', content: 'Hi' }

/** Conversations that break the rules of the protocol; the start of the message for Claude Code is exact. */
function badMessages(route: RequestRoute): BadRequest[] {
  const rows: Array<[messages: unknown[], says: RegExp]> =
    route.surface === 'messages' ? BAD_MESSAGES : route.name === 'chat completions' ? BAD_CHAT_MESSAGES : []
  return rows.map(([messages, says]) => ({
    name: `messages ${JSON.stringify(messages)}`,
    body: JSON.stringify(route.request('Hello', { messages })),
    says,
  }))
}

const BAD_MESSAGES: Array<[messages: unknown[], says: RegExp]> = [
  // clients.md: Claude Code recovers only from a text that begins like this.
  [[USER, { role: 'system', content: 'x' }], /^messages\.1\.role: Input should be 'user' or 'assistant'/],
  [[{ role: 'system', content: 'x' }, USER], /^messages\.0\.role: Input should be 'user' or 'assistant'/],
  [[USER, ASSISTANT, { role: 'tool', content: 'x' }], /^messages\.2\.role: Input should be 'user' or/],
  [[{ role: 7, content: 'x' }], /^messages\.0\.role/],
  [[{ content: 'x' }], /^messages\.0\.role/],
  [[{ role: 'user' }], /^messages\.0\.content/],
  [[{ role: 'user', content: null }], /^messages\.0\.content/],
  [[{ role: 'user', content: { type: 'text' } }], /^messages\.0\.content/],
  [['Hello'], /^messages\.0/],
  [[null], /^messages\.0/],
  [[ASSISTANT, USER], /^messages\.0\.role/],
  [[USER, USER], /^messages\.1\.role: .*alternate/],
  [[USER, ASSISTANT, ASSISTANT], /^messages\.2\.role: .*alternate/],
]

const BAD_CHAT_MESSAGES: Array<[messages: unknown[], says: RegExp]> = [
  [[USER, { role: 'robot', content: 'x' }], /^messages\.1\.role/],
  [[{ role: null, content: 'x' }], /^messages\.0\.role/],
  [[{ content: 'x' }], /^messages\.0\.role/],
  [[{ role: 'tool', content: 'x' }], /^messages\.0\.tool_call_id/],
  [[{ role: 'tool', content: 'x', tool_call_id: '' }], /^messages\.0\.tool_call_id/],
  [[{ role: 'user', content: 7 }], /^messages\.0\.content/],
  [[{ role: 'user', content: { type: 'text', text: 'x' } }], /^messages\.0\.content/],
  [[{ role: 'assistant', content: null, tool_calls: {} }], /^messages\.0\.tool_calls/],
  [['Hello'], /^messages\.0/],
  [[[]], /^messages\.0/],
]

/** Items that lack what their type needs, and calls and outputs that do not belong together. */
function badItems(route: RequestRoute): BadRequest[] {
  if (route.surface !== 'responses') return []
  // A compaction keeps calls without a counterpart as they are.
  const items = route.name === 'responses' ? [...BAD_ITEMS, ...UNPAIRED_ITEMS] : BAD_ITEMS
  return items.map(([input, says]) => ({
    name: `input ${JSON.stringify(input)}`,
    body: JSON.stringify(route.request('', { input })),
    says,
  }))
}

const CALL = { type: 'function_call', call_id: 'call_1', name: 'add', arguments: '{}' }
const OUTPUT = { type: 'function_call_output', call_id: 'call_1', output: '3' }

const BAD_ITEMS: Array<[input: unknown[], says: RegExp]> = [
  [['Hello'], /input\[0\]/],
  [[null], /input\[0\]/],
  [[USER, []], /input\[1\]/],
  [[{ type: 'robot' }], /input\[0\]\.type/],
  [[{ type: 7 }], /input\[0\]\.type/],
  [[{ role: 'robot', content: 'x' }], /input\[0\]\.role/],
  [[{ role: 'user' }], /input\[0\]\.content/],
  [[{ role: 'user', content: 7 }], /input\[0\]\.content/],
  [[{ role: 'user', content: [{ type: 'film' }] }], /input\[0\]\.content\[0\]\.type/],
  [[{ role: 'user', content: [{ type: 'input_text' }] }], /input\[0\]\.content\[0\]\.text/],
  [[{ ...CALL, call_id: undefined }], /input\[0\]\.call_id/],
  [[{ ...CALL, name: undefined }], /input\[0\]\.name/],
  [[{ ...CALL, arguments: {} }], /input\[0\]\.arguments/],
  [[{ ...OUTPUT, call_id: '' }], /input\[0\]\.call_id/],
  [[{ ...OUTPUT, output: 7 }], /input\[0\]\.output/],
  [[{ type: 'item_reference' }], /input\[0\]\.id/],
  [[{ type: 'compaction' }], /input\[0\]\.encrypted_content/],
]

const UNPAIRED_ITEMS: typeof BAD_ITEMS = [
  [[USER, CALL], /No tool output found for function call call_1\./],
  [[USER, OUTPUT], /No tool call found for function call output with call_id call_1\./],
]
