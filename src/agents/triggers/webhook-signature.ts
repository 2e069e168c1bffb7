import { createHmac, randomBytes } from 'node:crypto'
import { secretsEqual } from '../../lib/crypto.ts'

/** The headers of a signed webhook (https://github.com/standard-webhooks/standard-webhooks, spec). */
interface WebhookHeaders {
  /** `webhook-id`: the same when it is repeated. */
  id: string
  /** `webhook-timestamp`: seconds since the epoch. */
  timestamp: string
  /** `webhook-signature`: one or more of `v1,<base64>`, separated by spaces. */
  signatures: string
}

const TOLERANCE_SECONDS = 300
const SECRET_BYTES = 32
const PREFIX = 'whsec_'

/** `whsec_` and 32 random bytes in base64. */
export const newWebhookSecret = (): string => `${PREFIX}${randomBytes(SECRET_BYTES).toString('base64')}`

/** The context under which the secret of a webhook is sealed. */
export const webhookSecretContext = (agentId: string, name: string) => `agent-webhook/${agentId}/${name}`

/** @param now milliseconds since the epoch. */
export function isSigned(
  secret: string,
  { id, timestamp, signatures }: WebhookHeaders,
  body: string,
  now: number,
) {
  if (!/^\d{1,12}$/.test(timestamp)) return false
  if (Math.abs(now / 1_000 - Number(timestamp)) > TOLERANCE_SECONDS) return false
  const expected = signature(secret, { id, timestamp }, body)
  return signatures.split(' ').some((given) => secretsEqual(given, expected))
}

/**
 * The signature of a body, `v1,<base64>`.
 * Used by tests, which sign messages of webhooks.
 */
export function signature(
  secret: string,
  { id, timestamp }: Pick<WebhookHeaders, 'id' | 'timestamp'>,
  body: string,
): string {
  const key = Buffer.from(secret.slice(PREFIX.length), 'base64')
  const mac = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')
  return `v1,${mac}`
}
