import { gzipSync } from 'node:zlib'
import { expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { auditEntryOf } from '../harness/records.ts'
import { send } from '../harness/send.ts'
import { bearer, createTenant } from '../harness/tenant.ts'

const JSON_TYPE = { 'content-type': 'application/json' }
const LIMIT = 5

const BODIES: Array<[name: string, body: string | Buffer, headers: Record<string, string>]> = [
  ['that is not JSON', '{"model":', JSON_TYPE],
  ['that is missing', '', JSON_TYPE],
  ['without a model', '{"input":"Hello","messages":[]}', JSON_TYPE],
  ['that is not gzip', 'plain', { ...JSON_TYPE, 'content-encoding': 'gzip' }],
  ['that is not JSON in gzip', gzipSync('{"model":'), { ...JSON_TYPE, 'content-encoding': 'gzip' }],
  ['in an unknown encoding', 'plain', { ...JSON_TYPE, 'content-encoding': 'br' }],
]
const PATHS = ['/v1/chat/completions', '/v1/messages', '/v1/responses']

it.concurrent.each(PATHS.flatMap((path) => BODIES.map((row) => [path, ...row] as const)))(
  'a call of %s with a body %s counts against the limits of its key',
  async (path, _name, body, headers) => {
    const tenant = await createTenant(gateway(), { user: { rate_limit_per_minute: LIMIT } })
    const call = () =>
      send(gateway().baseUrl + path, {
        method: 'POST',
        headers: { ...bearer(tenant.key), ...headers },
        body,
      })
    const first = await call()
    expect(first.status).toBe(400)
    const entry = await auditEntryOf(gateway(), tenant, first.headers['x-request-id'])
    expect(entry).toMatchObject({ status: 400, record: { errorCode: 'invalid_body' } })
    const remaining =
      path === '/v1/messages' ? 'anthropic-ratelimit-requests-remaining' : 'x-ratelimit-remaining-requests'
    // A window can end in between.
    const statuses: number[] = []
    for (let count = 0; count < 2 * LIMIT; count++) statuses.push((await call()).status)
    expect(statuses).toContain(429)
    expect(first.headers[remaining]).toBe(String(LIMIT - 1))
  },
)
