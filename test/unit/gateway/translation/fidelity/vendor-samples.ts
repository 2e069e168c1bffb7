import type { Json } from '../../../../../src/gateway/protocols/json.ts'
import { CAPABILITIES } from './run-request.ts'
import type { VendorCaller } from './vendors.ts'

// A value of every member that is plausible, so that a loss is the vendor's and no error of the value.

/** A member of a request with what it needs beside it. */
interface Sample {
  value: unknown
  beside?: Json
  /** Of the model; it does not reason by default. */
  capabilities?: readonly string[]
}

const of = (value: unknown, beside: Json = {}): Sample => ({ value, beside })
const ofReasoning = (value: unknown, beside: Json = {}): Sample => ({
  ...of(value, beside),
  capabilities: ['reasoning', ...CAPABILITIES],
})

const OBJECT = { type: 'object', properties: { city: { type: 'string' } } }
const SCHEMA = { ...OBJECT, required: ['city'], additionalProperties: false }
const CHAT_TOOLS = [{ type: 'function', function: { name: 'look', parameters: OBJECT } }]
const TOOLS = [{ name: 'look', input_schema: OBJECT }]
const FUNCTIONS = [{ type: 'function', name: 'look', parameters: OBJECT }]
const HELLO = [{ role: 'user', content: 'Hello' }]

const CHAT: Record<string, Sample> = {
  audio: of({ voice: 'alloy', format: 'wav' }),
  frequency_penalty: of(0.5),
  function_call: of('auto'),
  functions: of([{ name: 'look', parameters: OBJECT }]),
  logit_bias: of({ 50256: -100 }),
  logprobs: of(true),
  max_completion_tokens: of(500),
  max_tokens: of(500),
  messages: of([{ role: 'user', content: 'Hello there' }]),
  metadata: of({ a: 'b' }),
  modalities: of(['text', 'audio']),
  model: of('some-model'),
  moderation: of({ type: 'auto' }),
  n: of(2),
  parallel_tool_calls: of(false, { tools: CHAT_TOOLS }),
  prediction: of({ type: 'content', content: 'Hello' }),
  presence_penalty: of(0.5),
  prompt_cache_key: of('key'),
  prompt_cache_options: of({ a: 1 }),
  prompt_cache_retention: of('24h'),
  reasoning_effort: ofReasoning('medium', { max_tokens: 6_000 }),
  response_format: of({ type: 'json_schema', json_schema: { name: 'answer', strict: true, schema: SCHEMA } }),
  safety_identifier: of('user-1'),
  seed: of(7),
  service_tier: of('flex'),
  stop: of(['END']),
  store: of(false),
  stream: of(true),
  stream_options: of({ include_usage: true }, { stream: true }),
  temperature: of(0.5),
  thinking: ofReasoning({ type: 'enabled', budget_tokens: 1_024 }, { max_tokens: 6_000 }),
  tool_choice: of('required', { tools: CHAT_TOOLS }),
  tools: of(CHAT_TOOLS),
  top_logprobs: of(2),
  top_p: of(0.5),
  user: of('user-1'),
  verbosity: of('low'),
  web_search_options: of({}),
}

const MESSAGES: Record<string, Sample> = {
  betas: of(['context-management-2025-06-27']),
  billing_policy: of({ a: 1 }),
  cache_control: of({ type: 'ephemeral' }),
  compaction: of({ a: 1 }),
  container: of('container_1'),
  context_management: of({ edits: [{ type: 'clear_tool_uses_20250919' }] }),
  diagnostics: of({ a: 1 }),
  fallback_credit_token: of('token'),
  fallbacks: of([{ model: 'other' }]),
  inference_geo: of('us'),
  max_tokens: of(500),
  mcp_servers: of([{ type: 'url', url: 'https://mcp.example', name: 'mcp' }]),
  messages: of([{ role: 'user', content: 'Hello there' }]),
  metadata: of({ user_id: 'user-1' }),
  model: of('some-model'),
  output_config: of({ format: { type: 'json_schema', schema: SCHEMA } }),
  output_format: of({ type: 'json_schema', schema: SCHEMA }),
  service_tier: of('auto'),
  speed: of('standard'),
  stop_sequences: of(['END']),
  stream: of(true),
  system: of('Be brief.'),
  temperature: of(0.5),
  thinking: ofReasoning({ type: 'enabled', budget_tokens: 1_024 }, { max_tokens: 6_000 }),
  thread: of('thread_1'),
  tool_choice: of({ type: 'any' }, { tools: TOOLS }),
  tools: of(TOOLS),
  top_k: of(40),
  top_p: of(0.5),
  user_profile_id: of('profile_1'),
  workspace_id: of('workspace_1'),
}

const RESPONSES: Record<string, Sample> = {
  frequency_penalty: of(0.5),
  input: of([{ role: 'user', content: 'Hello there' }]),
  instructions: of('Be brief.'),
  max_output_tokens: of(500),
  model: of('some-model'),
  parallel_tool_calls: of(false, { tools: FUNCTIONS }),
  presence_penalty: of(0.5),
  prompt_cache_key: of('key'),
  reasoning: ofReasoning({ effort: 'medium' }, { max_output_tokens: 6_000 }),
  safety_identifier: of('user-1'),
  service_tier: of('flex'),
  stream: of(true),
  temperature: of(0.5),
  text: of({ format: { type: 'json_schema', name: 'answer', strict: true, schema: SCHEMA } }),
  tool_choice: of('required', { tools: FUNCTIONS }),
  tools: of(FUNCTIONS),
  top_logprobs: of(2),
  top_p: of(0.5),
  user: of('user-1'),
}

