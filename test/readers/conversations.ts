import { termsOf } from '../../src/gateway/calls/call-terms.ts'
import { chatCompletions } from '../../src/gateway/protocols/chat-completions.ts'
import { messages } from '../../src/gateway/protocols/messages.ts'
import type { Protocol } from '../../src/gateway/protocols/protocol.ts'
import { usageOfChat, usageOfMessages } from '../../src/gateway/protocols/reported-usage.ts'
import { documentTokens } from '../../src/gateway/token-count/document-tokens.ts'
import { imageSize } from '../../src/gateway/token-count/image-size.ts'
import { familyOf } from '../../src/gateway/token-count/model-families.ts'
import { TextTokens } from '../../src/gateway/token-count/text-tokens.ts'
import type { ModelEvent } from '../../src/gateway/translation/model-events.ts'
import { upstreamTools } from '../../src/gateway/translation/requests/responses-tools.ts'
import { missingTypes } from '../../src/http/accepted-types.ts'
import { drained } from '../../src/lib/slices.ts'
import { SseReader } from '../../src/lib/sse.ts'
import { callPairs } from '../../src/responses/context/call-pairs.ts'
import { decidedApprovals } from '../../src/responses/context/decided-approvals.ts'
import { readResponseRequest } from '../../src/responses/context/load-request.ts'
import { redactItem, redactSettings } from '../../src/responses/items/redaction.ts'
import { openResponsesEvent } from '../../src/responses/open-responses/rendered-events.ts'
import { messageBody } from '../../src/responses/sockets/message-body.ts'
import { modelChoice } from '../../src/responses/tools/hosted-choice.ts'
import type { ServiceTool } from '../../src/responses/tools/hosted-tool.ts'
import { approvalIdOf } from '../../src/responses/tools/integrations/approvals.ts'
import { mcpEntries } from '../../src/responses/tools/integrations/mcp-entries.ts'
import { toolRules } from '../../src/responses/tools/tool-rules.ts'
import { cursorParameter } from '../../src/wire/page-cursor.ts'
import { includesOf, sequenceParameter } from '../../src/wire/response-queries.ts'
import { type ResponseSettings, responseSettings } from '../../src/wire/responses.ts'
import { policyOf } from '../unit/dlp/relayed-stream.ts'
import { input, tool } from '../unit/gateway/translation/requests/responses.ts'
import { Emitting, say } from '../unit/responses/emitting.ts'
import { itemOf } from '../unit/responses/items.ts'
import * as grammars from './grammars.ts'
import { bytes, json, type ListReader, type Make, refusable, type TextReader } from './reader.ts'

const RING = new Map([['k', new Uint8Array(32)]])
const OWNER = { organizationId: 'o', userId: 'u' }
const REDACTING = policyOf('redact')
const MCP_TYPES = ['application/json', 'text/event-stream']
/** A text, so that a context of it has one string and not as many as it has values. */
const quoted = (text: string) => bytes(JSON.stringify({ text }))

