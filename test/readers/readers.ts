import { definitionIssues } from '../../src/agents/definitions/check-definition.ts'
import { cronFault } from '../../src/agents/definitions/cron.ts'
import { referencesIn, renderTemplate } from '../../src/agents/definitions/template.ts'
import { checkStep } from '../../src/agents/evaluations/checks.ts'
import { readJudgeAnswer } from '../../src/agents/evaluations/judge-answer.ts'
import { schemaFault } from '../../src/agents/runs/step-output.ts'
import { isSigned, newWebhookSecret } from '../../src/agents/triggers/webhook-signature.ts'
import { Inspection, passAllEngine } from '../../src/dlp/inspection.ts'
import { termsOf } from '../../src/gateway/calls/call-terms.ts'
import { chatCompletions } from '../../src/gateway/protocols/chat-completions.ts'
import { messages } from '../../src/gateway/protocols/messages.ts'
import type { Protocol } from '../../src/gateway/protocols/protocol.ts'
import { inspectRequest } from '../../src/gateway/protocols/request-inspection.ts'
import { responses } from '../../src/gateway/protocols/responses.ts'
import { unsignedThinkingEdits } from '../../src/gateway/protocols/unsigned-thinking.ts'
import { imageRuleOf } from '../../src/gateway/token-count/image-tokens.ts'
import { estimateInputTokens } from '../../src/gateway/token-count/input-tokens.ts'

import { familyOf } from '../../src/gateway/token-count/model-families.ts'
import { parsedBody, upstreamError } from '../../src/gateway/translation/error-shapes.ts'
import { ChatDecoder } from '../../src/gateway/translation/events/chat-decoder.ts'
import { ChatEncoder } from '../../src/gateway/translation/events/chat-encoder.ts'
import { FenceStripper } from '../../src/gateway/translation/events/fence-stripper.ts'
import { MessagesDecoder } from '../../src/gateway/translation/events/messages-decoder.ts'
import { MessagesEncoder } from '../../src/gateway/translation/events/messages-encoder.ts'
import type { ModelEvent } from '../../src/gateway/translation/model-events.ts'
import { toolInput } from '../../src/gateway/translation/tool-input.ts'
import { errorInsteadOfAnswer, providerMessage } from '../../src/gateway/translation/upstream-errors.ts'
import { retryAfterWait } from '../../src/gateway/upstreams/route-health.ts'
import { hostKind, surfaceOf } from '../../src/http/surfaces.ts'
import { explain } from '../../src/http/validated-request.ts'
import { cleanText, pinnedDefinition } from '../../src/integrations/catalogue/clean-definition.ts'
import { operationTools } from '../../src/integrations/catalogue/openapi/operation-tools.ts'
import { checkDocument, serverUrl } from '../../src/integrations/catalogue/openapi/read-document.ts'
import { toolName } from '../../src/integrations/catalogue/tool-name.ts'
import { integrationFilter } from '../../src/integrations/mcp-server/integration-filter.ts'
import { readMessage } from '../../src/integrations/mcp-server/read-message.ts'
import { rankTools } from '../../src/integrations/platform-tools/tool-ranking.ts'
import type { CatalogueTool } from '../../src/integrations/types.ts'
import { callOperation } from '../../src/integrations/upstream/call-operation.ts'
import { canonicalJson } from '../../src/lib/canonical-json.ts'
import { scanJson } from '../../src/lib/json-scan.ts'
import { readJsonText } from '../../src/lib/json-text.ts'
import { redact, redactEncoded } from '../../src/lib/log.ts'
import { checkEgress } from '../../src/lib/safe-fetch.ts'
import { CredentialWatch, redactAnswer, withoutCredential } from '../../src/lib/secret-spellings.ts'
import { drained } from '../../src/lib/slices.ts'
import { SseReader } from '../../src/lib/sse.ts'
import { visibleText } from '../../src/lib/visible-text.ts'
import { shortenedItem } from '../../src/responses/compaction/shortened-item.ts'

import { readResponseRequest } from '../../src/responses/context/load-request.ts'
import { readItem } from '../../src/responses/items/input-items.ts'

