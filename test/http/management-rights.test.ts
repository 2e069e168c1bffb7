import { randomInt } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import { ENDPOINTS, type Endpoint, type EndpointName } from '../../src/wire/endpoints/endpoints.ts'
import { reachOf } from '../../src/wire/endpoints/permissions.ts'
import { type ConsoleBrowser, signedInBrowser } from '../harness/console-browser.ts'
import { gateway, query } from '../harness/gateway.ts'
import { type Answer, jsonOf } from '../harness/send.ts'
import { addKey, addMember, administrator, createTenant, type Tenant, uniqueName } from '../harness/tenant.ts'

// The contract of rights: each endpoint, for each kind of member, on what is its own, of a colleague, and of another organization.

const MEMBERS = [
  { role: 'owner', entitlements: [] },
  { role: 'admin', entitlements: [] },
  { role: 'member', entitlements: [] },
  { role: 'member', entitlements: ['auditor'] },
  { role: 'member', entitlements: ['billing'] },
  { role: 'member', entitlements: ['security'] },
  { role: 'member', entitlements: ['personal_api_key_access'] },
  { role: 'member', entitlements: ['operator'] },
  { role: 'admin', entitlements: ['operator'] },
  { role: 'owner', entitlements: ['operator', 'auditor'] },
] as const
type Member = (typeof MEMBERS)[number]

const RELATIONS = ['own', 'same organization', 'other organization'] as const
type Relation = (typeof RELATIONS)[number]

/** Whose objects differ by their user. */
const OF_A_USER = /\{(userId|keyId|callId|sessionId|passkeyId)\}/

/** Objects that need not exist: that they are looked for shows that the caller may look. */
const MISSING: Record<string, string> = {
  groupId: '00000000-0000-4000-8000-000000000003',
  grantId: '00000000-0000-4000-8000-000000000004',
  providerId: '00000000-0000-4000-8000-000000000005',
  policyId: '00000000-0000-4000-8000-000000000006',
  integrationId: '00000000-0000-4000-8000-000000000007',
  agentId: '00000000-0000-4000-8000-000000000008',
  runId: '00000000-0000-4000-8000-000000000009',
  connectionId: 'conn_0000000000000000000000',
  erasureId: 'erasure_0000000000000000000000',
  trigger: 'no-such-trigger',
  version: '1',
  modelId: 'no-such-model',
}

const BODIES: Partial<Record<EndpointName, object>> = {
  'keys.create': { label: 'test' },
  'keys.change': { compatibility: 'headgate' },
}

/** Rules beside the table: what nobody does to itself. */
const NOT_TO_ITSELF: ReadonlySet<string> = new Set([
  'users.entitle owner',
  'users.withdraw owner',
  'users.entitle operator',
  'users.withdraw operator',
  'erasures.create owner',
  'erasures.create operator',
  // Only the administration token makes a setup link for an operator.
  'users.setup-link operator',
  // It has signed in, and an administrator makes no link for whoever has.
  'users.setup-link admin',
])

/** Only in a local system; elsewhere nobody has them. */
const LOCAL_ONLY = /^local-members\.|^sign-in\.local$/

/** What is done for oneself and for service accounts, whatever the reach: the answer holds a key. */
const NOT_FOR_ANOTHER: ReadonlySet<string> = new Set(['keys.rotate'])

let tenant: Tenant
let other: Tenant
const browsers = new Map<Member, { browser: ConsoleBrowser; userId: string }>()

beforeAll(async () => {
  ;[tenant, other] = await Promise.all([createTenant(gateway()), createTenant(gateway())])
  for (const member of MEMBERS) browsers.set(member, await signIn(tenant, member))
})

async function signIn({ base }: Tenant, { role, entitlements }: Member) {
  const userId = await addMember(gateway(), base, { role })
  for (const name of entitlements) {
    await administrator(gateway()).ask('PUT', `${base}/users/${userId}/entitlements/${name}`)
  }
  return { browser: await signedInBrowser(gateway(), base, userId), userId }
}

const endpoints = Object.entries(ENDPOINTS) as Array<[EndpointName, Endpoint]>
const isOperator = ({ entitlements }: Member) => entitlements.some((name) => name === 'operator')
const nameOf = ({ role, entitlements }: Member) => [role, ...entitlements].join(' with ')

describe.each(MEMBERS.map((member) => [nameOf(member), member] as const))('of a %s', (_, member) => {
  it.concurrent.each(endpoints)('%s reaches what the table says', async (name, endpoint) => {
    for (const relation of RELATIONS) {
      const { answer, wanted } = await cell(name, endpoint, member, relation)
      expectVerdict(answer, wanted, endpoint, `${name}, ${relation}: ${answer.status} ${answer.text}`)
    }
  })
})

type Verdict = 'passes' | 'refused' | 'hidden'

