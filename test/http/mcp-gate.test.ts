import { beforeAll, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { createMcpTenant, ERAS, entitle, MCP_ACCEPT, postMcp, sendMcp } from '../harness/mcp.ts'
import { auditEntryOf } from '../harness/records.ts'
import { type Answer, jsonOf, send } from '../harness/send.ts'
import { addKey, addMember, administrator, createTenant, type Tenant } from '../harness/tenant.ts'
import { refusalBody } from '../matrices/envelopes.ts'

let tenant: Tenant

beforeAll(async () => {
  tenant = await createMcpTenant(gateway())
})

const PING = JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'ping' })

function expectRefusal(answer: Answer, status: 401 | 403 | 406 | 413 | 415 | 429, message?: RegExp) {
  expect(answer.status).toBe(status)
  expect(jsonOf(answer)).toEqual(refusalBody('mcp', { status, ...(message && { message }) }))
  expect(answer.headers['content-type']).toMatch(/^application\/json/)
}

/** Every request has one record, refused ones too. */
async function expectRecord(owner: Tenant, answer: Answer, errorCode: string | null): Promise<void> {
  const entry = await auditEntryOf(gateway(), owner, answer.headers['x-request-id'])
  expect(entry).toMatchObject({ surface: 'mcp', action: 'POST /v1/mcp', status: answer.status })
  expect(entry.record.errorCode ?? null).toBe(errorCode)
}

