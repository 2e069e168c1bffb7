import { beforeAll, describe, expect, it, vi } from 'vitest'
import { createApiKey } from '../../src/identity/api-key.ts'
import { gateway } from '../harness/gateway.ts'
import { type Answer, send } from '../harness/send.ts'
import { addKey, addMember, administrator, createTenant } from '../harness/tenant.ts'
import {
  fewForms,
  type HeaderForm,
  headerForms,
  kindsOfForms,
  type MatrixKeys,
  type Verdict,
  verdictOf,
} from '../matrices/authentication.ts'
import { refusalBody } from '../matrices/envelopes.ts'
import { type Host, type RouteExample, routeExamples } from '../matrices/routes.ts'

const REQUEST_ID = /^req_[0-9A-Za-z]{10,}$/

let keys: MatrixKeys

beforeAll(async () => {
  const address = gateway()
  const { ask } = administrator(address)
  const [tenant, closed] = await Promise.all([
    createTenant(address, { organization: { user_rate_limit_per_minute: 100_000 } }),
    createTenant(address),
  ])
  await ask('PUT', `${tenant.base}/users/${tenant.userId}/entitlements/personal_api_key_access`)
  const expires = { expires_at: new Date(Date.now() + 3_000).toISOString() }
  // For the MCP gateway.
  await ask('PUT', `${tenant.base}/users/${tenant.userId}/entitlements/personal_api_key_access`)
  const leaver = await addMember(address, tenant.base)
  const [revoked, expired, disabled] = await Promise.all([
    addKey(address, tenant.base, tenant.userId),
    addKey(address, tenant.base, tenant.userId, expires),
    addKey(address, tenant.base, leaver),
  ])
  // Each was good once: what refuses it is what happens to it here.
  for (const { key } of [revoked, expired, disabled, closed]) {
    expect((await callModels(key)).status).toBe(200)
  }
  await Promise.all([
    ask('DELETE', `${tenant.base}/keys/${revoked.id}`),
    ask('DELETE', `${tenant.base}/users/${leaver}`),
    ask('PUT', closed.base, { disabled: true }),
  ])
  await vi.waitFor(async () => expect((await callModels(expired.key)).status).toBe(401), {
    timeout: 8_000,
    interval: 50,
  })
  keys = {
    valid: tenant.key,
    unknown: createApiKey().key,
    revoked: revoked.key,
    expired: expired.key,
    disabledUser: disabled.key,
    disabledOrganization: closed.key,
    adminToken: address.adminToken,
  }
})

const callModels = (key: string) =>
  send(`${gateway().baseUrl}/v1/models`, { headers: { authorization: `Bearer ${key}` } })

const hosts: Host[] = ['base', 'llm']
const cases = routeExamples().flatMap((route) => hosts.map((host) => ({ route, host })))

describe.concurrent.each(cases)('$route.method $route.pattern on the $host host', ({ route, host }) => {
  it('answers every header form as the interface requires', async () => {
    const wrong: string[] = []
    for (const form of formsFor(route, host)) {
      const answer = await call(route, host, form)
      try {
        expectVerdict(answer, route, verdictOf(route, host, form))
      } catch (error) {
        wrong.push(
          `${form.name}: ${answer.status} ${answer.text.slice(0, 200)} (${(error as Error).message})`,
        )
      }
    }
    expect(wrong).toEqual([])
  })
})

/** Forms that show that a route asks for a key, and in the headers of its surface. */
const FORMS_OF_EACH: Record<Host, string[]> = {
  base: ['Bearer', 'x-api-key', 'nothing'],
  llm: ['Bearer', 'api-key', 'nothing'],
}

/**
 * One function reads the headers of a surface, so the first route of each surface and host has every form. The other
 * routes have the forms that show that they call it. If a host does not serve a route, a valid key shows that.
 */
