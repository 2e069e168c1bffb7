import { Hono, type Next } from 'hono'
import { fireWebhook } from '../../agents/triggers/fire-trigger.ts'
import {
  type FiringTrigger,
  findOrganization,
  selectTrigger,
  type TriggerKey,
} from '../../agents/triggers/triggers.store.ts'
import { isSigned, webhookSecretContext } from '../../agents/triggers/webhook-signature.ts'
import { readPrincipal } from '../../calls/renew-rights.ts'
import { mayLookUp, noteRefusal } from '../../identity/look-up-guard.ts'
import { ApiError } from '../../lib/api-error.ts'
import { unseal } from '../../lib/crypto.ts'
import { webhookBody } from '../../wire/agents.ts'
import { isUuid } from '../../wire/management-fields.ts'
import { callerAddress, storedAddress } from '../caller-address.ts'
import type { AppContext, AppEnv } from '../context.ts'
import { checkedJson } from '../json-request.ts'
import { admission } from '../middleware/admission.ts'
import { audit } from '../middleware/audit.ts'
import { callIdentity } from '../middleware/authenticate.ts'
import { limitDeclaredLength } from '../middleware/declared-length.ts'
import { limitBody } from '../middleware/limit-body.ts'

const WEBHOOK = '/v1/agents/:agentId/triggers/:name'
/** Maximum size of a webhook body, which is read before its signature is known. */
const LARGEST_WEBHOOK = 1024 * 1024

const limitLength = limitBody(LARGEST_WEBHOOK)

/**
 * Signed webhooks that begin runs with the rights of their agent's creator. The call is recorded and counted as the creator's.
 */
export const webhookRoutes = new Hono<AppEnv>().post(
  WEBHOOK,
  audit,
  limitDeclaredLength,
  limitLength,
  verifySignature,
  admission(),
  async (context) => {
    const { deps, rights } = context.var
    const key = { ...keyOf(context), organizationId: rights.principal.organizationId }
    const trigger = await selectTrigger(deps.database, key)
    if (trigger === null) throw refused()
    const body = await context.req.text()
    const { inputs } = body === '' ? { inputs: null } : checkedJson(body, webhookBody)
    const id = context.req.header('webhook-id') ?? ''
    return context.json(await fireWebhook(deps, key, trigger, { id, body, inputs: inputs ?? [] }), 202)
  },
)

const keyOf = (context: AppContext) => ({
  agentId: (context.req.param('agentId') ?? '').toLowerCase(),
  name: context.req.param('name') ?? '',
})

/** Every failure gives the same error, so that callers without the secret learn nothing. */
const refused = () => new ApiError('unauthorized', 'A valid webhook signature is required.')

/**
 * Identifies the creator of an agent by the signature of its webhook. No fallback after a failed check. An address whose signatures
 * keep being refused gets few look-ups, as with keys.
 */
async function verifySignature(context: AppContext, next: Next): Promise<void> {
  const { deps, startedAt, surface } = context.var
  const address = callerAddress(context)
  const mayLook = await mayLookUp(deps, address)
  const found = mayLook ? await signedTrigger(context) : null
  if (found === null) {
    if (mayLook) await noteRefusal(deps, address)
    deps.waitUntil(
      deps.countRejectedCall({ ip: storedAddress(context) ?? 'unknown', at: startedAt, surface }),
    )
    throw refused()
  }
  const { key, trigger } = found
  const { organizationId, agentId, name } = key
  const userId = trigger.agent.createdBy
  const identity = callIdentity(context, { userId, keyId: null })
  context.set('caller', { organizationId, identity })
  const credential = { kind: 'trigger', agentId, name } as const
  const principal = await readPrincipal(deps, { organizationId, userId, credential })
  context.set('rights', { principal, catalogueEpoch: null, learned: null })
  await next()
}

/** The trigger that the request is signed for; null for any other request. */
async function signedTrigger(
  context: AppContext,
): Promise<{ key: TriggerKey; trigger: FiringTrigger } | null> {
  const { deps, startedAt } = context.var
  const { agentId, name } = keyOf(context)
  const id = context.req.header('webhook-id') ?? ''
  const timestamp = context.req.header('webhook-timestamp') ?? ''
  const signatures = context.req.header('webhook-signature') ?? ''
  if (id === '' || id.length > 255 || signatures.length > 4_000 || !isUuid(agentId)) return null
  const organizationId = await findOrganization(deps.database, agentId)
  if (organizationId === null) return null
  const key = { organizationId, agentId, name }
  const trigger = await selectTrigger(deps.database, key)
  if (!trigger?.sealedSecret || trigger.kind !== 'webhook') return null
  const secret = unseal(
    deps.configuration.VAULT_KEYS,
    trigger.sealedSecret,
    webhookSecretContext(agentId, name),
  )
  const body = await context.req.text()
  return isSigned(secret, { id, timestamp, signatures }, body, startedAt) ? { key, trigger } : null
}
