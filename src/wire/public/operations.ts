import * as z from 'zod'
import { agentDetail, agentSummary, runEvaluation, shownRun, startedRun } from '../agent-answers.ts'
import { runRequest, visibleAgentsQuery, webhookBody } from '../agents.ts'
import { defaultSetting, sharePermission, shareReplacement } from '../connections.ts'
import { uuid } from '../management-fields.ts'
import {
  chatCompletionRequest,
  completionRequest,
  countTokensRequest,
  messagesRequest,
} from '../model-requests.ts'
import { itemListQuery, itemQuery, retrieveQuery } from '../response-queries.ts'
import { responseSettings } from '../responses.ts'
import { storedItem } from './response-items.ts'
import { compactionResult, deletedResponse, itemList, responseEvent, responseObject } from './responses.ts'

/**
 * The operations of the public API, as its OpenAPI document describes them. The gateway imports nothing of this file: routes are in
 * `http/routes`, and a test holds the two against one another.
 */

/** A family of routes with one envelope of errors and one set of header forms for the key. */
export type PublicSurface =
  | 'chat_completions'
  | 'messages'
  | 'responses'
  | 'models'
  | 'mcp'
  | 'connections'
  | 'agents'
  | 'none'

export interface PublicOperation {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  path: string
  /** `none`: no key is needed. */
  surface: PublicSurface
  text: string
  /** The vendor's page with the members that the gateway passes on unread. */
  vendor?: string
  query?: z.ZodObject
  body?: z.ZodType
  /** Whether a request without a body is accepted. */
  optionalBody?: true
  /** By status. A text is a content type whose body is not JSON. */
  answers: Partial<Record<200 | 201 | 202 | 304 | 503, z.ZodType | string>>
  /** The ids of what it creates, as runtime expressions of OpenAPI, by the parameter of paths that takes them. */
  creates?: Readonly<Record<string, string>>
  /** The events of its stream, where it has one. */
  events?: z.ZodType
  /** Statuses of refusals besides 401, 404, 429 and 500. */
  refusals: readonly number[]
  /** Whether a provider's refusal is answered with the provider's status. */
  passesStatus?: true
}

const MODEL_CALL = [400, 403, 413, 502] as const
const CHAT_PAGE = 'https://platform.openai.com/docs/api-reference/chat'
const MESSAGES_PAGE = 'https://docs.anthropic.com/en/api/messages'
const COMPLETIONS_PAGE = 'https://platform.openai.com/docs/api-reference/completions'

const contentParts = z.array(z.unknown())
const chatContent = {
  content: z.union([z.string(), contentParts]).nullish(),
  tool_calls: z.array(z.unknown()).nullish(),
}
const chatMessage = z.union([
  z.looseObject({ role: z.enum(['system', 'developer', 'user', 'assistant']), ...chatContent }),
  z.looseObject({ role: z.literal('tool'), tool_call_id: z.string().min(1), ...chatContent }),
])
const messageContent = { content: z.union([z.string(), contentParts]) }
const message = z.looseObject({ role: z.enum(['user', 'assistant']), ...messageContent })
/** Roles alternate, which a schema cannot say beyond the first. */
const alternating = z.tuple([z.looseObject({ role: z.literal('user'), ...messageContent })], message)

const model = z.strictObject({
  id: z.string(),
  object: z.literal('model'),
  created: z.int(),
  owned_by: z.string(),
  /** Members of the messages protocol, whose SDKs list models at the same path. */
  type: z.literal('model'),
  display_name: z.string(),
  created_at: z.iso.datetime(),
})

const chatCompletion = z.looseObject({
  id: z.string(),
  object: z.literal('chat.completion'),
  created: z.number(),
  model: z.string(),
  choices: z.array(z.looseObject({ index: z.int(), message: z.looseObject({ role: z.string() }) })),
})
const chatChunk = z.looseObject({
  id: z.string(),
  object: z.literal('chat.completion.chunk'),
  choices: z.array(z.looseObject({ index: z.int() })),
})
const messageObject = z.looseObject({
  id: z.string(),
  type: z.literal('message'),
  role: z.literal('assistant'),
  model: z.string(),
  content: z.array(z.looseObject({ type: z.string() })),
})

const connection = z.strictObject({
  id: z.string(),
  display_name: z.string(),
  integration_config_id: z.string(),
  upstream_connection_id: z.string(),
  is_preferred: z.boolean(),
  created_at: z.iso.datetime(),
})
const connectionShares = z.strictObject({
  id: z.string(),
  shares: z.array(z.strictObject({ group_id: uuid, permission: sharePermission })),
})