import { hidesText } from '../../src/responses/tools/web/html/hiding-styles.ts'
import { readablePage } from '../../src/responses/tools/web/html/readable-page.ts'
import { findInPage, listLinks, pageWindow } from '../../src/responses/tools/web/page-window.ts'
import { readResults } from '../../src/responses/tools/web/search/search-request.ts'
import { findArguments, openArguments } from '../../src/responses/tools/web/web-call.ts'
import { filePathOf } from '../../src/responses/tools/workspace/conversation-files.ts'
import { agentDefinition } from '../../src/wire/agents.ts'
import { responseSettings } from '../../src/wire/responses.ts'
import { Entries } from '../../src/workspace/files/entries.ts'
import { FileStore } from '../../src/workspace/files/file-store.ts'
import { resolvePath } from '../../src/workspace/files/paths.ts'
import { parsePatch } from '../../src/workspace/patch/parse-patch.ts'
import { searchFiles } from '../../src/workspace/search-files.ts'
import {
  assistant,
  call,
  fromChat,
  fromMessages,
  functionTool,
  system,
  text as textPart,
  toolMessage,
  user,
} from '../unit/gateway/translation/requests/requests.ts'
import {
  answers,
  calls,
  input,
  item,
  output,
  reasoning,
  toChat,
  toMessages,
  tool,
} from '../unit/gateway/translation/requests/responses.ts'
import { memoryStorage } from '../unit/ledger/memory-storage.ts'
import { Emitting, say } from '../unit/responses/emitting.ts'
import { CONVERSATION_LISTS, CONVERSATION_TEXTS } from './conversations.ts'
import * as grammars from './grammars.ts'
import { bytes, json, type ListReader, type Make, refusable, type TextReader } from './reader.ts'

/**
 * Readers of what a caller, an upstream, a page or a model sends; those of conversations are in `conversations.ts`. A new one
 * is a line: its name, the fragments of its texts, and how it reads a text; or its name, what its lists may hold, and how it
 * reads them.
 */

const inspection = () => new Inspection(passAllEngine)

/** A workspace with a file, of which a glob may match the name. */
const FILES = new FileStore(new Entries(memoryStorage().sql, () => 0))
FILES.write('/workspace/aa.ts', bytes('a'))

const PAGE = { title: 'a', links: [], cut: false, url: 'https://a.example/' }
const SECRETS = { secrets: ['secret-of-the-account-0123456789', `${'a'.repeat(2_000)}b`] }
const HEADERS = (text: string) => {
  const headers = new Headers()
  refusable(() => headers.set('anthropic-beta', text))
  return headers
}

const requestOf = (protocol: Protocol) => (text: string) => {
  const body = bytes(
    `{"model":"m","max_tokens":9,"stream":false,"messages":[{"role":"user","content":[${text}`,
  )
  for (const whole of [body, bytes(text)]) {
    refusable(() => {
      const outline = drained(protocol.outline(whole))
      drained(inspectRequest(outline, protocol, inspection()))
      termsOf(outline, new Headers())
    })
  }
}

const answerOf = (protocol: Protocol) => (text: string) =>
  refusable(() =>
    drained(
      protocol.readAnswer(bytes(text), { inspection: inspection(), modelId: 'm', usageRequested: true }),
    ),
  )

/** A stream in chunks of an odd length, through the reader of its protocol. */
const streamOf = (protocol: Protocol) => (text: string) => {
  const frames = new SseReader()
  const reader = protocol.streamReader({ inspection: inspection(), modelId: 'm', usageRequested: true })
  const source = bytes(text)
  refusable(() => {
    for (let at = 0; at < source.length; at += 61) {
      for (const frame of frames.push(source.subarray(at, at + 61))) drained(reader.read(frame))
    }
    drained(reader.closingFrames())
  })
}

const fenced = (text: string) => {
  const stripper = new FenceStripper()
  for (let at = 0; at < text.length; at += 7) stripper.events(say.text(text.slice(at, at + 7)))
  stripper.events(say.stop('end'))
}

