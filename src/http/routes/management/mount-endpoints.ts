import { Hono, type MiddlewareHandler } from 'hono'
import { validator } from 'hono/validator'
import type * as z from 'zod'
import type { ChangeScope } from '../../../ledger/changes/audited-change.ts'
import type { Answers } from '../../../wire/endpoints/answers/answers.ts'
import type { Given } from '../../../wire/endpoints/answers/parts.ts'
import type { EndpointRequest } from '../../../wire/endpoints/endpoint-request.ts'
import { ENDPOINTS, type Endpoint, type EndpointName } from '../../../wire/endpoints/endpoints.ts'
import { type Requests, requestOf } from '../../../wire/endpoints/requests.ts'
import { noQuery } from '../../../wire/management-fields.ts'
import type { AppContext, AppEnv } from '../../context.ts'
import { jsonBody, query } from '../../validated-request.ts'
import { changeScope } from './change-scope.ts'
import { type PathParameters, pathParameters } from './path-parameters.ts'
import { ownReach, requirePermission } from './require-permission.ts'

type Request<Name extends EndpointName> = Name extends keyof Requests ? Requests[Name] : Record<never, never>
type Query<Name extends EndpointName> =
  Request<Name> extends { query: infer Schema extends z.ZodType } ? z.output<Schema> : Record<never, never>
type Body<Name extends EndpointName> =
  Request<Name> extends { body: infer Schema extends z.ZodType } ? z.output<Schema> : null
type Answer<Name extends EndpointName> = Given<z.output<Answers[Name]>>

/** A request to an endpoint whose path, query and body fit, of a caller that may make it. */
interface EndpointCall<Name extends EndpointName> {
  context: AppContext
  scope: ChangeScope
  /** The user to whose things the call is limited; null where it reaches all of its organization. */
  own: string | null
  path: PathParameters<(typeof ENDPOINTS)[Name]['path']>
  query: Query<Name>
  body: Body<Name>
}

/** The answer of an endpoint that may create, when it has created (`EndpointRequest.mayCreate`). */
export class Created<Content> {
  readonly content: Content
  constructor(content: Content) {
    this.content = content
  }
}

type MaybeCreated<Name extends EndpointName> =
  Request<Name> extends { mayCreate: true } ? Created<Answer<Name>> : never

type Handler<Name extends EndpointName> = (
  call: EndpointCall<Name>,
) => Promise<
  Request<Name> extends { stream: true } | { lines: true } ? Response : Answer<Name> | MaybeCreated<Name>
>

/** A handler for each endpoint. */
export type Handlers = { [Name in EndpointName]: Handler<Name> }

/** Handlers of the endpoints whose names begin with a group, such as `users`. */
export type HandlersOf<Group extends string> = {
  [Name in EndpointName as Name extends `${Group}.${string}` ? Name : never]: Handler<Name>
}

/** The endpoints that need a permission. */
export const mountEndpoints = (handlers: Handlers): Hono<AppEnv> =>
  mount(handlers, ({ permission }) => permission !== null, [])

/** The endpoints that anyone may call. @param admit what comes before each of them. */
export const mountOpenEndpoints = (handlers: Handlers, admit: MiddlewareHandler<AppEnv>[]): Hono<AppEnv> =>
  mount(handlers, ({ permission }) => permission === null, admit)

/**
 * The routes of endpoints: each checks the permission of its caller, then its path, its query and its body by the table, and
 * answers with the table's status.
 */
function mount(
  handlers: Handlers,
  isMounted: (endpoint: Endpoint) => boolean,
  admit: MiddlewareHandler<AppEnv>[],
): Hono<AppEnv> {
  const routes = new Hono<AppEnv>()
  for (const [name, endpoint] of Object.entries(ENDPOINTS) as Array<[EndpointName, Endpoint]>) {
    if (!isMounted(endpoint)) continue
    const request = requestOf(name)
    // The table of handlers has the type of each of them; a loop over all has none.
    const handle = handlers[name] as (call: unknown) => Promise<unknown>
    const checks = [...admit, ...checksOf(endpoint, request)]
    routes.on(endpoint.method, [honoPath(endpoint.path)], ...checks, async (context) => {
      const answer = await handle({
        context,
        scope: changeScope(context, endpoint.permission),
        own: ownReach(context, endpoint.permission),
        path: context.req.valid('param' as never),
        query: context.req.valid('query' as never),
        body: request.body ? context.req.valid('json' as never) : null,
      })
      if (request.noStore) context.header('cache-control', 'no-store')
      if (answer instanceof Response) return answer
      if (answer instanceof Created) return context.json(answer.content as object, 201)
      return context.json(answer as object, request.status ?? 200)
    })
  }
  return routes
}

/** The checks before a handler. A validator's type names the content that it reads, which a loop over all endpoints cannot. */
function checksOf(endpoint: Endpoint, request: EndpointRequest): MiddlewareHandler[] {
  return [
    requirePermission(endpoint.permission),
    validator('param', (_, context) => pathParameters(context as AppContext, endpoint)),
    query(request.query ?? noQuery),
    ...(request.body ? [jsonBody(request.body)] : []),
  ] as MiddlewareHandler[]
}

/** The ids of models hold slashes. */
const honoPath = (path: string): string =>
  path.replace('{modelId}', ':modelId{.+}').replaceAll(/\{(\w+)\}/g, ':$1')