const conversationFile = z.strictObject({
  object: z.literal('conversation.file'),
  path: z.string(),
  bytes: z.int().nonnegative(),
  modified_at: z.int(),
})

const jsonRpc = z.looseObject({ jsonrpc: z.literal('2.0') })
const rpcId = z.union([z.string(), z.int()])
/** A request, a notification, or an answer to a request of the server. */
const rpcMessage = z.union([
  z.strictObject({
    jsonrpc: z.literal('2.0'),
    id: rpcId.optional(),
    method: z.string(),
    params: z.looseObject({}).optional(),
  }),
  z.strictObject({ jsonrpc: z.literal('2.0'), id: rpcId, result: z.looseObject({}) }),
])

const resourceMetadata = z.strictObject({
  resource: z.url(),
  bearer_methods_supported: z.array(z.literal('header')),
  authorization_servers: z.array(z.url()),
})

/** Items of a request. Their members depend on the type; those of types that are not listed are their output's. */
const inputItem = z.union([
  z.looseObject({
    type: z.literal('message').optional(),
    role: z.enum(['user', 'assistant', 'system', 'developer']),
    content: z.union([z.string(), z.array(z.looseObject({ type: z.string() }))]),
  }),
  z.looseObject({
    type: z.enum(['function_call_output', 'custom_tool_call_output']),
    call_id: z.string().min(1),
    output: z.union([z.string(), z.array(z.looseObject({ type: z.string() }))]),
  }),
  z.looseObject({ type: z.literal('item_reference'), id: z.string().min(1) }),
  z.looseObject({ type: z.string(), id: z.string() }),
])

const given = { not: { type: 'null' } }
const responseRequest = responseSettings
  .extend({ input: z.union([z.string(), z.array(inputItem)]).optional() })
  .meta({
    not: {
      properties: { conversation: given, previous_response_id: given },
      required: ['conversation', 'previous_response_id'],
    },
  })

const RUN = { runId: '$response.body#/runId', conversationId: '$response.body#/conversationId' }

const CONNECTION = '/v1/integrations/connections/{connectionId}'
const SHARE = `${CONNECTION}/shares/{groupId}`

