import { beforeAll, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { auditEntryOf } from '../harness/records.ts'
import { type Answer, type SendOptions, send } from '../harness/send.ts'
import { addKey, administrator, bearer, createTenant, type Tenant } from '../harness/tenant.ts'
import { MODEL_ROUTES, type ModelRoute } from '../matrices/routes.ts'

/**
 * The first call of a key passes the whole chain of middleware, later ones the short path (`src/http/known-callers`):
 * callers must not notice a difference.
 */

let tenant: Tenant

beforeAll(async () => {
  tenant = await createTenant(gateway(), { organization: { user_rate_limit_per_minute: 100_000 } })
})

/** Values that differ from call to call. */
const CHANGING = new Set([
  'date',
  'x-request-id',
  'request-id',
  'x-upstream-request-id',
  'openai-processing-ms',
  'x-ratelimit-remaining-requests',
  'x-ratelimit-reset-requests',
  'anthropic-ratelimit-requests-remaining',
  'anthropic-ratelimit-requests-reset',
])

function comparable({ status, headers, text }: Answer) {
  const values = Object.entries(headers).map(([name, value]) => [name, CHANGING.has(name) || value])
  // Ids and times of an answer, and the id of the request in an error.
  const body = text.replaceAll(/"(?:id|request_id)":"[^"]*"|"created":\d+/g, '""')
  return { status, headers: Object.fromEntries(values), body }
}

interface Case {
  name: string
  options(route: ModelRoute): SendOptions
}

const valid = (route: ModelRoute, more?: Record<string, unknown>) =>
  JSON.stringify(route.request('Hello', more))

const CASES: readonly Case[] = [
  { name: 'a valid request', options: (route) => ({ body: valid(route) }) },
  { name: 'a chunked body', options: (route) => ({ body: valid(route), chunked: true }) },
  { name: 'no JSON', options: () => ({ body: '{"model":' }) },
  { name: 'no body', options: () => ({}) },
  { name: 'bytes that are not UTF-8', options: () => ({ body: Buffer.from('{"model":"\xff"}', 'latin1') }) },
  { name: 'an unknown model', options: (route) => ({ body: valid(route, { model: 'none' }) }) },
  {
    name: 'an unknown encoding',
    options: (route) => ({ body: valid(route), headers: { 'content-encoding': 'br' } }),
  },
  {
    name: 'an unknown origin',
    options: (route) => ({ body: valid(route), headers: { origin: 'https://evil.example' } }),
  },
  {
    name: 'an allowed origin',
    options: (route) => ({ body: valid(route), headers: { origin: 'https://chat.example' } }),
  },
]

const call = (route: ModelRoute, key: string, { headers, ...options }: SendOptions) =>
  send(gateway().baseUrl + route.path, {
    method: 'POST',
    headers: { ...bearer(key), ...headers },
    ...options,
  })

describe.each(MODEL_ROUTES)('$name', (route) => {
  it.each(CASES)('answers the first and the next call of a key alike: $name', async ({ options }) => {
    const { key } = await addKey(gateway(), tenant.base, tenant.userId)
    const first = await call(route, key, options(route))
    // Only a call that the ledger admits need have made the key known.
    expect((await call(route, key, { body: valid(route) })).status).toBe(200)
    const next = await call(route, key, options(route))
    expect(comparable(next)).toEqual(comparable(first))
    const entry = async (answer: Answer) => {
      const { status, action, model, record } = await auditEntryOf(
        gateway(),
        tenant,
        answer.headers['x-request-id'],
      )
      return { status, action, model, errorCode: record.errorCode }
    }
    expect(await entry(next)).toEqual(await entry(first))
  })

  it('refuses the next call of a key that was revoked', async () => {
    const { key, id } = await addKey(gateway(), tenant.base, tenant.userId)
    for (let made = 0; made < 3; made++) {
      expect((await call(route, key, { body: valid(route) })).status).toBe(200)
    }
    await administrator(gateway()).ask('DELETE', `${tenant.base}/keys/${id}`)
    expect((await call(route, key, { body: valid(route) })).status).toBe(401)
  })
})