describe('the gate of the MCP endpoint', () => {
  it('answers a ping', async () => {
    const answer = await postMcp(gateway(), tenant.key, PING)
    expect(answer.status).toBe(200)
    expect(jsonOf(answer)).toEqual({ jsonrpc: '2.0', id: 7, result: {} })
    await expectRecord(tenant, answer, null)
  })

  it('names its metadata to a caller without a key, and to no other', async () => {
    const url = `${gateway().baseUrl}/v1/mcp`
    const answer = await send(url, { method: 'POST', body: PING })
    expectRefusal(answer, 401)
    expect(answer.headers['www-authenticate']).toBe(
      `Bearer resource_metadata="${gateway().baseUrl}/.well-known/oauth-protected-resource"`,
    )
  })

  it('refuses a user without the entitlement, without a challenge', async () => {
    const plain = await createTenant(gateway())
    const answer = await postMcp(gateway(), plain.key, PING)
    expectRefusal(answer, 403, /Personal API Key Access/)
    expect(answer.headers['www-authenticate']).toBeUndefined()
    await expectRecord(plain, answer, 'entitlement_missing')
    await entitle(gateway(), plain.base, plain.userId)
    expect((await postMcp(gateway(), plain.key, PING)).status).toBe(200)
  })

  it('refuses a user who has lost the entitlement, from the next request on', async () => {
    const { ask } = administrator(gateway())
    for (const [method, params] of [
      ['ping', {}],
      ['tools/call', { name: 'platform_whoami' }],
    ] as const) {
      const owner = await createMcpTenant(gateway())
      expect((await sendMcp(gateway(), owner.key, method, params)).status).toBe(200)
      await ask('DELETE', `${owner.base}/users/${owner.userId}/entitlements/personal_api_key_access`)
      const answer = await sendMcp(gateway(), owner.key, method, params)
      expectRefusal(answer, 403, /Personal API Key Access/)
      await expectRecord(owner, answer, 'entitlement_missing')
    }
  })

  it('refuses a key without the scope', async () => {
    const { key } = await addKey(gateway(), tenant.base, tenant.userId, { scopes: ['models', 'agents'] })
    const answer = await postMcp(gateway(), key, PING)
    expectRefusal(answer, 403, /scope/)
    await expectRecord(tenant, answer, 'scope_missing')
  })

  it('refuses pages of another origin', async () => {
    for (const origin of ['https://evil.example', 'null', 'http://127.0.0.1:1']) {
      const answer = await postMcp(gateway(), tenant.key, PING, { headers: { origin } })
      expectRefusal(answer, 403, /origin/)
    }
    const own = await postMcp(gateway(), tenant.key, PING, { headers: { origin: gateway().baseUrl } })
    expect(own.status).toBe(200)
  })

  it.each([
    'application/json',
    'text/event-stream',
    '*/*',
    'application/*, text/*',
    'application/jsonx, text/event-stream',
    'application/json, text/event-stream;q=0',
    'application/json ; q=0.000, text/event-stream',
    'text/event-stream;v="1, application/json";Q=0, application/json, text/*',
    undefined,
  ])('answers 406 to Accept %s', async (accept) => {
    for (const era of ERAS) {
      const answer = await sendMcp(gateway(), tenant.key, 'tools/list', {}, { era, headers: { accept } })
      expectRefusal(answer, 406, /Accept/)
    }
  })

  it.each([
    MCP_ACCEPT,
    'text/event-stream;q=0.5,  application/JSON; charset=utf-8',
    `*/*, ${MCP_ACCEPT}`,
    'application/json;q=0.001, text/event-stream;q=1, text/html;q=0',
  ])('accepts Accept %s', async (accept) => {
    expect((await postMcp(gateway(), tenant.key, PING, { headers: { accept } })).status).toBe(200)
  })

  it('answers 415 to another content type', async () => {
    for (const type of ['text/plain', 'application/json-rpc', undefined]) {
      const answer = await postMcp(gateway(), tenant.key, PING, { headers: { 'content-type': type } })
      expectRefusal(answer, 415, /Content-Type/)
    }
    const headers = { 'content-type': 'application/json; charset=utf-8' }
    expect((await postMcp(gateway(), tenant.key, PING, { headers })).status).toBe(200)
  })

  it('limits calls a minute before it looks at the request', async () => {
    const user = await addMember(gateway(), tenant.base, { rate_limit_per_minute: 2 })
    await entitle(gateway(), tenant.base, user)
    const { key } = await addKey(gateway(), tenant.base, user)
    const answers = []
    for (let calls = 0; calls < 6; calls++) {
      answers.push(await postMcp(gateway(), key, PING, { headers: { accept: '*/*' } }))
    }
    const limited = answers.at(-1) as Answer
    expectRefusal(limited, 429, /rate limit/)
    expect(Number(limited.headers['retry-after'])).toBeGreaterThanOrEqual(1)
    expect(answers.map(({ status }) => status)).toContain(406)
  })

  it('answers 413 to a body over 50 MB', async () => {
    const answer = await send(`${gateway().baseUrl}/v1/mcp`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${tenant.key}`,
        'content-type': 'application/json',
        accept: MCP_ACCEPT,
      },
      body: Buffer.alloc(52_428_801, 0x20),
    })
    expectRefusal(answer, 413)
  })

  it.each(['GET', 'DELETE', 'PUT', 'PATCH'])('does not serve %s', async (method) => {
    const answer = await send(`${gateway().baseUrl}/v1/mcp`, {
      method,
      headers: { authorization: `Bearer ${tenant.key}`, accept: MCP_ACCEPT },
    })
    expect(answer.status).toBe(404)
    expect(jsonOf(answer)).toEqual(refusalBody('mcp', { status: 404 }))
  })
})

describe('well-known documents', () => {
  it.each(['/.well-known/oauth-protected-resource', '/.well-known/oauth-protected-resource/v1/mcp'])(
    '%s describes the endpoint to everybody',
    async (path) => {
      const answer = await send(gateway().baseUrl + path)
      expect(answer.status).toBe(200)
      expect(jsonOf(answer)).toEqual({
        resource: `${gateway().baseUrl}/v1/mcp`,
        bearer_methods_supported: ['header'],
        authorization_servers: [expect.stringMatching(/^https?:/)],
      })
    },
  )

  it.each([
    '/.well-known/oauth-authorization-server',
    '/.well-known/oauth-authorization-server/v1/mcp',
    '/.well-known/openid-configuration',
    '/.well-known/oauth-protected-resource/v1/other',
    '/.well-known/',
  ])('%s is plain JSON 404', async (path) => {
    const answer = await send(gateway().baseUrl + path)
    expect(answer.status).toBe(404)
    expect(jsonOf(answer)).toEqual(refusalBody('open', { status: 404, code: 'not_found' }))
  })
})