const tools = (description: string, count: number): CatalogueTool[] =>
  Array.from({ length: count }, (_, index) => ({
    ...({ integration: { slug: 's', displayName: 'S' }, name: `s_${index}` } as CatalogueTool),
    definition: { name: `tool_${index}`, description, inputSchema: {} },
  }))

/** Each comment that is cut out joins the halves of another one. */
const nestedComments = (length: number) => `${'<!'.repeat(length / 8)}<!---->${'---->'.repeat(length / 8)}`

export const TEXT_READERS: TextReader[] = [
  // Pages
  { name: 'a page', fragments: grammars.HTML, read: (text) => drained(readablePage(text, 'https://a.example/b/')), known: [(length) => `<b><div>${'<i>'.repeat(500)}${'</b>'.repeat(length / 4)}`, (length) => `${'<a href=x>'.repeat(200)}${'w'.repeat(length)}${'</a>'.repeat(200)}`] },
  { name: 'a tag of a page', fragments: grammars.HTML, read: (text) => drained(readablePage(`<p title="${text}`, PAGE.url)) },
  { name: 'a style', fragments: grammars.STYLE, read: hidesText, known: [(length) => `font-size:${' '.repeat(length)}x`, (length) => `opacity:${'0'.repeat(length)}.x`] },
  { name: 'the style of an element', fragments: grammars.STYLE, read: (text) => drained(readablePage(`<p style="${text}">x`, PAGE.url)) },
  { name: 'visible text', fragments: grammars.PLAIN, read: visibleText },
  { name: 'a window of a page', fragments: grammars.PLAIN, read: (text) => pageWindow({ ...PAGE, text }, 0) },
  { name: 'a text to find', fragments: grammars.PLAIN, read: (text) => drained(findInPage({ ...PAGE, text }, 'a b')) },
  { name: 'a pattern to find', fragments: grammars.PLAIN, read: (text) => findPattern(text) },
  { name: 'the address of a page', fragments: grammars.ADDRESS, read: (text) => refusable(() => checkEgress(`http://${text}/`, [], { plainHttp: true })), known: [(length) => `a${'.'.repeat(length)}b`] },
  { name: 'an address that a model writes', fragments: grammars.ADDRESS, read: (text) => openArguments.safeParse({ url: text }) },
  // Integrations
  { name: 'the description of a tool', fragments: grammars.DEFINITION, read: (description) => pinnedDefinition({ name: 'a', description, inputSchema: {} }, null, SECRETS), known: [nestedComments] },
  { name: 'a text of a schema', fragments: grammars.DEFINITION, read: (text) => cleanText(text, 64 * 1024), known: [nestedComments] },
  { name: 'the name of a tool', fragments: grammars.DEFINITION, read: (name) => [pinnedDefinition({ name, inputSchema: {} }), toolName('s', name)] },
  { name: 'a search for tools', fragments: grammars.QUERY, read: (query) => drained(rankTools(tools('Reads the files of a repository.', 20), query)) },
  { name: 'descriptions to search', fragments: grammars.QUERY, read: (text) => drained(rankTools(tools(text, 1), 'read the files of a repository and list them')) },
  { name: 'the path of an operation', fragments: grammars.ADDRESS, read: (text) => documentTools({ [`/${text}`]: { get: {} } }) },
  { name: 'the id of an operation', fragments: [...grammars.GLOB, '_', '__', 'é'], read: (text) => documentTools({ '/a': { get: { operationId: text } } }), known: [(length) => `a${'_'.repeat(length)}b`] },
  { name: 'a reference of a document', fragments: grammars.ADDRESS, read: (text) => documentTools({ '/a': { get: { parameters: [{ $ref: `#/${text}` }] } } }) },
  { name: 'the server of a document', fragments: grammars.ADDRESS, read: (text) => refusable(() => serverUrl({ servers: [{ url: text, variables: { a: { default: text } } }] })) },
  { name: 'an argument of an operation', fragments: grammars.ADDRESS, read: (text) => operationCall(text), most: 400 },
  { name: 'a message of MCP', fragments: grammars.JSON_TEXT, read: (text) => readMessage(bytes(text), new Headers()) },
  { name: 'a filter of integrations', fragments: grammars.HEADER, read: (text) => integrationFilter(new URLSearchParams(), text) },
  { name: 'an answer with a credential', fragments: grammars.SECRET, read: (text) => [redactAnswer(bytes(text), SECRETS), withoutCredential(text, SECRETS)], most: 2_000, known: [(length) => 'a'.repeat(length)] },
  { name: 'a stream with a credential', fragments: grammars.SECRET, read: (text) => watched(text), most: 2_000 },
  // Agents
  { name: 'a cron expression', fragments: grammars.CRON, read: cronFault },
  { name: 'a template', fragments: grammars.TEMPLATE, read: (text) => [referencesIn(text), renderTemplate(text, () => 'a', 10_000_000)] },
  { name: 'the answer of a judge', fragments: grammars.MARKDOWN, read: (text) => readJudgeAnswer(text, 'It has an end.'), known: [(length) => `\`\`\`${'\n'.repeat(length)}x`] },
  { name: 'an output with a schema', fragments: grammars.JSON_TEXT, read: (text) => schemaFault({ type: 'array', items: { type: 'object' } }, `[${text}`) },
  { name: 'the signature of a webhook', fragments: grammars.HEADER, read: (text) => isSigned(newWebhookSecret(), { id: 'a', timestamp: '1', signatures: text }, text, 1_000) },
  { name: 'an output to check', fragments: grammars.PLAIN, read: (text) => checkStep([{ type: 'not_empty' }, { type: 'contains', text: 'aab' }], { instructions: '', output: text, toolCalls: [] }) },
  // Models and their callers
  { name: 'JSON', fragments: grammars.JSON_TEXT, read: (text) => refusable(() => scanJson(bytes(`[${text}`), {})) },
  { name: 'a string of JSON', fragments: grammars.JSON_TEXT, read: (text) => readJsonText(bytes(JSON.stringify(text).slice(1, -1))) },
  { name: 'a request of chat completions', fragments: grammars.JSON_TEXT, read: requestOf(chatCompletions) },
  { name: 'a request of messages', fragments: grammars.JSON_TEXT, read: requestOf(messages) },
  { name: 'a request of responses', fragments: grammars.JSON_TEXT, read: requestOf(responses) },
  { name: 'thinking without a signature', fragments: grammars.JSON_TEXT, read: (text) => refusable(() => drained(unsignedThinkingEdits(bytes(`{"messages":[${text}`)))) },
  { name: 'an answer of chat completions', fragments: grammars.JSON_TEXT, read: answerOf(chatCompletions) },
  { name: 'an answer of messages', fragments: grammars.JSON_TEXT, read: answerOf(messages) },
  { name: 'a stream of chat completions', fragments: grammars.STREAM, read: streamOf(chatCompletions) },
  { name: 'a stream of messages', fragments: grammars.STREAM, read: streamOf(messages) },
  { name: 'an error of an upstream', fragments: grammars.JSON_TEXT, read: (text) => [providerMessage(400, upstreamError(bytes(text))), errorInsteadOfAnswer(parsedBody(bytes(`{"error":{"message":${JSON.stringify(text)}}}`)), 'messages')] },
  { name: 'a Markdown fence', fragments: grammars.MARKDOWN, read: fenced },
  { name: 'arguments of a tool', fragments: grammars.JSON_TEXT, read: (text) => toolInput(text) },
  { name: 'tokens of a request', fragments: grammars.JSON_TEXT, read: (text) => refusable(() => drained(estimateInputTokens(bytes(JSON.stringify({ messages: [user(text)] })), 'gpt-5'))), most: 2_000 },
  { name: 'the name of a model', fragments: ['gpt-5-1', 'gpt-5.', '-mini', '-nano', 'o4', 'claude', '/', ...grammars.WORDS], read: (text) => [familyOf(text), imageRuleOf(text)] },
  // Headers and paths
  { name: 'Retry-After', fragments: grammars.HEADER, read: (text) => retryAfterWait(text, 0) },
  { name: 'beta headers', fragments: grammars.HEADER, read: (text) => termsOf(OUTLINE, HEADERS(text)) },
  { name: 'a host and a path', fragments: grammars.ADDRESS, read: (text) => [hostKind(text, ['a.example']), surfaceOf(text), filePathOf(`/a/b/c/d/${text}`)] },
  { name: 'a text for a log', fragments: grammars.SECRET, read: redact },
  { name: 'a path for a log', fragments: [...grammars.SECRET, ...grammars.ADDRESS, '%', '25', '%25', '%2', '5f', '%35'], read: redactEncoded, known: [(length) => `%${'25'.repeat(length / 2)}`, (length) => '%2%35'.repeat(length / 5)] },
  // The workspace
  { name: 'a patch', fragments: grammars.PATCH, read: (text) => refusable(() => parsePatch(text)) },
  { name: 'the path of a file', fragments: grammars.ADDRESS, read: (text) => refusable(() => resolvePath('/workspace', text)) },
  { name: 'a glob', fragments: grammars.GLOB, read: (glob) => refusable(() => drained(searchFiles(FILES, { callId: 's', pattern: 'x', path: '.', glob, ignoreCase: false }, new AbortController().signal))), most: 5_000 },
  ...CONVERSATION_TEXTS,
] // biome-ignore format: one line for each reader

