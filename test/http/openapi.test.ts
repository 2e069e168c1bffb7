import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { DOCUMENTS, documentFile, documentText } from '../../scripts/generate-openapi.ts'
import { CLIENT_TYPES_FILE, clientTypes } from '../../scripts/openapi/client-types.ts'
import { managementDocument } from '../../scripts/openapi/management-document.ts'
import { gateway } from '../harness/gateway.ts'
import { send } from '../harness/send.ts'
import { administrator, createTenant } from '../harness/tenant.ts'

describe('the OpenAPI documents', () => {
  it.each(Object.entries(DOCUMENTS))('%s is what npm run generate:openapi writes', (path, document) => {
    expect(readFileSync(documentFile(path), 'utf8')).toBe(documentText(document()))
  })

  it('give the types of the client, which are committed', async () => {
    expect(readFileSync(CLIENT_TYPES_FILE, 'utf8')).toBe(await clientTypes(managementDocument()))
  }, 60_000)

  it('are static files with an ETag, that of the public API without a key', async () => {
    const answer = await send(`${gateway().baseUrl}/openapi.json`)
    expect(answer.status).toBe(200)
    expect(answer.headers['content-type']).toContain('application/json')
    expect(JSON.parse(answer.text)).toMatchObject({ openapi: '3.1.0' })
    const { etag } = answer.headers
    expect(etag).toMatch(/^"/)
    const again = await send(`${gateway().baseUrl}/openapi.json`, {
      headers: { 'if-none-match': String(etag) },
    })
    expect(again.status).toBe(304)
  })

  it('name every method that a path takes, as the header Allow does', async () => {
    const { paths } = DOCUMENTS['/openapi.json']() as { paths: Record<string, Record<string, unknown>> }
    // A route with a parameter, such as /v1/agents/{agentId}, serves these paths for other methods; nothing has such an id.
    for (const path of ['/v1/agents/runs', '/v1/agents/list', '/v1/responses/compact', '/v1/responses']) {
      const answer = await send(gateway().baseUrl + path, {
        method: 'PATCH',
        headers: { authorization: `Bearer ${gateway().keys.owner}` },
      })
      const taken = String(answer.headers.allow).split(', ')
      const described = Object.keys(paths[path] ?? {}).map((method) => method.toUpperCase())
      expect([path, taken.filter((method) => method !== 'HEAD')]).toEqual([path, described.sort()])
    }
  })

  it('limit what the gateway limits: the part of an e-mail address before the @, as RFC 5321 does', async () => {
    const { call } = administrator(gateway())
    const { base } = await createTenant(gateway(), { credits: 0, models: [] })
    const add = (local: string) =>
      call('POST', `${base}/users`, { email: `${local}@example.com`, name: 'User' })
    expect((await add('a'.repeat(64))).status).toBe(201)
    expect((await add('a'.repeat(65))).status).toBe(400)
  })

  it('has that of the management API for administrators only', async () => {
    const { call } = administrator(gateway())
    expect(JSON.parse((await call('GET', '/openapi.json')).text)).toMatchObject({ openapi: '3.1.0' })
    const without = await send(`${gateway().baseUrl}/api/openapi.json`)
    expect(without.status).toBe(401)
  })
})
