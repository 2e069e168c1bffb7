import { zValidator } from '@hono/zod-validator'
import type * as z from 'zod'
import { ApiError, invalidRequest, notFound } from '../lib/api-error.ts'
import { redactEncoded } from '../lib/log.ts'
import { issueReason, type SchemaIssue } from '../lib/schema-issues.ts'
import { isConnectionId } from '../wire/connections.ts'
import type { AppContext } from './context.ts'

/** Checks a JSON body. @throws ApiError `invalid_request` naming every member that does not fit, and why. */
export const jsonBody = <Schema extends z.ZodType>(schema: Schema) =>
  zValidator('json', schema, (result, context) => {
    // The validator reads any other content type as an empty body, and would report missing members.
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

/** The error for an unknown id. Redacted, because the text can be a key that was pasted in the wrong place. */
export const unknownId = (entity: string, text: string) => notFound(entity, redactEncoded(text.slice(0, 100)))

/** The id of a connection in a path. @throws ApiError not_found for a text that is none. */
export function connectionId(context: AppContext): string {
  const text = context.req.param('connectionId') ?? ''
  if (!isConnectionId(text)) throw unknownId('Connection', text)
  return text
}

/** The error for a part of a request that does not fit, naming every member and why. */
export function explain(issues: readonly SchemaIssue[], sent: unknown, whole: string): ApiError {
  const reasons = issues.map((issue) => ({
    path: issue.path.map(String).join('.') || whole,
    reason: issueReason(issue, sent),
  }))
  const message = reasons.map(({ path, reason }) => `${path}: ${reason}`).join('; ')
  return new ApiError('invalid_request', message, { code: `invalid_${whole}`, details: { issues: reasons } })
}