const OUTLINE = drained(chatCompletions.outline(json({ model: 'm', messages: [user('a')] })))

function findPattern(text: string): void {
  const parsed = findArguments.safeParse({ url: 'a.example', pattern: text.slice(0, 200) })
  if (parsed.success) drained(findInPage({ ...PAGE, text }, parsed.data.pattern))
}

function documentTools(paths: Record<string, unknown>): void {
  const document = { openapi: '3.1.0', paths }
  refusable(() => {
    checkDocument(document)
    for (const made of drained(operationTools(document)).operations) pinnedDefinition(made.tool, made.binding)
  })
}

/** The call of an operation up to its address, which is refused. */
async function operationCall(text: string): Promise<void> {
  const places = ['path', 'query', 'cookie'] as const
  const parameters = Object.fromEntries(
    places.map((place) => [place, { place, name: 'a', style: 'form', explode: true } as const]),
  )
  const given = { path: text, query: [text], cookie: text }
  const binding = { method: 'GET', path: `/${'{a}'.repeat(20)}`, parameters }
  const limits = {
    allow: [],
    credential: { headers: {}, secrets: [] },
    mostBytes: 1,
    signal: new AbortController().signal,
  }
  await callOperation({ url: 'https://localhost//', binding, arguments: given, ...limits }).catch(() => {})
}

