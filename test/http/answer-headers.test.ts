import { beforeAll, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { send } from '../harness/send.ts'
import { bearer, createTenant, type Tenant } from '../harness/tenant.ts'
import { MODEL_ROUTES, RESPONSES_ROUTE, type RequestRoute } from '../matrices/routes.ts'
import { createResponse } from './support/response-calls.ts'

let tenant: Tenant

beforeAll(async () => {
  tenant = await createTenant(gateway())
})

function call(route: RequestRoute, key: string, more: Record<string, unknown> = {}) {
  const body = JSON.stringify(route.request('Hello', more))
  return send(gateway().baseUrl + route.path, { method: 'POST', headers: bearer(key), body })
}

describe('streams', () => {
  it.each([...MODEL_ROUTES.filter(({ generates }) => generates), RESPONSES_ROUTE])(
    'of $path are not buffered by proxies',
    async (route) => {
      const { status, headers } = await call(route, tenant.key, { stream: true })
      expect(status).toBe(200)
      expect(headers['content-type']).toMatch(/^text\/event-stream/)
      expect(headers['cache-control']).toBe('no-cache, no-transform')
      expect(headers['x-accel-buffering']).toBe('no')
    },
  )

  it('of responses that are resumed are not buffered either', async () => {
    const { id } = await createResponse(tenant.key, {})
    const url = `${gateway().baseUrl}/v1/responses/${id}?stream=true`
    const { headers } = await send(url, { headers: bearer(tenant.key) })
    expect(headers['x-accel-buffering']).toBe('no')
  })
})

describe('openai-processing-ms', () => {
  it('is the time until the answer on responses, also of streams and errors', async () => {
    for (const more of [{}, { stream: true }, { model: 7 }]) {
      const startedAt = Date.now()
      const { headers } = await call(RESPONSES_ROUTE, tenant.key, more)
      expect(headers['openai-processing-ms']).toMatch(/^\d+$/)
      expect(Number(headers['openai-processing-ms'])).toBeLessThanOrEqual(Date.now() - startedAt + 1)
    }
  })
})