export const CONVERSATION_TEXTS: TextReader[] = [
  // Token counts
  { name: 'the tokens of a text', fragments: [...grammars.PLAIN, ...grammars.JSON_TEXT], read: (text) => tokensOf(quoted(text)) },
  { name: 'the tokens of JSON', fragments: grammars.JSON_TEXT, read: (text) => tokensOf(bytes(text)) },
  { name: 'the size of an image', fragments: ['iVBORw0KGgo', 'R0lGOD', 'UklGR', '/9j/', '/', '/9', 'A', 'AAAA', '\\', '+', '='], read: (text) => imageSize(bytes(text)) },
  { name: 'the pages of a file', fragments: ['JVBERi', ...['/Count 12', '/Linearized ', '/Type/Page', '/Type   ', '/N 3', ' ', '<<'].map(btoa)], read: (text) => drained(documentTokens(bytes(text), () => 1)) },
  // Headers and queries
  { name: 'the header Accept', fragments: grammars.HEADER, read: (text) => missingTypes(text, MCP_TYPES) },
  { name: 'a number of an event', fragments: ['0', '9', '1', ' ', '-', '.', 'e', 'x'], read: (text) => sequenceParameter.safeParse(text.slice(0, 16_000)) },
  { name: 'the end of a page', fragments: ['W', 'WzEs', '"', 'Il0', '-', '_', '=', ' '], read: (text) => cursorParameter.safeParse(text) },
  // Streams and conversations
  { name: 'frames in small chunks', fragments: grammars.STREAM, read: framesOf },
  { name: 'a message of a WebSocket', fragments: grammars.JSON_TEXT, read: (text) => messageOf(`{"type":"response.create","model":"m","input":[${text}`) },
  { name: 'arguments to approve', fragments: grammars.JSON_TEXT, read: (text) => [approvalIdOf(RING, OWNER, { server_label: 's', name: 'n' }, text), approvalIdOf(RING, OWNER, {}, `{"a":${JSON.stringify(text)}}`)] },
  { name: 'an item on reading', fragments: [...grammars.PLAIN, 'KX-1234-567890', 'KX-', 'data:image/png;base64,'], read: (text) => redacted({ type: 'message', role: 'user', content: [input(text), { type: 'input_image', image_url: text }] }), most: 2_000 },
  { name: 'arguments on reading', fragments: grammars.JSON_TEXT, read: (text) => redacted({ type: 'function_call', call_id: 'a', name: 'a', arguments: `[${text}` }), most: 4_000 },
  { name: 'settings on reading', fragments: [...grammars.PLAIN, 'KX-1234-567890'], read: (text) => drained(redactSettings(REDACTING, { metadata: { a: text, [text.slice(0, 200)]: 'a' } })), most: 2_000 },
] // biome-ignore format: one line for each reader

function tokensOf(source: Uint8Array): number {
  const texts = new TextTokens(source)
  texts.add(0, source.length)
  return drained(texts.of(familyOf('gpt-5')))
}

function framesOf(text: string): void {
  const frames = new SseReader()
  const source = bytes(text)
  for (let at = 0; at < source.length; at += 7) refusable(() => frames.push(source.subarray(at, at + 7)))
}

/** A body of more than 64 Ki characters is a stream. */
function messageOf(text: string): void {
  messageBody(text)
  refusable(() => drained(readResponseRequest(bytes(text), { isMessage: true })))
}

const redacted = (item: object) => drained(redactItem(REDACTING, json(item)))

const URL_CITATION = { type: 'url_citation', url: 'https://a.example', title: 'a' }

/** Long texts and their citations, so that a citation costs less than what it is about. */
const CITED: readonly Make[] = [
  () => say.text('ab '.repeat(20)),
  () => say.citation(URL_CITATION, 1),
  () => say.citation(URL_CITATION, 60),
  () => say.citation(URL_CITATION, 1_000_000),
]

/** Calls of one turn, as models make them: one after another, all begun first, and without an end. */
const CALLS: readonly Make[] = [
  (index) => [say.call(index), say.args(index, '{}')],
  (index) => [say.call(index)],
  (index) => [say.call(index, 'mcp_a'), say.args(index, '{"a":1}')],
  (index) => [say.args(index - 1, '{}'), say.text('a')],
  () => [say.reasoning('r')],
]

function emitted(events: ModelEvent[]): void {
  const emitting = new Emitting()
  emitting.emitter.begin()
  for (const event of events) emitting.emitter.model(event)
  emitting.emitter.endTurn()
}

/** Two turns, of which the first has its results. */
function answered(names: string[]): void {
  const emitting = new Emitting({ purposeOf: () => 'hosted' })
  emitting.emitter.begin()
  for (const [index, name] of names.entries()) emitting.feed(say.call(index, name), say.args(index, '{}'))
  const { calls } = emitting.emitter.endTurn()
  for (const { callId } of calls)
    emitting.emitter.addResult(callId, { status: 'completed', members: { output: 'a' } })
}

const listed = <Element>(members: Record<string, unknown>): Element[] => (members.list ?? []) as Element[]