function watched(text: string): void {
  const watch = new CredentialWatch(SECRETS)
  const source = bytes(text)
  for (let at = 0; at < source.length; at += 61) watch.look(source.subarray(at, at + 61))
}

const SCHEMA_PARTS: Record<string, readonly Make[]> = {
  'properties{}': [() => ({ type: 'string' }), (index) => ({ $ref: `#/$defs/m${index}` }), () => ({ readOnly: true }), () => ({ enum: ['a', 1], nullable: true })],
  required: [(index) => `m${index}`, () => 'm1'],
  allOf: [(index) => ({ properties: { [`m${index}`]: { minimum: index } }, required: [`m${index}`] }), () => ({ $ref: '#/$defs/m1' }), () => ({ type: 'object', additionalProperties: false })],
  anyOf: [(index) => ({ const: index }), () => ({ type: 'null' }), () => ({ $ref: '#/$defs/m0' })],
  enum: [(index) => `value ${index}`, (index) => index],
  '$defs{}': [() => ({ type: 'object', properties: { a: { type: 'string' } } }), (index) => ({ allOf: [{ $ref: `#/$defs/m${index + 1}` }, { $ref: `#/$defs/m${index + 1}` }] })],
  'patternProperties{}': [() => ({ type: 'string' })],
  'dependentRequired{}': [(index) => [`m${index}`]],
} // biome-ignore format: a table