function verdictOf(name: EndpointName, endpoint: Endpoint, member: Member, relation: Relation): Verdict {
  const { permission, path } = endpoint
  if (permission === null) return 'passes'
  if (LOCAL_ONLY.test(name)) return endpoint.method === 'GET' ? 'hidden' : 'passes'
  const isOfAnother = relation === 'other organization'
  const reach = reachOf(permission, member)
  if (isOfAnother && path.includes('{organizationId}') && !isOperator(member)) return 'hidden'
  if (reach === null) return 'refused'
  // What the role of an operator gives is of its own organization; that there is another one is no secret.
  if (isOfAnother && path.includes('{organizationId}') && reach !== 'installation') return 'refused'
  if (relation !== 'own' && reach === 'own' && OF_A_USER.test(path)) return 'hidden'
  if (relation !== 'own' && NOT_FOR_ANOTHER.has(name)) return 'refused'
  const kind = isOperator(member) ? 'operator' : member.role
  return relation === 'own' && NOT_TO_ITSELF.has(`${name} ${kind}`) ? 'refused' : 'passes'
}

function expectVerdict(answer: Answer, wanted: Verdict, endpoint: Endpoint, text: string): void {
  if (wanted === 'hidden') expect(answer.status, text).toBe(404)
  else if (wanted === 'refused') expectRefusal(answer, endpoint, text)
  else {
    const isMissing = Object.keys(MISSING).some((parameter) => endpoint.path.includes(`{${parameter}}`))
    expect(isMissing ? [401, 403] : [401, 403, 404], text).not.toContain(answer.status)
    expect(answer.status, text).toBeLessThan(500)
  }
}

/** A 403 that names the permission; the rules of members name themselves. */
function expectRefusal(answer: Answer, { permission, path }: Endpoint, text: string): void {
  expect(answer.status, text).toBe(403)
  const { details, message } = jsonOf(answer) as { details: { permission?: string }; message: string }
  if (details.permission === undefined) expect(path, text).toMatch(OF_A_USER)
  else expect([details.permission, message]).toEqual([permission, expect.stringContaining(permission ?? '')])
}

/** One call, on objects made for it. */
async function cell(name: EndpointName, endpoint: Endpoint, member: Member, relation: Relation) {
  const wanted = verdictOf(name, endpoint, member, relation)
  // A call that may end its session has one of its own.
  const isLasting =
    endpoint.method === 'GET' || !/sign-out|\{(userId|sessionId|passkeyId)\}/.test(endpoint.path)
  const caller = (isLasting && browsers.get(member)) || (await signIn(tenant, member))
  const owner = await subjectOf(endpoint, member, relation, caller)
  const values: Record<string, string> = {
    ...MISSING,
    organizationId: (relation === 'other organization' ? other : tenant).organizationId,
    userId: owner.userId,
    entitlement: 'auditor',
    ...(endpoint.path.includes('{keyId}') && { keyId: await keyOf(owner.userId, relation) }),
    ...(endpoint.path.includes('{callId}') && { callId: await callOf(owner.userId, relation) }),
    ...(endpoint.path.includes('{sessionId}') && { sessionId: await firstOf(owner.browser, '/me/sessions') }),
    ...(endpoint.path.includes('{passkeyId}') && { passkeyId: await firstOf(owner.browser, '/me/passkeys') }),
  }
  const path = endpoint.path.replace(/\{(\w+)\}/g, (_, parameter: string) => {
    const value = values[parameter]
    if (value === undefined) throw new Error(`no value for ${parameter}`)
    return value
  })
  const body = endpoint.method === 'POST' || endpoint.method === 'PUT' ? (BODIES[name] ?? {}) : undefined
  const query = name === 'calls.tail' ? '?seconds=0' : ''
  return { answer: await caller.browser.call(endpoint.method, path + query, body), wanted }
}

/** Stores a call of a user, with its record in a chain of its own, as the ledger would. @returns its id */
async function callOf(userId: string, relation: Relation): Promise<string> {
  const id = uniqueName('call')
  const { organizationId } = relation === 'other organization' ? other : tenant
  await query(
    gateway(),
    `WITH made AS (
       INSERT INTO calls (organization_id, id, at, request_id, user_id, surface, action, status, outcome,
         duration_milliseconds, input_tokens, output_tokens, cost, count)
       VALUES ($1, $2, now(), $2, $3, 'openai', 'POST /x', 200, 'ok', 1, 0, 0, 0, 1) RETURNING *)
     INSERT INTO audit_records (organization_id, shard, sequence, id, kind, at, request_id, user_id, surface, action,
       status, credits_settled, body, previous_hash, hash)
     SELECT organization_id, 99, $4, id, 'call', at, request_id, user_id, surface, action, status, 0, '{}', '', '' FROM made`,
    [organizationId, id, userId, randomInt(1e9)],
  )
  return id
}

interface Subject {
  userId: string
  browser?: ConsoleBrowser
}

/** The user whose object is called: itself, a new colleague, or a user of the other organization. */
async function subjectOf(
  { path }: Endpoint,
  member: Member,
  relation: Relation,
  caller: Subject,
): Promise<Subject> {
  if (relation === 'own' || !OF_A_USER.test(path)) return caller
  const there = relation === 'other organization' ? other : tenant
  if (/\{(sessionId|passkeyId)\}/.test(path)) return signIn(there, member)
  return { userId: await addMember(gateway(), there.base) }
}

async function keyOf(userId: string, relation: Relation): Promise<string> {
  const { base } = relation === 'other organization' ? other : tenant
  return (await addKey(gateway(), base, userId)).id
}

async function firstOf(browser: ConsoleBrowser | undefined, path: string): Promise<string> {
  const list = await browser?.ask<{ data: Array<{ id: string }> }>('GET', path)
  return list?.data[0]?.id ?? ''
}