/** Twenty tools of integrations. */
const HOSTED = Array.from(
  { length: 20 },
  (_, index): ServiceTool =>
    ({
      purpose: 'integration',
      family: null,
      definition: { type: 'function', name: `s__hosted${index}` },
      itemType: 'mcp_call',
      members: { name: `hosted${index}`, server_label: 's' },
      repeatable: false,
      offered: { needsApproval: false },
    }) as unknown as ServiceTool,
)

const CHOSEN: readonly Make[] = [
  (index) => ({ type: 'function', name: `tool_${index}` }),
  (index) => ({ type: 'mcp', server_label: 's', name: `hosted${index}` }),
  () => ({ type: 'mcp', server_label: 's' }),
  () => ({ type: 'web_search_preview' }),
  (index) => ({ type: 'namespace', name: `space${index}` }),
  (index) => ({ type: 'function', name: `s__hosted${index}` }),
]

/** A choice among as many tools as the request has, and the calls of them all. */
function rulesOf({ tools = [], chosen = [] }: { tools?: Array<{ name: string }>; chosen?: unknown[] }): void {
  const settings = {
    tools,
    tool_choice: { type: 'allowed_tools', mode: 'auto', tools: chosen },
  } as unknown as ResponseSettings
  const rules = toolRules(settings, HOSTED)
  for (const { name } of tools) rules.purposeOf(name)
  for (const { definition } of HOSTED) rules.purposeOf(definition.name)
  modelChoice(settings.tool_choice, HOSTED)
}

/** All names that `a__a__a…` may be split into: the same for an upstream. */
const splitName = (index: number) => {
  const parts = Array.from({ length: 30 }, () => 'a')
  const at = index % 28
  return { at, head: parts.slice(0, at + 1).join('__'), rest: parts.slice(at + 1).join('__') }
}

const NAMESPACES: readonly Make[] = [
  (index) => ({ type: 'namespace', name: splitName(index).head, tools: [tool(splitName(index).rest)] }),
  (index) => ({ type: 'namespace', name: `${'a__'.repeat(index)}a`, tools: [tool('b')] }),
  (index) => ({ type: 'namespace', name: 'a', tools: [tool(`tool_${index}`)] }),
  (index) => tool(`a__tool_${index}`),
]

const MCP_ENTRIES: readonly Make[] = [
  (index) => ({ type: 'mcp', server_label: `s${index}` }),
  (index) => ({ type: 'mcp', server_label: `s${index}`, allowed_tools: ['a'], require_approval: { never: { tool_names: ['a'] } } }),
  (index) => tool(`tool_${index}`),
] // biome-ignore format: a table

const APPROVAL_ID = approvalIdOf(RING, OWNER, { server_label: 's', name: 'a' }, '{}')
const APPROVED_CALL = {
  type: 'mcp_call',
  id: 'mcp_1',
  call_id: 'call_1',
  approval_request_id: APPROVAL_ID,
  name: 'a',
  server_label: 's',
  arguments: '{}',
  output: 'a',
}

/** Calls, outputs, requests for approval and what became of them. */
const STORED: readonly Make[] = [
  (index) => ({ type: 'function_call', call_id: `call_${index}`, name: 'a', arguments: '{}' }),
  () => ({ type: 'function_call', call_id: 'call', name: 'a', arguments: '{}' }),
  () => ({ type: 'function_call_output', call_id: 'call', output: 'a' }),
  () => approvalRequest(APPROVAL_ID),
  () => APPROVED_CALL,
  () => ({ type: 'mcp_approval_response', approval_request_id: APPROVAL_ID, approve: false }),
  () => ({ role: 'user', content: 'a' }),
] // biome-ignore format: a table

const approvalRequest = (id: string) => ({
  type: 'mcp_approval_request',
  id,
  name: 'a',
  server_label: 's',
  arguments: '{}',
})

function contextOf(elements: object[]): void {
  const items = elements.map(itemOf)
  callPairs(items)
  const nothing = { reasoning: () => null, compaction: () => null }
  for (const [item, form] of decidedApprovals(items)) if (typeof form === 'function') form(item, nothing)
}

/** Native requests, whose members are read without a tree. */
const nativeRequest = (protocol: Protocol) => (members: Record<string, unknown>) =>
  refusable(() => {
    const outline = drained(protocol.outline(json({ model: 'm', max_tokens: 9, messages: [], ...members })))
    termsOf(outline, new Headers())
  })