const PARAMETERS: readonly Make[] = [
  (index) => ({ in: 'query', name: `m${index}`, schema: { type: 'string' } }),
  () => ({ in: 'header', name: 'm', schema: { $ref: '#/components/schemas/m1' } }),
  () => ({ $ref: '#/components/parameters/m0' }),
  (index) => ({ in: 'path', name: `m${index}` }),
]

const TURNS: readonly Make[] = [
  (index) => user(`turn ${index}`),
  () => user([textPart('a'), { type: 'image_url', image_url: { url: 'https://a.example/b.png' } }]),
  (index) => assistant('a', { tool_calls: [call(`call_${index}`)] }),
  (index) =>
    assistant(null, {
      tool_calls: [call(index % 2 === 0 ? `call_${index}` : `odd:${index}`, `look ${index}`)],
    }),
  (index) => toolMessage(`call_${index}`, 'r'),
  () => toolMessage('call_0', [textPart('r')]),
  () => system('s'),
]

const BLOCKS: readonly Make[] = [
  () => user([textPart('a', { cache_control: { type: 'ephemeral' } })]),
  (index) => assistant([{ type: 'tool_use', id: `use_${index}`, name: 'look', input: {} }]),
  (index) => user([{ type: 'tool_result', tool_use_id: `use_${index}`, content: 'r' }]),
  () => user([{ type: 'tool_result', tool_use_id: 'use_0', content: [textPart('r')] }]),
  () => assistant([{ type: 'thinking', thinking: 't', signature: 's' }, textPart('a')]),
  () => user([{ type: 'document', source: { type: 'content', content: [textPart('a')] } }]),
]

const ITEMS: readonly Make[] = [
  () => item('user', 'a'),
  () => item('user', [input('a')]),
  () => item('assistant', [output('a')]),
  (index) => calls(`call_${index}`, `look${index}`),
  (index) => answers(`call_${index}`),
  () => answers('call_0', [input('r')]),
  () => reasoning('r'),
  () => item('system', 's'),
]

const FRAMES: readonly Make[] = [
  () => ({ choices: [{ index: 0, delta: { content: 'a' } }] }),
  (index) => ({ choices: [{ index: 0, delta: { tool_calls: [{ index, id: `call_${index}`, type: 'function', function: { name: 'look', arguments: '{"a":' } }] } }] }),
  () => ({ choices: [{ index: 0, delta: { tool_calls: [{ index: 0, function: { arguments: '1,' } }] } }] }),
  () => ({ choices: [{ index: 0, delta: { reasoning_content: 'r' } }] }),
  (index) => ({ choices: [{ index, delta: { content: 'a' } }] }),
  () => ({ choices: [{ index: 0, delta: { annotations: [{ type: 'url_citation', url_citation: { url: 'https://a.example', title: 'a', start_index: 0, end_index: 1 } }] } }] }),
] // biome-ignore format: a table

const BLOCK_FRAMES: readonly Make[] = [
  (index) => ({ type: 'content_block_start', index, content_block: { type: 'text', text: '' } }),
  (index) => ({ type: 'content_block_start', index, content_block: { type: 'tool_use', id: `use_${index}`, name: 'look', input: {} } }),
  (index) => ({ type: 'content_block_delta', index, delta: { type: 'text_delta', text: 'a' } }),
  () => ({ type: 'content_block_delta', index: 0, delta: { type: 'input_json_delta', partial_json: '{"a":' } }),
  (index) => ({ type: 'content_block_delta', index, delta: { type: 'citations_delta', citation: { type: 'char_location', cited_text: 'a' } } }),
  (index) => ({ type: 'content_block_delta', index, delta: { type: 'thinking_delta', thinking: 't' } }),
  (index) => ({ type: 'content_block_stop', index }),
] // biome-ignore format: a table

const EVENTS: readonly Make[] = [
  () => say.text('a'),
  () => say.reasoning('r'),
  () => say.refusal('no'),
  (index) => say.call(index),
  () => say.args(0, '{"a":'),
  (index) => say.args(index, '1'),
  () => say.citation({ type: 'url_citation', url: 'https://a.example', title: 'a' }, 1),
]

