import { gateway } from '../../harness/gateway.ts'
import { type AuditEntry, auditEntryOf } from '../../harness/records.ts'
import { type Answer, send } from '../../harness/send.ts'
import type { GatewayAddress } from '../../harness/start-gateway.ts'
import { administrator, bearer, createTenant, type Tenant, uniqueName } from '../../harness/tenant.ts'
import { MODEL_ROUTES, type ModelRoute } from '../../matrices/routes.ts'
import { CHAT_ON_MESSAGES, COMPLETION_PAIRS, MESSAGES_ON_CHAT } from './translated-pairs.ts'

type Json = Record<string, unknown>

/** A value that policies of these tests find, on its own a match of `CODE`; no text around it can be part of it. */
export const CODE = { id: 'code', pattern: 'KX-[0-9]{4}-[0-9]{6}' }

/** A new value each time. */
export function someCode(): string {
  const digits = String(Math.floor(Math.random() * 1e10)).padStart(10, '0')
  return `KX-${digits.slice(0, 4)}-${digits.slice(4)}`
}

/**
 * Parts of a value that no answer may contain: its beginning, middle and end. Each is long enough not to occur in an
 * id.
 */
export const tracesOf = (code: string): string[] => [code.slice(0, 7), code.slice(2, 8), code.slice(8)]

export const ALL_DIRECTIONS = ['request', 'response', 'tool_arguments', 'tool_result'] as const

/** A policy on `CODE`. */
export const codePolicy = (action: string, values: Json = {}): Json => ({
  name: uniqueName('policy'),
  directions: ALL_DIRECTIONS,
  rules: [{ custom: CODE.id, action }],
  patterns: [CODE],
  ...values,
})

export async function addPolicy(
  tenant: Pick<Tenant, 'base'>,
  policy: Json,
  address: GatewayAddress = gateway(),
): Promise<{ id: string; version: number }> {
  return administrator(address).ask('POST', `${tenant.base}/dlp/policies`, policy)
}

/** An organization under one policy. */
export async function governedTenant(policy: Json, address: GatewayAddress = gateway()): Promise<Tenant> {
  const tenant = await createTenant(address)
  await addPolicy(tenant, policy, address)
  return tenant
}

/** A way from a caller's protocol to a provider's. */
export interface Way {
  name: string
  route: ModelRoute
  model: string
  upstream: 'chat' | 'completions' | 'messages'
}

const [CHAT, COMPLETIONS, MESSAGES, COUNT] = MODEL_ROUTES as [ModelRoute, ModelRoute, ModelRoute, ModelRoute]

export { CHAT, COMPLETIONS, COUNT, MESSAGES }

const way = (route: ModelRoute, model: string, upstream: Way['upstream']): Way => ({
  name: `${route.name} on ${upstream}`,
  route,
  model,
  upstream,
})

export const CHAT_WAY = way(CHAT, CHAT.model, 'chat')
export const MESSAGES_WAY = way(MESSAGES, MESSAGES.model, 'messages')
export const COMPLETIONS_WAY = way(COMPLETIONS, COMPLETIONS.model, 'completions')
export const CHAT_TO_MESSAGES = way(CHAT, CHAT_ON_MESSAGES.model, 'messages')
export const MESSAGES_TO_CHAT = way(MESSAGES, MESSAGES_ON_CHAT.model, 'chat')

/** Every way that generates. */
export const WAYS: readonly Way[] = [
  CHAT_WAY,
  MESSAGES_WAY,
  COMPLETIONS_WAY,
  CHAT_TO_MESSAGES,
  MESSAGES_TO_CHAT,
  ...COMPLETION_PAIRS.map((pair) => way(pair.route, pair.model, pair.upstream.protocol)),
]

export const namedWays = (ways: readonly Way[]) => ways.map((each) => [each.name, each] as const)

export function callWay(
  { route, model }: Pick<Way, 'route' | 'model'>,
  tenant: Pick<Tenant, 'key'>,
  text: string,
  more: Json = {},
  address: Pick<GatewayAddress, 'baseUrl'> = gateway(),
): Promise<Answer> {
  const body = JSON.stringify(route.request(text, { model, ...more }))
  return send(address.baseUrl + route.path, { method: 'POST', headers: bearer(tenant.key), body })
}

interface Counts {
  inspected: number
  uninspected: number
  released: number
  withheld: number
}

/** The record of a call, with what it says of data-loss prevention. */
export async function recordOf(tenant: Tenant, answer: Pick<Answer, 'headers'>, address = gateway()) {
  const entry: AuditEntry = await auditEntryOf(address, tenant, answer.headers['x-request-id'])
  const { record } = entry
  return {
    entry,
    record,
    dlp: record.dlp as { policyVersion: string; findings: Record<string, number> } | null,
    request: record.request as Counts | null,
    response: record.response as Counts | null,
  }
}

/** Expects for every recorded direction that bytes in equal bytes released and withheld. @returns those directions */
export function expectBalance({ request, response }: Awaited<ReturnType<typeof recordOf>>): string[] {
  const told: string[] = []
  for (const [name, counts] of Object.entries({ request, response })) {
    if (counts === null) continue
    told.push(name)
    const { inspected, uninspected, released, withheld } = counts
    if (inspected + uninspected !== released + withheld || Math.min(...Object.values(counts)) < 0) {
      throw new Error(`${name}: ${JSON.stringify(counts)} does not add up`)
    }
  }
  return told
}
