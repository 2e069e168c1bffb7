import {
  PUBLIC_OPERATIONS,
  type PublicOperation,
  type PublicSurface,
} from '../../src/wire/public/operations.ts'
import { jsonContent, queryParameters, SchemaComponents } from './json-schemas.ts'
import { linksFrom } from './links.ts'
import { INTEGRATION_SLUG, PATH_SCHEMAS } from './path-schemas.ts'

/** The OpenAPI 3.1 document of the public API. */
export function publicDocument(): object {
  const components = new SchemaComponents()
  const errors = errorSchemas(components)
  const paths: Record<string, Record<string, object>> = {}
  for (const [name, operation] of Object.entries(PUBLIC_OPERATIONS)) {
    paths[operation.path] ??= {}
    const at = paths[operation.path] as Record<string, object>
    at[operation.method.toLowerCase()] = operationOf(components, name, operation, errors)
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Headgate API',
      version: '1',
      description:
        'One key and one base URL for models, agents and tools. Chat completions, completions and messages take and give every member of their protocols; the document lists those that the gateway reads.',
    },
    servers: [{ url: '/' }],
    paths,
    components: {
      schemas: components.schemas,
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer' },
        apiKeyHeader: { type: 'apiKey', in: 'header', name: 'x-api-key' },
        llmHostHeader: {
          type: 'apiKey',
          in: 'header',
          name: 'api-key',
          description: 'On the LLM host, in place of `x-api-key`.',
        },
      },
    },
  }
}

function operationOf(
  components: SchemaComponents,
  name: string,
  operation: PublicOperation,
  errors: Record<PublicSurface, Record<string, unknown>>,
): object {
  const { surface, text, vendor, query, body, optionalBody } = operation
  return {
    operationId: name,
    summary: text,
    tags: [name.split('.')[0]],
    ...(vendor && { externalDocs: { url: vendor, description: 'Every member, at the vendor' } }),
    security: SECURITY[surface].map((scheme) => ({ [scheme]: [] })),
    parameters: [...pathParameters(operation.path), ...queryParameters(components, query)],
    ...(body && {
      requestBody: {
        required: !optionalBody,
        content: jsonContent(components.schemaOf(body, 'input')),
      },
    }),
    responses: { ...answersOf(components, name, operation), ...refusalsOf(operation, errors[surface]) },
  }
}

function answersOf(components: SchemaComponents, name: string, operation: PublicOperation): object {
  const { answers, events, path, creates } = operation
  if (Object.keys(answers).length === 0) return { 101: { description: `A WebSocket for ${path}.` } }
  const entries = Object.entries(answers).map(([status, schema]) => {
    if (schema === 'none') return [status, { description: 'No content.' }]
    if (typeof schema === 'string')
      return [status, { description: 'The content.', content: { [schema]: {} } }]
    const stream = status === '200' && events ? { 'text/event-stream': streamOf(components, events) } : {}
    const content = { ...jsonContent(components.schemaOf(schema, 'output')), ...stream }
    const links = creates && { links: linksFrom({ name, path }, creates, OPERATIONS) }
    return [status, { description: 'Done.', content, ...links }]
  })
  return Object.fromEntries(entries)
}

const OPERATIONS = Object.entries(PUBLIC_OPERATIONS).map(([name, { path }]) => ({ name, path }))

/** OpenAPI 3.1 has no schema for the events of a stream: that of their `data` is `x-event`. */
const streamOf = (components: SchemaComponents, events: NonNullable<PublicOperation['events']>) => ({
  'x-event': components.schemaOf(events, 'output'),
})

function refusalsOf(
  { refusals, surface, passesStatus }: PublicOperation,
  error: Record<string, unknown>,
): object {
  const common = surface === 'none' ? [404, 500] : [401, 404, 429, 500]
  const statuses = [...new Set([...common, ...refusals])].sort((left, right) => left - right)
  const content = jsonContent(error)
  const described = statuses.map((status) => [
    status,
    { description: REASONS[status] ?? 'Refused.', content },
  ])
  return {
    ...Object.fromEntries(described),
    ...(passesStatus && { default: { description: "A provider's refusal, with its status.", content } }),
  }
}

const REASONS: Record<number, string> = {
  400: 'The request does not fit.',
  401: 'The key is missing, malformed or revoked.',
  403: 'The key may not do this.',
  404: 'Nothing has this id, or the key may not see it.',
  406: 'The header Accept lacks a type.',
  413: 'The body is over 50 MB.',
  415: 'The body is of another type.',
  422: 'It conflicts with what exists, or a required input is missing.',
  429: 'A limit is used up; `Retry-After` says when to try again.',
  500: 'Something went wrong.',
  502: 'The upstream did not give a usable answer.',
}

const KEYS = ['bearer', 'apiKeyHeader']
const SECURITY: Record<PublicSurface, string[]> = {
  chat_completions: [...KEYS, 'llmHostHeader'],
  messages: KEYS,
  responses: ['bearer'],
  models: [...KEYS, 'llmHostHeader'],
  mcp: ['bearer'],
  connections: ['bearer'],
  agents: KEYS,
  none: [],
}

/** The envelopes of errors (interface: Errors). Errors of an upstream of chat completions and messages pass unchanged. */
function errorSchemas(components: SchemaComponents): Record<PublicSurface, Record<string, unknown>> {
  const text = { type: 'string' }
  const nested = components.add('NestedError', {
    description: 'The envelope of chat completions and responses. A 401 has a text in place of the object.',
    type: 'object',
    properties: {
      error: {
        anyOf: [
          text,
          {
            type: 'object',
            properties: { message: text, type: text, code: { type: ['string', 'null'] } },
            required: ['message', 'type'],
          },
        ],
      },
    },
  })
  const messages = components.add('MessagesError', {
    type: 'object',
    properties: {
      type: { const: 'error' },
      error: { type: 'object', properties: { type: text, message: text }, required: ['type', 'message'] },
    },
  })
  const flat = components.add('FlatError', {
    description:
      'The envelope of agents, runs, connections and the MCP endpoint. A 413 has the message alone.',
    type: 'object',
    properties: { error: text, message: text },
  })
  const message = components.add('McpError', {
    description: 'A message that cannot be read is refused with an error of JSON-RPC.',
    anyOf: [
      flat,
      {
        type: 'object',
        properties: {
          jsonrpc: { const: '2.0' },
          id: { type: ['string', 'number', 'null'] },
          error: {
            type: 'object',
            properties: { code: { type: 'integer' }, message: text, data: {} },
            required: ['code', 'message'],
          },
        },
        required: ['jsonrpc', 'id', 'error'],
      },
    ],
  })
  return {
    chat_completions: nested,
    messages,
    responses: nested,
    models: nested,
    mcp: message,
    connections: flat,
    agents: flat,
    none: nested,
  }
}

function pathParameters(path: string): object[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => {
    const schema = name === 'integrationId' ? INTEGRATION_SLUG : PATH_SCHEMAS[name]
    if (!schema) throw new Error(`the parameter ${name} of a path has no schema`)
    return { name, in: 'path', required: true, schema }
  })
}