const NATIVE: Record<string, readonly Make[]> = {
  messages: [
    () => ({ role: 'user', content: 'a' }),
    (index) => ({ role: 'tool', tool_call_id: `call_${index}`, content: 'a' }),
    () => ({ role: 'user', content: [{ type: 'document', source: { type: 'text', data: 'a' } }] }),
  ],
  tools: [
    (index) => ({ name: `t${index}`, input_schema: {} }),
    () => ({ type: 'web_search_20250305', name: 'web_search' }),
  ],
  'metadata{}': [() => 'a'],
  stop: [(index) => `${index}`],
}

export const CONVERSATION_LISTS: ListReader[] = [
  { name: 'citations of a text', lists: { list: CITED }, read: (members) => emitted(listed(members)), most: 20_000 },
  { name: 'calls of a turn', lists: { list: CALLS }, read: (members) => emitted(listed<ModelEvent[]>(members).flat()), most: 40_000 },
  { name: 'results of the calls of a turn', lists: { list: [() => 'look', () => 'mcp_a'] }, read: (members) => answered(listed(members)), most: 40_000 },
  { name: 'a choice of tools', lists: { tools: [(index) => tool(`tool_${index}`)], chosen: CHOSEN }, read: rulesOf, most: 10_000 },
  { name: 'names in namespaces', lists: { list: NAMESPACES.slice(0, 1).concat(NAMESPACES.slice(2)) }, read: (members) => refusable(() => upstreamTools(listed(members))), most: 10_000 },
  { name: 'entries of integrations', lists: { tools: MCP_ENTRIES }, read: ({ tools }) => refusable(() => mcpEntries(tools as ResponseSettings['tools'])), most: 20_000 },
  { name: 'one call for many approvals', lists: { list: [() => 'a'] }, read: (members) => contextOf([...listed(members).map(() => approvalRequest(APPROVAL_ID)), { ...APPROVED_CALL, output: 'a'.repeat(20 * listed(members).length) }]), most: 20_000 },
  { name: 'calls, outputs and approvals', lists: { list: STORED }, read: (members) => contextOf(listed(members)), most: 20_000 },
  { name: 'a native request of chat completions', lists: NATIVE, read: nativeRequest(chatCompletions), most: 10_000 },
  { name: 'a native request of messages', lists: NATIVE, read: nativeRequest(messages), most: 10_000 },
  { name: 'an item with parts on reading', lists: { content: [() => input('KX-1234-567890'), () => ({ type: 'input_image', image_url: 'data:image/png;base64,AAAA' }), () => ({ type: 'input_file', file_data: 'AAAA' })], 'more{}': [() => 'a', () => ({ b: [1] })] }, read: (members) => redacted({ type: 'message', role: 'user', ...members }), most: 40_000 },
  { name: 'usage', lists: { 'server_tool_use{}': [() => 1], iterations: [() => ({ type: 'compaction', input_tokens: 1 })], 'prompt_tokens_details{}': [() => 1] }, read: (members) => [usageOfMessages({ input_tokens: 1, output_tokens: 1, ...members }, null), usageOfChat({ prompt_tokens: 1, ...members })] },
  { name: 'what a caller includes', lists: { include: [(index) => `a${index}`, () => 'same'] }, read: ({ include }) => includesOf({ include: include as string[] }) },
  { name: 'a response in the form of Open Responses', lists: { output: [() => ({ type: 'mcp_call', id: 'a' }), () => ({ type: 'message', content: [{ type: 'output_text', text: 'a' }] })], tools: [(index) => tool(`t${index}`)] }, read: (members) => openResponsesEvent({ type: 'response.completed', payload: JSON.stringify({ type: 'response.completed', response: { output: [], tools: [], text: { format: { type: 'text' } }, ...members } }) }) },
  { name: 'settings of a response', lists: { tools: [(index) => tool(`t${index}`)], include: [(index) => `a${index}`], 'metadata{}': [() => 'a'] }, read: (members) => responseSettings.safeParse({ model: 'm', ...members }) },
] // biome-ignore format: one line for each reader
