import { Hono } from 'hono'
import { storedDefinition } from '../../agents/definitions/agents.ts'
import { selectVisibleAgent } from '../../agents/definitions/visible-agents.store.ts'
import { readEvaluation } from '../../agents/evaluations/read-evaluation.ts'
import { beginRun } from '../../agents/runs/begin-run.ts'
import { type ReadRun, selectRun, selectRunInputs } from '../../agents/runs/read-runs.store.ts'
import { openInputs } from '../../agents/runs/run-inputs.ts'
import { invalidRequest } from '../../lib/api-error.ts'
import { redactEncoded } from '../../lib/log.ts'
import { inTurns } from '../../lib/slices.ts'
import { redactItems } from '../../responses/items/redaction.ts'
import { isUuid } from '../../wire/management-fields.ts'
import type { AppContext, AppEnv } from '../context.ts'
import { idempotencyKey } from '../idempotency-key.ts'
import { unknownId } from '../validated-request.ts'
import { currentPolicy, ownerOf } from './response-answers.ts'

/** The caller's runs (interface: Agents). Those of others do not exist for it. */
export const runRoutes = new Hono<AppEnv>()
  .get('/v1/runs/:runId', async (context) => {
    const run = await ownRun(context)
    return context.json({
      runId: run.id,
      agentId: run.agentDeletedAt === null ? run.agentId : null,
      conversationId: run.conversationId,
      createdAtUtc: run.createdAt.toISOString(),
      endedAtUtc: run.endedAt?.toISOString() ?? null,
      result: await redactedResult(context, run),
      status: run.status,
    })
  })
  .post('/v1/runs/:runId/restart', async (context) => {
    const { deps, rights } = context.var
    const text = context.req.param('runId')
    const runId = text.toLowerCase()
    const key = idempotencyKey(context)
    const owner = ownerOf(context)
    const source = isUuid(runId) ? await selectRunInputs(deps.database, owner, runId) : null
    if (source === null) throw unknownId('Run', text)
    const agent = await selectVisibleAgent(deps.database, rights.principal, source.agentId)
    if (agent === null) throw unknownId('Agent', source.agentId)
    const inputs = openInputs(deps.configuration.VAULT_KEYS, runId, source.sealedInputs)
    const run = await beginRun(deps, {
      agent,
      owner,
      origin: 'restart',
      restartedFrom: runId,
      inputs: Object.entries(inputs).map(([name, value]) => ({ name, value })),
      ...(key !== null && { repeatable: { identities: [`restart ${key}`], content: runId } }),
    })
    return context.json(run, 202)
  })
  .get('/v1/runs/:runId/evals', async (context) => {
    const run = await ownRun(context)
    const { deps, rights } = context.var
    return context.json({ runId: run.id, ...(await readEvaluation(deps, rights.principal, run)) })
  })

/** @throws ApiError invalid_request for text that is no UUID; not_found. */
async function ownRun(context: AppContext): Promise<ReadRun> {
  const text = context.req.param('runId') ?? ''
  const id = text.toLowerCase()
  if (!isUuid(id)) throw invalidRequest(`runId: ${redactEncoded(text.slice(0, 100))} is not a UUID`)
  const run = await selectRun(context.var.deps.database, ownerOf(context), id)
  if (run === null) throw unknownId('Run', text)
  return run
}

/** The result as its user may read it under the current policies. */
async function redactedResult(
  context: AppContext,
  { result, definition, step }: ReadRun,
): Promise<string | null> {
  if (result === null) return null
  const model = storedDefinition(definition).steps[step - 1]?.model ?? ''
  const { parts, ...message } = JSON.parse(result) as { role: string; parts: Array<{ text: string }> }
  // Policies know the parts of a message by their form on the Responses surface.
  const content = parts.map(({ text }) => ({ type: 'output_text', text }))
  const policy = await currentPolicy(context, model)
  const [redacted] = await inTurns(redactItems(policy, [{ type: 'message', role: 'assistant', content }]))
  const shown = redacted?.content.map(({ text }) => ({ type: 'text', text }))
  return JSON.stringify({ ...message, parts: shown })
}
