import { Hono } from 'hono'
import { evaluateRun, readRun, restartRun } from '../../agents/own-runs.ts'
import { invalidRequest } from '../../lib/api-error.ts'
import { redactEncoded } from '../../lib/log.ts'
import { isUuid } from '../../wire/management-fields.ts'
import type { AppContext, AppEnv } from '../context.ts'
import { idempotencyKey } from '../idempotency-key.ts'
import { unknownId } from '../validated-request.ts'

/** The caller's runs (interface: Agents). Runs of other users give 404. */
export const runRoutes = new Hono<AppEnv>()
  .get('/v1/runs/:runId', async (context) => {
    const { deps, rights } = context.var
    return context.json(await readRun(deps, rights.principal, runIdOf(context)))
  })
  .post('/v1/runs/:runId/restart', async (context) => {
    const { deps, rights } = context.var
    const text = context.req.param('runId')
    const runId = text.toLowerCase()
    const key = idempotencyKey(context)
    if (!isUuid(runId)) throw unknownId('Run', text)
    return context.json(await restartRun(deps, rights.principal, runId, key), 202)
  })
  .get('/v1/runs/:runId/evals', async (context) => {
    const { deps, rights } = context.var
    return context.json(await evaluateRun(deps, rights.principal, runIdOf(context)))
  })

/** @throws ApiError invalid_request for text that is no UUID (interface: Errors, Agents and runs). */
function runIdOf(context: AppContext): string {
  const text = context.req.param('runId') ?? ''
  const id = text.toLowerCase()
  if (!isUuid(id)) throw invalidRequest(`runId: ${redactEncoded(text.slice(0, 100))} is not a UUID`)
  return id
}
