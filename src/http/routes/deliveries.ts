import { type Context, Hono } from 'hono'
import * as z from 'zod'
import { evaluateStep } from '../../agents/evaluations/evaluate-step.ts'
import { DELIVERY_PATHS } from '../../agents/queue/run-queue.ts'
import { advanceRun } from '../../agents/runs/advance-run.ts'
import { fireSchedule } from '../../agents/triggers/fire-trigger.ts'
import { ApiError } from '../../lib/api-error.ts'
import { uuid } from '../../wire/management-fields.ts'
import { storedAddress } from '../caller-address.ts'
import type { AppEnv } from '../context.ts'
import { checkedJson } from '../json-request.ts'
import { limitBody } from '../middleware/limit-body.ts'

const LARGEST_DELIVERY = 64 * 1024

const runDelivery = z.object({ organization_id: uuid, run_id: uuid, rev: z.int().positive() })

const verdictDelivery = z.object({ organization_id: uuid, run_id: uuid, step: z.int().positive() })

const scheduleDelivery = z.object({ organization_id: uuid, agent_id: uuid, trigger: z.string().max(100) })

const limitLength = limitBody(LARGEST_DELIVERY)

/**
 * Routes for deliveries of QStash, mounted at `/internal`. A delivery is signed: its key, time, URL and body are checked. A
 * delivery that fails with 500 is repeated.
 */
export const deliveryRoutes = new Hono<AppEnv>()
  .use('/agents/*', limitLength)
  .post('/agents/schedules', async (context) => {
    const { body, signatureId } = await signedBody(context, DELIVERY_PATHS.schedules)
    const {
      organization_id: organizationId,
      agent_id: agentId,
      trigger: name,
    } = checkedJson(body, scheduleDelivery)
    const messageId = messageIdOf(context) ?? signatureId
    await fireSchedule(context.var.deps, { organizationId, agentId, name }, { messageId, signatureId })
    return context.json({ ok: true })
  })
  .post('/agents/runs', async (context) => {
    const { body } = await signedBody(context, DELIVERY_PATHS.runs)
    const { organization_id: organizationId, run_id: runId, rev } = checkedJson(body, runDelivery)
    const isRepeated = Number(context.req.header('upstash-retried')) > 0
    await advanceRun(
      context.var.deps,
      { organizationId, runId, rev },
      { messageId: knownForm(messageIdOf(context)), isRepeated },
    )
    return context.json({ ok: true })
  })
  .post('/agents/verdicts', async (context) => {
    const { body } = await signedBody(context, DELIVERY_PATHS.verdicts)
    const { organization_id: organizationId, run_id: runId, step } = checkedJson(body, verdictDelivery)
    await evaluateStep(context.var.deps, { organizationId, runId, number: step })
    return context.json({ ok: true })
  })

/** The message id is not signed, and is the same for all deliveries of a message. */
const messageIdOf = (context: Context<AppEnv>): string | null =>
  context.req.header('upstash-message-id') ?? null

/** Ids of messages are words; others are not used. */
const knownForm = (messageId: string | null): string | null =>
  messageId !== null && /^[\w-]{1,200}$/.test(messageId) ? messageId : null

type DeliveryPath = (typeof DELIVERY_PATHS)[keyof typeof DELIVERY_PATHS]

/**
 * The body of a signed delivery, and the id of its signature.
 * @throws ApiError unauthorized for one that QStash has not signed; it is counted by its address, as a call without a key.
 */
async function signedBody(
  context: Context<AppEnv>,
  path: DeliveryPath,
): Promise<{ body: string; signatureId: string }> {
  const { deps, startedAt, surface } = context.var
  const body = await context.req.text()
  const signature = context.req.header('upstash-signature')
  const signatureId = signature ? ((await deps.runQueue?.verify(signature, body, path)) ?? null) : null
  if (signatureId !== null) return { body, signatureId }
  const ip = storedAddress(context) ?? 'unknown'
  deps.waitUntil(deps.countRejectedCall({ ip, at: startedAt, surface }))
  throw new ApiError('unauthorized', 'The delivery is not signed by QStash.')
}