const PLAIN: Record<VendorCaller, Json> = {
  chat_completions: { model: 'some-model', messages: HELLO },
  messages: { model: 'some-model', max_tokens: 1_000, messages: HELLO },
  responses: { model: 'some-model', input: HELLO, stream: true },
}

export const MEMBER_SAMPLES: Record<VendorCaller, Record<string, Sample>> = {
  chat_completions: CHAT,
  messages: MESSAGES,
  responses: RESPONSES,
}

/** A request with one member, and the abilities of its model. */
export function sampleOf(caller: VendorCaller, member: string) {
  const sample = MEMBER_SAMPLES[caller][member]
  if (sample === undefined) throw new Error(`no sample of ${member} on ${caller}`)
  const { value, beside, capabilities } = sample
  const request = { ...PLAIN[caller], ...beside, [member]: value }
  return { member, request, ...(capabilities && { capabilities }) }
}

/** Something within messages, and a text by which it is found in what is sent. */
interface Content {
  name: string
  chat_completions?: { messages: Json[]; more?: Json }
  messages?: { messages: Json[]; more?: Json }
  marker: RegExp
}

const PIXEL = 'aGVhZGdhdGUtcGl4ZWw='
const user = (...content: Json[]): Json[] => [
  { role: 'user', content: [{ type: 'text', text: 'Hi' }, ...content] },
]
const CALL = { id: 'call_1', type: 'function', function: { name: 'look', arguments: '{"city":"Oslo"}' } }
const RESULT_OF_CHAT = [
  { role: 'user', content: 'Hi' },
  { role: 'assistant', content: null, tool_calls: [CALL] },
  { role: 'tool', tool_call_id: 'call_1', content: 'Sunny marker' },
]
const USE = { type: 'tool_use', id: 'call_1', name: 'look', input: { city: 'Oslo' } }
const RESULT_OF_MESSAGES = [
  { role: 'user', content: 'Hi' },
  { role: 'assistant', content: [USE] },
  { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'call_1', content: 'Sunny marker' }] },
]
const base64 = (media_type: string) => ({ type: 'base64', media_type, data: PIXEL })
const EPHEMERAL = { cache_control: { type: 'ephemeral' } }

export const CONTENTS: readonly Content[] = [
  {
    name: 'Image in base64',
    chat_completions: {
      messages: user({ type: 'image_url', image_url: { url: `data:image/png;base64,${PIXEL}` } }),
    },
    messages: { messages: user({ type: 'image', source: base64('image/png') }) },
    marker: new RegExp(PIXEL),
  },
  {
    name: 'Image by URL',
    chat_completions: {
      messages: user({ type: 'image_url', image_url: { url: 'https://a.example/x.png' } }),
    },
    messages: { messages: user({ type: 'image', source: { type: 'url', url: 'https://a.example/x.png' } }) },
    marker: /a\.example/,
  },
  {
    name: 'How closely to look (`detail`)',
    chat_completions: {
      messages: user({
        type: 'image_url',
        image_url: { url: `data:image/png;base64,${PIXEL}`, detail: 'low' },
      }),
    },
    marker: /"detail"/,
  },
  {
    name: 'PDF in base64',
    chat_completions: {
      messages: user({
        type: 'file',
        file: { filename: 'a.pdf', file_data: `data:application/pdf;base64,${PIXEL}` },
      }),
    },
    messages: { messages: user({ type: 'document', source: base64('application/pdf') }) },
    marker: new RegExp(PIXEL),
  },
  {
    name: 'Sound in base64',
    chat_completions: {
      messages: user({ type: 'input_audio', input_audio: { data: PIXEL, format: 'wav' } }),
    },
    marker: new RegExp(PIXEL),
  },
  {
    name: 'Name of a participant',
    chat_completions: { messages: [{ role: 'user', name: 'marker', content: 'Hi' }] },
    marker: /marker/,
  },
  {
    name: 'Cache marker of a text',
    chat_completions: { messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi', ...EPHEMERAL }] }] },
    messages: { messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi', ...EPHEMERAL }] }] },
    marker: /cache_control|cachePoint/,
  },
  {
    name: 'Earlier call of a tool with its result',
    chat_completions: { messages: RESULT_OF_CHAT, more: { tools: CHAT_TOOLS } },
    messages: { messages: RESULT_OF_MESSAGES, more: { tools: TOOLS } },
    marker: /Sunny marker/,
  },
  {
    name: 'Earlier reasoning, before a call',
    chat_completions: {
      messages: RESULT_OF_CHAT.map((each) =>
        each.role === 'assistant' ? { ...each, reasoning_content: 'Thought marker' } : each,
      ),
      more: { tools: CHAT_TOOLS },
    },
    messages: {
      messages: RESULT_OF_MESSAGES.map((each) =>
        each.role === 'assistant'
          ? { ...each, content: [{ type: 'thinking', thinking: 'Thought marker', signature: 'c2ln' }, USE] }
          : each,
      ),
      more: { tools: TOOLS },
    },
    marker: /Thought marker/,
  },
]

/** The request for something within messages; null where the caller cannot say it. */
export function contentOf(content: Content, caller: 'chat_completions' | 'messages') {
  const said = content[caller]
  if (said === undefined) return null
  return { request: { ...PLAIN[caller], ...said.more, messages: said.messages }, marker: content.marker }
}
