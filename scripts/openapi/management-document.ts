import * as z from 'zod'
import { ApiError, type ErrorKind } from '../../src/lib/api-error.ts'
import { ANSWERS } from '../../src/wire/endpoints/answers/answers.ts'
import {
  BODY_ERRORS,
  COMMON_ERRORS,
  type EndpointRequest,
} from '../../src/wire/endpoints/endpoint-request.ts'
import { ENDPOINTS, type Endpoint, type EndpointName } from '../../src/wire/endpoints/endpoints.ts'
import { memberText } from '../../src/wire/endpoints/member-texts.ts'
import { PERMISSIONS, type RoleReaches } from '../../src/wire/endpoints/permissions.ts'
import { requestOf } from '../../src/wire/endpoints/requests.ts'
import { jsonContent, queryParameters, SchemaComponents } from './json-schemas.ts'
import { linksFrom } from './links.ts'
import { INTEGRATION_ID, PATH_SCHEMAS } from './path-schemas.ts'

/** The OpenAPI 3.1 document of the management API, from the table of its endpoints. */
export function managementDocument(): object {
  const components = new SchemaComponents()
  const error: Record<string, unknown> = components.add('Error', {
    type: 'object',
    description: 'What every refusal answers with. `details` holds what each kind of refusal adds.',
    properties: {
      error: { type: 'string' },
      message: { type: 'string' },
      details: { type: 'object' },
    },
    required: ['message'],
    additionalProperties: false,
  })
  const paths: Record<string, Record<string, object>> = {}
  for (const [name, endpoint] of Object.entries(ENDPOINTS) as Array<[EndpointName, Endpoint]>) {
    const path = `/api${endpoint.path}`
    paths[path] ??= {}
    paths[path][endpoint.method.toLowerCase()] = operationOf(components, name, endpoint)
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Headgate management API',
      version: '1',
      description:
        'Organizations, people, keys, policies, integrations, agents, records and the model catalogue. Lists are read page by page: `next_cursor` of a page is the `cursor` of the next one.',
    },
    servers: [{ url: '/' }],
    security: [{ administrationToken: [] }, { session: [] }],
    paths,
    components: {
      schemas: components.schemas,
      responses: Object.fromEntries(
        Object.entries(REASONS).map(([kind, description]) => [
          kind,
          { description, content: jsonContent(error) },
        ]),
      ),
      securitySchemes: {
        administrationToken: { type: 'http', scheme: 'bearer' },
        session: { type: 'apiKey', in: 'cookie', name: '__Host-hg_session' },
      },
    },
  }
}

function operationOf(components: SchemaComponents, name: EndpointName, endpoint: Endpoint): object {
  const request = requestOf(name)
  const links = linksOf(name, endpoint)
  // As in the document of the public API: OpenAPI 3.1 has no schema for the events of a stream.
  const schema = components.schemaOf(ANSWERS[name], 'output')
  const content = request.stream
    ? { 'text/event-stream': { 'x-event': schema } }
    : request.lines
      ? { 'application/x-ndjson': { 'x-line': schema } }
      : jsonContent(schema)
  const answer = { content, ...(links && { links }) }
  const success = request.mayCreate
    ? { 200: { description: 'Replaced.', ...answer }, 201: { description: 'Created.', ...answer } }
    : { [request.status ?? 200]: { description: 'Done.', ...answer } }
  const refusals = errorsOf(request).map((kind) => [
    new ApiError(kind, '').status,
    { $ref: `#/components/responses/${kind}` },
  ])
  return {
    operationId: name,
    summary: endpoint.text,
    tags: [name.split('.')[0]],
    ...rightsOf(endpoint),
    parameters: [
      ...pathParameters(endpoint.path),
      ...queryParameters(components, request.query).map((parameter) => ({
        ...described(name, parameter.name),
        ...parameter,
      })),
    ],
    ...(request.body && {
      requestBody: {
        required: true,
        content: jsonContent(withMemberTexts(name, components.schemaOf(request.body, 'input'))),
      },
    }),
    responses: { ...success, ...Object.fromEntries(refusals) },
  }
}

/** Who may call an operation: the permission, and how far it reaches for each role and entitlement of a session, and for operators. */
function rightsOf({ permission }: Endpoint): object {
  if (permission === null) return { 'x-permission': null, security: [] }
  const { recent, ...reaches }: RoleReaches = PERMISSIONS[permission]
  return {
    'x-permission': permission,
    'x-reach': reaches,
    ...(recent && { 'x-recent-sign-in': true }),
  }
}

/** Links from an endpoint that adds to a collection to those of what it added, whose paths go on with its id. */
function linksOf(name: EndpointName, { method, path }: Endpoint): object | null {
  const answer: z.ZodType = ANSWERS[name]
  if (method !== 'POST' || !(answer instanceof z.ZodObject) || !('id' in answer.shape)) return null
  const all = Object.entries(ENDPOINTS).map(([each, endpoint]) => ({ name: each, path: endpoint.path }))
  const below = all.filter((endpoint) => endpoint.path.startsWith(`${path}/{`))
  const parameter = below[0]?.path.slice(path.length).match(/\{(\w+)\}/)?.[1]
  if (parameter === undefined) return null
  return linksFrom({ name, path }, { [parameter]: '$response.body#/id' }, below)
}

/** The schema of a body, or each of its variants, with what its members mean. */
function withMemberTexts(name: EndpointName, schema: BodySchema): BodySchema {
  const { oneOf, properties } = schema
  return {
    ...schema,
    ...(oneOf && { oneOf: oneOf.map((variant) => withMemberTexts(name, variant)) }),
    ...(properties && {
      properties: Object.fromEntries(
        Object.entries(properties).map(([member, value]) => [
          member,
          { ...described(name, member), ...value },
        ]),
      ),
    }),
  }
}

interface BodySchema extends Record<string, unknown> {
  oneOf?: BodySchema[]
  properties?: Record<string, object>
}

function described(name: EndpointName, member: string): { description?: string } {
  const description = memberText(name, member)
  return description === undefined ? {} : { description }
}

const errorsOf = ({ body, errors = [] }: EndpointRequest): ErrorKind[] => [
  ...COMMON_ERRORS,
  ...(body ? BODY_ERRORS : []),
  ...errors,
]

const REASONS: Record<ErrorKind, string> = {
  invalid_request: 'The path, the query or the body does not fit.',
  unauthorized: 'The administration token is missing, malformed or wrong, or the session has ended.',
  forbidden: 'The caller does not have the permission, or the request comes from a page of another site.',
  not_found: 'Nothing has this id, or the caller may not see it.',
  method_not_allowed: 'The path takes other methods, which the header Allow lists.',
  not_acceptable: 'The header Accept lacks a type.',
  too_large: 'The body is too large.',
  unsupported_media_type: 'The body is of another type.',
  unprocessable: 'It conflicts with what exists.',
  rate_limited: 'Too many requests; `Retry-After` says when to try again.',
  upstream: 'A service outside of the gateway did not answer, or refused.',
  internal: 'Something went wrong.',
}

function pathParameters(path: string): object[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => {
    const schema = name === 'integrationId' ? INTEGRATION_ID : PATH_SCHEMAS[name]
    if (!schema) throw new Error(`the parameter ${name} of a path has no schema`)
    return { name, in: 'path', required: true, schema }
  })
}