export const PUBLIC_OPERATIONS: Record<string, PublicOperation> = {
  'models.list': {
    method: 'GET',
    path: '/v1/models',
    surface: 'models',
    text: 'Lists the models that the key may use.',
    answers: { 200: z.strictObject({ object: z.literal('list'), data: z.array(model) }), 304: 'none' },
    refusals: [403],
  },
  'models.show': {
    method: 'GET',
    path: '/v1/models/{modelId}',
    surface: 'models',
    text: 'Shows a model that the key may use.',
    answers: { 200: model },
    refusals: [403],
  },
  'chat.create': {
    method: 'POST',
    path: '/v1/chat/completions',
    surface: 'chat_completions',
    text: 'Creates a chat completion. Members that are not listed are passed on.',
    vendor: CHAT_PAGE,
    body: chatCompletionRequest.extend({ messages: z.array(chatMessage).min(1) }),
    answers: { 200: chatCompletion },
    events: chatChunk,
    refusals: MODEL_CALL,
    passesStatus: true,
  },
  'completions.create': {
    method: 'POST',
    path: '/v1/completions',
    surface: 'chat_completions',
    text: 'Creates a legacy completion. Members that are not listed are passed on.',
    vendor: COMPLETIONS_PAGE,
    body: completionRequest.extend({ prompt: z.union([z.string(), z.array(z.unknown()).min(1)]) }),
    answers: { 200: z.looseObject({ object: z.string(), choices: z.array(z.looseObject({})) }) },
    events: z.looseObject({ choices: z.array(z.looseObject({})) }),
    refusals: MODEL_CALL,
    passesStatus: true,
  },
  'messages.create': {
    method: 'POST',
    path: '/v1/messages',
    surface: 'messages',
    text: 'Creates a message. Members that are not listed are passed on.',
    vendor: MESSAGES_PAGE,
    body: messagesRequest.extend({ messages: alternating }),
    answers: { 200: messageObject },
    events: z.looseObject({ type: z.string() }),
    refusals: MODEL_CALL,
    passesStatus: true,
  },
  'messages.count-tokens': {
    method: 'POST',
    path: '/v1/messages/count_tokens',
    surface: 'messages',
    text: 'Counts the input tokens of a message.',
    vendor: MESSAGES_PAGE,
    body: countTokensRequest.extend({ messages: alternating }),
    answers: { 200: z.looseObject({ input_tokens: z.int().nonnegative() }) },
    refusals: MODEL_CALL,
    passesStatus: true,
  },
  'responses.create': {
    method: 'POST',
    path: '/v1/responses',
    surface: 'responses',
    text: 'Creates a response, or runs an agent for a model `agent/<id>`. Members that are not listed are accepted.',
    body: responseRequest,
    answers: { 200: responseObject },
    creates: { responseId: '$response.body#/id', conversationId: '$response.body#/conversation/id' },
    events: responseEvent,
    refusals: MODEL_CALL,
    passesStatus: true,
  },
  'responses.connect': {
    method: 'GET',
    path: '/v1/responses',
    surface: 'responses',
    text: 'Opens a WebSocket on which responses are created (docs/responses.md).',
    answers: {},
    refusals: [400, 403],
  },
  'responses.compact': {
    method: 'POST',
    path: '/v1/responses/compact',
    surface: 'responses',
    text: 'Compacts the items of a conversation.',
    body: responseRequest,
    answers: { 200: compactionResult },
    refusals: MODEL_CALL,
    passesStatus: true,
  },
  'responses.show': {
    method: 'GET',
    path: '/v1/responses/{responseId}',
    surface: 'responses',
    text: 'Shows a response, or replays its stream after a sequence number and continues it.',
    query: retrieveQuery,
    answers: { 200: responseObject },
    events: responseEvent,
    refusals: [400, 403],
  },
  'responses.remove': {
    method: 'DELETE',
    path: '/v1/responses/{responseId}',
    surface: 'responses',
    text: 'Ends a response and erases it.',
    answers: { 200: deletedResponse },
    refusals: [400, 403],
  },
  'responses.cancel': {
    method: 'POST',
    path: '/v1/responses/{responseId}/cancel',
    surface: 'responses',
    text: 'Ends a response that is in progress.',
    answers: { 200: responseObject },
    refusals: [400, 403],
  },
  'responses.input-items': {
    method: 'GET',
    path: '/v1/responses/{responseId}/input_items',
    surface: 'responses',
    text: 'Lists the input items of a response.',
    query: itemListQuery,
    answers: { 200: itemList },
    refusals: [400, 403],
  },
  'conversations.items': {
    method: 'GET',
    path: '/v1/conversations/{conversationId}/items',
    surface: 'responses',
    text: 'Lists the items of a conversation.',
    query: itemListQuery,
    answers: { 200: itemList },
    refusals: [400, 403],
  },
  'conversations.item': {
    method: 'GET',
    path: '/v1/conversations/{conversationId}/items/{itemId}',
    surface: 'responses',
    text: 'Shows an item of a conversation.',
    query: itemQuery,
    answers: { 200: storedItem },
    refusals: [400, 403],
  },
  'conversations.files': {
    method: 'GET',
    path: '/v1/conversations/{conversationId}/files',
    surface: 'responses',
    text: 'Lists the files of a conversation.',
    answers: {
      200: z.strictObject({
        object: z.literal('list'),
        data: z.array(conversationFile),
        has_more: z.boolean(),
      }),
    },
    refusals: [403, 502],
  },
  'conversations.file': {
    method: 'GET',
    path: '/v1/conversations/{conversationId}/files/{path}',
    surface: 'responses',
    text: 'Downloads a file of a conversation. Slashes in the path need not be encoded.',
    answers: { 200: 'application/octet-stream' },
    refusals: [403, 502],
  },
  'agents.list': {
    method: 'GET',
    path: '/v1/agents/list',
    surface: 'agents',
    text: 'Lists the agents that the key may see.',
    query: visibleAgentsQuery,
    answers: { 200: z.strictObject({ items: z.array(agentSummary.strict()), total: z.int().nonnegative() }) },
    refusals: [400],
  },
  'agents.show': {
    method: 'GET',
    path: '/v1/agents/{agentId}',
    surface: 'agents',
    text: 'Shows an agent.',
    answers: { 200: agentDetail.strict() },
    refusals: [],
  },
  'runs.create': {
    method: 'POST',
    path: '/v1/agents/runs',
    surface: 'agents',
    text: 'Begins a run of an agent. Its end is polled.',
    body: runRequest,
    answers: { 202: startedRun.strict() },
    creates: RUN,
    refusals: [400, 413, 422],
  },
  'runs.show': {
    method: 'GET',
    path: '/v1/runs/{runId}',
    surface: 'agents',
    text: 'Shows a run.',
    answers: { 200: shownRun.strict() },
    refusals: [400],
  },
  'runs.restart': {
    method: 'POST',
    path: '/v1/runs/{runId}/restart',
    surface: 'agents',
    text: 'Begins a new run with the inputs of another and the newest version of its agent.',
    answers: { 202: startedRun.strict() },
    creates: RUN,
    refusals: [422],
  },
  'runs.evaluation': {
    method: 'GET',
    path: '/v1/runs/{runId}/evals',
    surface: 'agents',
    text: 'Shows the verdicts about the steps of a run.',
    answers: { 200: runEvaluation.strict() },
    refusals: [400],
  },
  'webhooks.fire': {
    method: 'POST',
    path: '/v1/agents/{agentId}/triggers/{name}',
    surface: 'none',
    text: 'Begins a run by a signed webhook (docs/agents.md). The signature takes the place of a key.',
    body: webhookBody,
    optionalBody: true,
    answers: { 202: startedRun.strict() },
    refusals: [400, 401, 413, 422, 429],
  },
  'mcp.call': {
    method: 'POST',
    path: '/v1/mcp',
    surface: 'mcp',
    text: 'Answers one JSON-RPC message of the Model Context Protocol.',
    vendor: 'https://modelcontextprotocol.io/specification',
    body: rpcMessage,
    answers: { 200: jsonRpc, 202: 'none' },
    events: jsonRpc,
    refusals: [400, 403, 406, 413, 415],
  },
  'connections.list': {
    method: 'GET',
    path: '/v1/integrations/connections',
    surface: 'connections',
    text: 'Lists the connections that the key may see.',
    answers: { 200: z.strictObject({ data: z.array(connection) }) },
    refusals: [403],
  },
  'connections.set-default': {
    method: 'POST',
    path: '/v1/integrations/connections/{integrationId}/default',
    surface: 'connections',
    text: 'Makes a connection the only active one of an integration for the caller.',
    body: defaultSetting,
    answers: {
      200: z.strictObject({ integration_config_id: z.string(), connection_id: z.string() }),
    },
    refusals: [400, 403, 413],
  },
  'connections.connect': {
    method: 'POST',
    path: `${CONNECTION}/connect`,
    surface: 'connections',
    text: 'Begins to connect an account.',
    answers: { 201: z.strictObject({ url: z.string(), expires_at: z.iso.datetime() }) },
    refusals: [403, 422, 502],
  },
  'connections.remove': {
    method: 'DELETE',
    path: CONNECTION,
    surface: 'connections',
    text: 'Removes a connection that the caller manages.',
    answers: {
      200: z.strictObject({
        id: z.string(),
        deleted: z.literal(true),
        left_at_broker: z.string().nullable(),
      }),
    },
    refusals: [403, 422, 502],
  },
  'connections.share': {
    method: 'PUT',
    path: SHARE,
    surface: 'connections',
    text: 'Shares a connection with a group of the caller.',
    body: shareReplacement,
    answers: { 200: connectionShares },
    refusals: [400, 403, 413, 422],
  },
  'connections.unshare': {
    method: 'DELETE',
    path: SHARE,
    surface: 'connections',
    text: 'Ends a share of a connection.',
    answers: { 200: connectionShares },
    refusals: [403],
  },
  'mcp.resource-metadata': {
    method: 'GET',
    path: '/.well-known/oauth-protected-resource',
    surface: 'none',
    text: 'Describes the MCP endpoint as a protected resource (RFC 9728).',
    answers: { 200: resourceMetadata },
    refusals: [],
  },
  'mcp.endpoint-metadata': {
    method: 'GET',
    path: '/.well-known/oauth-protected-resource/v1/mcp',
    surface: 'none',
    text: 'The same document at the path of the endpoint.',
    answers: { 200: resourceMetadata },
    refusals: [],
  },
  'health.show': {
    method: 'GET',
    path: '/health',
    surface: 'none',
    text: 'Says that the gateway answers.',
    answers: { 200: z.strictObject({ status: z.literal('ok') }) },
    refusals: [],
  },
  'health.ready': {
    method: 'GET',
    path: '/health/ready',
    surface: 'none',
    text: 'Says whether the services that calls need answer, and which do not. Without the script of tools the gateway is ready, and `degraded` names it. The result may be five seconds old.',
    answers: {
      200: z.strictObject({
        status: z.literal('ok'),
        degraded: z.array(z.enum(['tools'])).optional(),
      }),
      503: z.strictObject({
        status: z.literal('unavailable'),
        failed: z.array(z.enum(['postgres', 'redis', 'ledger', 'content'])),
      }),
    },
    refusals: [],
  },
}
