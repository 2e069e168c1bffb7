import { zValidator } from '@hono/zod-validator'
import type { MiddlewareHandler } from 'hono'
import type { z } from 'zod'
import type { Administration } from '../../../governance/administration/administration.ts'
import { readOrganization } from '../../../governance/administration/organizations/organizations.ts'
import { ApiError, invalidRequest, notFound } from '../../../lib/api-error.ts'
import { redact } from '../../../lib/log.ts'
import { isUuid } from '../../../wire/management.ts'
import type { PagePosition, PageRequest } from '../../../wire/page-cursor.ts'
import type { AppContext, AppEnv } from '../../context.ts'

// What every route of the management API does with a request before its own work begins.

/** Told when a change stands but Redis could not be told: rights caches learn of it within 30 s. */
const PROPAGATION_HEADER = 'x-headgate-propagation'

/** The slice of a request that administration works with. */
export function administrationOf(context: AppContext): Administration {
  const { configuration, clock, database, redis, ledgerOf } = context.get('deps')
  return {
    clock,
    database,
    redis,
    ledgerOf,
    pepperRing: configuration.KEY_PEPPERS,
    vaultRing: configuration.VAULT_KEYS,
    egressAllow: configuration.EGRESS_ALLOW,
    requestId: context.get('requestId'),
    actor: {
      userId: null,
      keyId: null,
      administrator: context.get('administrator').actor,
      ip: context.req.header('cf-connecting-ip') ?? null,
    },
    propagationDelayed: () => context.header(PROPAGATION_HEADER, 'delayed'),
  }
}

/** Checks a JSON body. @throws ApiError `invalid_request` naming every member that does not fit, and why. */
export const jsonBody = <Schema extends z.ZodType>(schema: Schema) =>
  zValidator('json', schema, (result, context) => {
    // The validator takes any other content type for an empty body, which would be told as missing members.
    if (!/^application\/([\w.-]+\+)?json\b/i.test(context.req.header('content-type') ?? '')) {
      throw invalidRequest('The body must be JSON, sent as content-type application/json.')
    }
    if (!result.success) throw explain(result.error.issues, result.data, 'body')
  })

/** Checks a query. @throws ApiError `invalid_request` naming every parameter that does not fit, and why. */
export const query = <Schema extends z.ZodType>(schema: Schema) =>
  zValidator('query', schema, (result) => {
    if (!result.success) throw explain(result.error.issues, result.data, 'query')
  })

/** An id from the path. @throws ApiError `not_found` for text that can be no id of anything. */
export function idParameter(entity: string, text: string): string {
  if (!isUuid(text)) throw unknownId(entity, text)
  return text
}

/** The error for text that is no id at all. Whoever pastes a key here must not find it quoted. */
export const unknownId = (entity: string, text: string) => notFound(entity, redact(text.slice(0, 100)))

/** What a list is asked for, from its validated query. */
export function pageRequest(parameters: { limit: number; cursor?: PagePosition | undefined }): PageRequest {
  return { limit: parameters.limit, after: parameters.cursor ?? null }
}

/**
 * Lets a request on to the routes of an organization that exists and that this administrator administers.
 * @throws ApiError `not_found` otherwise.
 */
export function organizationScope(): MiddlewareHandler<AppEnv, '/organizations/:organizationId/*'> {
  return async function organizationScope(context, next) {
    const organizationId = idParameter('Organization', context.req.param('organizationId'))
    const scope = context.get('administrator').organizationId
    if (scope !== null && scope !== organizationId) throw notFound('Organization', organizationId)
    await readOrganization(administrationOf(context), organizationId)
    await next()
  }
}

/** Keeps administrators of one organization away from what belongs to the deployment. @throws ApiError `not_found`. */
export function deploymentScope(): MiddlewareHandler<AppEnv> {
  return async function deploymentScope(context, next) {
    if (context.get('administrator').organizationId !== null) throw new ApiError('not_found', 'Not found.')
    await next()
  }
}

type Issue = { path: PropertyKey[]; message: string; code?: string | undefined }

function explain(issues: readonly Issue[], sent: unknown, whole: string): ApiError {
  const reasons = issues.map((issue) => ({
    path: issue.path.map(String).join('.') || whole,
    reason: isMissing(issue, sent) ? 'is required' : issue.message,
  }))
  const message = reasons.map(({ path, reason }) => `${path}: ${reason}`).join('; ')
  return new ApiError('invalid_request', message, { code: `invalid_${whole}`, details: { issues: reasons } })
}

/** Zod tells of a missing member as of one with the wrong type. */
function isMissing({ path, code }: Issue, sent: unknown): boolean {
  const value = path.reduce((held: unknown, name) => (held as Record<PropertyKey, unknown>)?.[name], sent)
  return code === 'invalid_type' && path.length > 0 && value === undefined
}