function emitted(events: ModelEvent[]): void {
  const emitting = new Emitting()
  emitting.emitter.begin()
  for (const event of events) emitting.emitter.model(event)
  emitting.emitter.endTurn()
}

/** A list of elements that each are a frame or an event. */
const listed = <Element>(members: Record<string, unknown>): Element[] => (members.list ?? []) as Element[]

export const LIST_READERS: ListReader[] = [
  { name: 'the schema of a tool', lists: SCHEMA_PARTS, read: (schema) => pinnedDefinition({ name: 'a', inputSchema: { type: 'object', ...schema } }) },
  { name: 'a schema for a chat model', lists: SCHEMA_PARTS, read: (schema) => refusable(() => fromMessages({ tools: [{ name: 'f', strict: true, input_schema: { type: 'object', ...schema } }] })) },
  { name: 'a schema for a messages model', lists: SCHEMA_PARTS, read: (schema) => refusable(() => fromChat({ response_format: { type: 'json_schema', json_schema: { schema } } })) },
  { name: 'the schema of an output', lists: SCHEMA_PARTS, read: (schema) => schemaFault(schema, '{"m0":"a","m1":[{"a":1}]}'), most: 2_000 },
  { name: 'an output of a schema', lists: { a: [(index) => index, () => ({ a: 1 }), (index) => ({ [`m${index}`]: [] })] }, read: ({ a }) => schemaFault({ items: { type: 'object', required: ['a'] }, uniqueItems: true }, JSON.stringify(a ?? [])), budget: 40_000_000 },
  { name: 'parameters of a document', lists: { 'paths./a.get.parameters': PARAMETERS, 'paths./a.parameters': PARAMETERS, 'components.parameters{}': PARAMETERS, 'components.schemas{}': SCHEMA_PARTS['$defs{}'] ?? [] }, read: documentRead },
  { name: 'paths of a document', lists: { 'paths{}': [() => ({ get: { operationId: 'a' } }), (index) => ({ get: { operationId: `a_${index}` } }), () => ({ $ref: '#/components/items/m0' }), () => ({ post: { requestBody: { content: { 'image/png': {} } } } })], 'components.items{}': [() => ({ get: {}, parameters: [{ $ref: '#/components/parameters/m0' }] })], 'components.parameters{}': PARAMETERS }, read: documentRead },
  { name: 'a schema of a document', lists: prefixed('paths./a.post.requestBody.content.application/json.schema.', SCHEMA_PARTS), read: documentRead },
  { name: 'turns for a messages model', lists: { messages: TURNS, tools: [(index) => functionTool(`tool_${index}`)], stop: [(index) => `stop ${index}`] }, read: (members) => refusable(() => fromChat(members)) },
  { name: 'turns for a chat model', lists: { messages: BLOCKS, tools: [(index) => ({ name: `tool_${index}`, input_schema: { type: 'object' } })], system: [() => textPart('s')], stop_sequences: [(index) => `stop ${index}`] }, read: (members) => refusable(() => fromMessages(members)) },
  { name: 'items for a chat model', lists: { input: ITEMS, tools: [(index) => tool(`tool_${index}`)] }, read: (members) => refusable(() => toChat(members)) },
  { name: 'items for a messages model', lists: { input: ITEMS, tools: [(index) => tool(`tool_${index}`)] }, read: (members) => refusable(() => toMessages(members)) },
  { name: 'a request of a response', lists: { input: ITEMS, tools: [(index) => tool(`tool_${index}`)], 'metadata{}': [() => 'a'], 'other{}': [() => 1] }, read: (members) => refusable(() => drained(readResponseRequest(json({ model: 'm', ...members }), {}))) },
  { name: 'an item of a response', lists: { content: [() => input('a'), () => ({ type: 'input_image', image_url: 'data:,' })], 'more{}': [() => 1] }, read: (members) => [refusable(() => drained(readItem(json({ type: 'message', role: 'user', content: 'a', ...members }), 'input[0]'))), shortenedItem({ bytes: json(members) } as Parameters<typeof shortenedItem>[0], 100)] },
  { name: 'settings of a response that are refused', lists: { tools: [() => 1, () => ({ type: 1 })], 'metadata{}': [() => ({})], include: [() => 1] }, read: (members) => { const parsed = responseSettings.safeParse(members); if (!parsed.success) explain(parsed.error.issues, members, 'body') } },
  { name: 'frames of a chat model', lists: { list: FRAMES }, read: (members) => decoded(new ChatDecoder(), listed(members)) },
  { name: 'frames of a messages model', lists: { list: BLOCK_FRAMES }, read: (members) => decoded(new MessagesDecoder(), listed(members)) },
  { name: 'events for a chat caller', lists: { list: EVENTS }, read: (members) => new ChatEncoder({ modelId: 'm', nowSeconds: 1, usageRequested: true }).answer(listed(members)) },
  { name: 'events for a messages caller', lists: { list: EVENTS }, read: (members) => new MessagesEncoder('m').answer(listed(members)) },
  { name: 'events of a response', lists: { list: EVENTS }, read: (members) => emitted(listed(members)), most: 20_000 },
  { name: 'a stream of a chat model', lists: { list: FRAMES }, read: (members) => streamOf(chatCompletions)(listed(members).map((frame) => `data: ${JSON.stringify(frame)}\n\n`).join('')), most: 20_000 },
  { name: 'a stream of a messages model', lists: { list: BLOCK_FRAMES }, read: (members) => streamOf(messages)(listed<{ type: string }>(members).map((frame) => `event: ${frame.type}\ndata: ${JSON.stringify(frame)}\n\n`).join('')), most: 20_000 },
  { name: 'results of a search', lists: { list: [() => ({ title: 'a', url: 'https://a.example/', content: 'b' }), () => ({ url: 1 })] }, read: (members) => readResults(listed(members), 'content') },
  { name: 'links of a page', lists: { list: [(index) => ({ url: `https://a.example/${index}`, text: 'a' })] }, read: (members) => [listLinks({ ...PAGE, text: '', links: listed(members) }, 'a'), pageWindow({ ...PAGE, text: '[1] [2]'.repeat(100), links: listed(members) }, 0)] },
  { name: 'tools to search', lists: { list: [(index) => ({ ...tools(`Does thing ${index}.`, 1)[0], name: `t${index}` })] }, read: (members) => drained(rankTools(listed(members), 'do a thing with files of a repository')), most: 4_000 },
  { name: 'the definition of an agent', lists: { inputs: [(index) => ({ name: `i${index}` }), () => ({ name: 'same' })], triggers: [() => ({ kind: 'schedule', name: 'a', cron: '* * * * *', inputs: [] })], steps: [() => ({ instructions: '{{i1}} {{other}}', model: 'm' })] }, read: (members) => { const parsed = agentDefinition.safeParse({ name: 'a', steps: [{ instructions: 'a', model: 'm' }], ...members }); if (parsed.success) definitionIssues(parsed.data); else explain(parsed.error.issues, members, 'body') } },
  { name: 'JSON in its canonical form', lists: { list: [(index) => ({ [`m${index % 7}`]: index }), () => 'é"\\'], 'map{}': [(index) => index] }, read: canonicalJson },
  ...CONVERSATION_LISTS,
] // biome-ignore format: one line for each reader

function documentRead(members: Record<string, unknown>): void {
  refusable(() => {
    for (const made of drained(operationTools({ openapi: '3.1.0', paths: {}, ...members })).operations)
      pinnedDefinition(made.tool, made.binding)
  })
}

function prefixed(prefix: string, lists: Record<string, readonly Make[]>): Record<string, readonly Make[]> {
  return Object.fromEntries(Object.entries(lists).map(([path, makes]) => [prefix + path, makes]))
}

function decoded(decoder: ChatDecoder | MessagesDecoder, frames: Array<Record<string, unknown>>): void {
  refusable(() => {
    for (const frame of frames) decoder.frame(typeof frame.type === 'string' ? frame.type : null, frame)
  })
}