function formsFor(route: RouteExample, host: Host): HeaderForm[] {
  if (!route.hosts.includes(host)) return kindsOfForms(keys).slice(0, 1)
  if (route.surface === 'open') return kindsOfForms(keys)
  const isManagement = route.surface === 'management'
  const { adminToken } = keys
  const own = isManagement ? { ...keys, valid: adminToken } : keys
  // The management API knows one token; everywhere else it opens nothing.
  const forbidden = isManagement
    ? forbiddenForms(keys.valid, 'an API key')
    : forbiddenForms(adminToken, 'the administration token')
  if (!isFirst(route, host)) {
    const few = kindsOfForms(own).filter(({ name }) => FORMS_OF_EACH[host].includes(name))
    return [...few, ...forbidden.slice(0, 1)]
  }
  if (isManagement) return [...fewForms(own), ...forbidden]
  // In the header that no surface of the host reads, one bad key stands for all.
  const unread = host === 'base' ? ' as api-key' : ' as x-api-key'
  const forms = headerForms(own).filter(({ name }) => !name.endsWith(unread) || name.startsWith('a revoked'))
  return [...forms, ...forbidden]
}

const isFirst = (route: RouteExample, host: Host): boolean =>
  cases.find(
    (each) => each.host === host && each.route.surface === route.surface && each.route.hosts.includes(host),
  )?.route === route

const forbiddenForms = (key: string, name: string): HeaderForm[] => [
  { name: `${name} as Bearer`, headers: { authorization: `Bearer ${key}` }, letsInBy: null },
  { name: `${name} as x-api-key`, headers: { 'x-api-key': key }, letsInBy: null },
  { name: `${name} as api-key`, headers: { 'api-key': key }, letsInBy: null },
]

let addresses = 0

/** Each call has an address of its own, because an address may send few wrong tokens. */
function nextAddress(): string {
  addresses += 1
  return `198.18.${addresses >> 8}.${addresses & 255}`
}

function call(route: RouteExample, host: Host, form: HeaderForm): Promise<Answer> {
  const address = gateway()
  const url = (host === 'base' ? address.baseUrl : address.llmUrl) + route.path
  const body = route.body === undefined ? {} : { body: JSON.stringify(route.body) }
  const headers = {
    'content-type': 'application/json',
    ...route.headers,
    'cf-connecting-ip': nextAddress(),
    ...form.headers,
  }
  return send(url, { method: route.method, headers, ...body })
}

function expectVerdict(answer: Answer, route: RouteExample, verdict: Verdict): void {
  expect(answer.headers['x-request-id']).toMatch(REQUEST_ID)
  // Anthropic's SDKs read the request id from this header.
  const own = route.surface === 'messages' ? answer.headers['x-request-id'] : undefined
  expect(answer.headers['request-id']).toBe(own)
  if (verdict === 'let in') expectLetIn(answer, route)
  else {
    expectRefusal(answer, route, verdict === 'refused' ? 401 : 404)
    const challenge = verdict === 'refused' ? CHALLENGES[route.surface]?.() : undefined
    expect(answer.headers['www-authenticate']).toBe(challenge)
  }
}

/** Only the MCP gateway and the management API say how to authenticate (interface, Authentication 5). */
const CHALLENGES: Partial<Record<RouteExample['surface'], () => string>> = {
  management: () => 'Bearer',
  mcp: () => `Bearer resource_metadata="${gateway().baseUrl}/.well-known/oauth-protected-resource"`,
}

function expectRefusal(answer: Answer, route: RouteExample, status: 401 | 404): void {
  expect(answer.status).toBe(status)
  expect(answer.headers['content-type']).toMatch(/^application\/json/)
  if (route.method === 'HEAD') return
  const code = status === 404 ? { code: 'not_found' } : {}
  const surface = route.path.startsWith('/api/') ? 'management' : route.surface
  expect(JSON.parse(answer.text)).toEqual(refusalBody(surface, { status, ...code }))
}

function expectLetIn(answer: Answer, route: RouteExample): void {
  expect(route.letIn ?? [200]).toContain(answer.status)
}
