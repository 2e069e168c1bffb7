import { randomBytes } from 'node:crypto'
import { type Answer, jsonOf, send } from './send.ts'
import type { GatewayAddress } from './start-gateway.ts'

type Json = Record<string, unknown>

/** An organization with one user and one key, made through the management API. */
export interface Tenant {
  organizationId: string
  /** `/organizations/<id>`, below `/api`. */
  base: string
  userId: string
  keyId: string
  key: string
}

export interface TenantOptions {
  /** Micro-credits; 0 for none. */
  credits?: number
  /** Models granted to the organization. */
  models?: string[]
  organization?: Json
  user?: Json
  key?: Json
}

/** A name that no other test of this run has. */
export const uniqueName = (prefix: string) => `${prefix}-${randomBytes(6).toString('hex')}`

/** Calls the management API as the administrator of a gateway. Paths are below `/api`. */
export function administrator(address: Pick<GatewayAddress, 'baseUrl' | 'adminToken'>) {
  const call = (method: string, path: string, body?: unknown): Promise<Answer> =>
    send(`${address.baseUrl}/api${path}`, {
      method,
      headers: { authorization: `Bearer ${address.adminToken}`, 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
  return {
    call,
    /** @throws unless the answer is a success. @returns its body. */
    async ask<Body = Json>(method: string, path: string, body?: unknown): Promise<Body> {
      const answer = await call(method, path, body)
      if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${answer.text}`)
      return jsonOf(answer) as Body
    },
  }
}

export async function createTenant(address: GatewayAddress, options: TenantOptions = {}): Promise<Tenant> {
  const { ask } = administrator(address)
  const { credits = 1_000_000_000, models = ['*'] } = options
  const slug = uniqueName('tenant')
  const organization = await ask<{ id: string }>('POST', '/organizations', {
    name: slug,
    slug,
    ...options.organization,
  })
  const base = `/organizations/${organization.id}`
  await Promise.all([
    ...models.map((model) =>
      ask('POST', `${base}/grants`, { subject_type: 'organization', model_id: model }),
    ),
    credits > 0 && ask('POST', `${base}/credits`, { amount: credits, reason: 'test' }),
  ])
  const member = await addMember(address, base, options.user)
  const key = await addKey(address, base, member, options.key)
  return { organizationId: organization.id, base, userId: member, keyId: key.id, key: key.key }
}

/** @returns the new user's id. */
export async function addMember(address: GatewayAddress, base: string, more: Json = {}): Promise<string> {
  const email = `${uniqueName('user')}@example.com`
  const { id } = await administrator(address).ask<{ id: string }>('POST', `${base}/users`, {
    email,
    name: 'Test user',
    ...more,
  })
  return id
}

export function addKey(
  address: GatewayAddress,
  base: string,
  userId: string,
  more: Json = {},
): Promise<{ id: string; key: string }> {
  return administrator(address).ask('POST', `${base}/keys`, { user_id: userId, label: 'test', ...more })
}

export const bearer = (key: string) => ({
  authorization: `Bearer ${key}`,
  'content-type': 'application/json',
})
