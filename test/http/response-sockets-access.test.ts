import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { auditEntryOf, callEntries, settledCredits } from '../harness/records.ts'
import { openResponseSocket, refusedUpgrade, type SocketEvent } from '../harness/response-socket.ts'
import { send } from '../harness/send.ts'
import { type StartedWorker, startWorker } from '../harness/start-worker.ts'
import { addKey, addMember, administrator, createTenant, type Tenant } from '../harness/tenant.ts'
import { marker, registerScript, seenRequest } from '../harness/upstream.ts'
import { codePolicy, governedTenant, someCode, tracesOf } from './support/dlp.ts'
import { say } from './support/dlp-answers.ts'
import { turnsScript } from './support/response-streams.ts'

const MODEL = 'scripted-chat'
const HELLO = { model: MODEL, input: 'Hello' }
const requestIdOf = (event: SocketEvent | undefined) =>
  (event?.headers as Record<string, string> | undefined)?.['x-request-id']

/** For what changes nothing of its owner. */
let tenant: Tenant
beforeAll(async () => {
  tenant = await createTenant(gateway())
})

describe.concurrent('the upgrade', () => {
  it('is refused over HTTP without a valid key, and recorded', async () => {
    const tenant = await createTenant(gateway())
    await administrator(gateway()).ask('DELETE', `${tenant.base}/keys/${tenant.keyId}`)
    expect((await refusedUpgrade(gateway(), {})).status).toBe(401)
    const answer = await refusedUpgrade(gateway(), { authorization: `Bearer ${tenant.key}` })
    expect(answer.status).toBe(401)
    expect(JSON.parse(answer.text)).toEqual({ error: 'Unauthorized' })
    const entry = await auditEntryOf(gateway(), tenant, answer.headers['x-request-id'])
    expect(entry).toMatchObject({ action: 'GET /v1/responses', status: 401 })
  })

  it('is refused on the host of models', async () => {
    const answer = await refusedUpgrade(
      { baseUrl: gateway().llmUrl },
      { authorization: `Bearer ${tenant.key}` },
    )
    expect(answer.status).toBe(404)
  })

  it('is refused for a key without the scope of models', async () => {
    const tenant = await createTenant(gateway(), { key: { scopes: ['mcp'] } })
    const answer = await refusedUpgrade(gateway(), { authorization: `Bearer ${tenant.key}` })
    expect(answer.status).toBe(403)
  })

  it('counts against the limits, and is refused with Retry-After', async () => {
    const tenant = await createTenant(gateway(), { user: { rate_limit_per_minute: 1 } })
    const socket = await openResponseSocket(gateway(), tenant.key)
    const answer = await refusedUpgrade(gateway(), { authorization: `Bearer ${tenant.key}` })
    expect(answer.status).toBe(429)
    expect(Number(answer.headers['retry-after'])).toBeGreaterThanOrEqual(1)
    // Each message is refused too; the connection stays open.
    const [event] = await socket.create(HELLO)
    expect(event).toMatchObject({
      type: 'error',
      status: 429,
      error: { code: 'rate_limit_exceeded' },
      headers: { 'retry-after': expect.stringMatching(/^[1-9]/), 'x-headgate-limit': 'user' },
    })
    for (const message of ['{}', new Uint8Array([1])]) {
      socket.send(message)
      expect(await socket.next()).toMatchObject({ status: 429 })
    }
    socket.close()
  })

  it('needs the header, with every method that reads', async () => {
    const headers = { authorization: `Bearer ${tenant.key}` }
    for (const method of ['GET', 'HEAD']) {
      const answer = await send(`${gateway().baseUrl}/v1/responses`, { method, headers })
      expect(answer.status).toBe(404)
      expect(answer.headers.allow).toBe('POST')
      if (method === 'GET') {
        const { error } = JSON.parse(answer.text)
        expect(error).toMatchObject({ type: 'invalid_request_error', code: 'not_found' })
        expect(error.message).toContain('`Upgrade: websocket`')
      }
    }
  })
})

describe.concurrent('a message', () => {
  it('is a call of its own, with the record and the charge of one over HTTP', async () => {
    const tenant = await createTenant(gateway())
    const before = (await settledCredits(gateway(), tenant)).balance
    const socket = await openResponseSocket(gateway(), tenant.key)
    await socket.create(HELLO)
    const [refused] = await socket.create({ model: 'no-such-model', input: 'x' })
    socket.close()
    const entries = await callEntries(gateway(), tenant, 3)
    expect(entries.toReversed()).toMatchObject([
      { action: 'GET /v1/responses', status: 101, user_id: tenant.userId, key_id: tenant.keyId },
      { action: 'WEBSOCKET /v1/responses', status: 200, model: MODEL, key_id: tenant.keyId },
      { action: 'WEBSOCKET /v1/responses', status: 400, request_id: requestIdOf(refused) },
    ])
    const spent = entries.reduce((sum, { credits_settled: settled }) => sum + settled, 0)
    expect(spent).toBeGreaterThan(0)
    expect((await settledCredits(gateway(), tenant)).balance).toBe(before - spent)
  })

  it('that is not understood is recorded too', async () => {
    const socket = await openResponseSocket(gateway(), tenant.key)
    socket.send('{')
    const event = await socket.next()
    socket.close()
    const entry = await auditEntryOf(gateway(), tenant, requestIdOf(event))
    expect(entry).toMatchObject({ action: 'WEBSOCKET /v1/responses', status: 400 })
  })

  it('is refused for a model without a grant, and without credits', async () => {
    const ungranted = await createTenant(gateway(), { models: [] })
    const poor = await createTenant(gateway(), { credits: 0 })
    for (const [tenant, expected] of [
      [ungranted, { status: 403, error: { code: 'model_access_denied' } }],
      [poor, { status: 429, headers: { 'x-headgate-limit': 'credits', 'x-should-retry': 'false' } }],
    ] as const) {
      const socket = await openResponseSocket(gateway(), tenant.key)
      const [event] = await socket.create(HELLO)
      expect(event).toMatchObject(expected)
      socket.close()
    }
  })

  it('of a revoked key is refused, and the connection closed', async () => {
    const tenant = await createTenant(gateway())
    const socket = await openResponseSocket(gateway(), tenant.key)
    await socket.create(HELLO)
    await administrator(gateway()).ask('DELETE', `${tenant.base}/keys/${tenant.keyId}`)
    const [event] = await socket.create(HELLO)
    expect(event).toMatchObject({ type: 'error', status: 401, error: { code: 'key_revoked' } })
    expect(await socket.closed).toEqual({ code: 1008, reason: 'The API key was revoked.' })
    const entry = await auditEntryOf(gateway(), tenant, requestIdOf(event))
    expect(entry).toMatchObject({ action: 'WEBSOCKET /v1/responses', status: 401 })
  })

  it('never repeats a key that was pasted into it', async () => {
    const socket = await openResponseSocket(gateway(), tenant.key)
    const [event] = await socket.create({ ...HELLO, previous_response_id: tenant.key })
    expect(event?.type).toBe('error')
    expect(JSON.stringify(event)).not.toContain(tenant.key.slice(-49))
    socket.close()
  })

  it('is under the policies of its organization, also where it continues what is not stored', async () => {
    const tenant = await governedTenant(codePolicy('mask'))
    const socket = await openResponseSocket(gateway(), tenant.key)
    const [asked, answered, text] = [someCode(), someCode(), marker()]
    const script = await turnsScript('chat', [[say(`It is ${answered}.`)]])
    const first = await socket.create({ model: MODEL, input: `${script} ${asked}`, store: false })
    const told = JSON.stringify(first)
    for (const trace of tracesOf(answered)) expect(told).not.toContain(trace)
    const previous = first.at(-1)?.response?.id
    const second = await socket.create({
      model: MODEL,
      input: text,
      store: false,
      previous_response_id: previous,
    })
    expect(second.at(-1)?.type).toBe('response.completed')
    const { body } = await seenRequest(gateway(), text)
    for (const trace of [...tracesOf(asked), ...tracesOf(answered)]) expect(body).not.toContain(trace)
    socket.close()
  })

  it('is refused where a policy blocks it', async () => {
    const tenant = await governedTenant(codePolicy('block'))
    const socket = await openResponseSocket(gateway(), tenant.key)
    const [event] = await socket.create({ model: MODEL, input: someCode() })
    expect(event).toMatchObject({ type: 'error', status: 400, error: { code: 'dlp_blocked' } })
    socket.close()
  })

  it('of another user cannot continue a response', async () => {
    const other = await addKey(gateway(), tenant.base, await addMember(gateway(), tenant.base))
    const [mine, theirs] = await Promise.all(
      [tenant.key, other.key].map((key) => openResponseSocket(gateway(), key)),
    )
    const done = await mine?.create(HELLO)
    const previous = done?.at(-1)?.response?.id
    const [event] = (await theirs?.create({ ...HELLO, previous_response_id: previous })) ?? []
    expect(event).toMatchObject({ status: 400, error: { code: 'previous_response_not_found' } })
    mine?.close()
    theirs?.close()
  })
})

describe('the connections of a user', () => {
  const AGE_LIMIT = 1_500
  let address: StartedWorker
  beforeAll(async () => {
    address = await startWorker({ SOCKET_USER_LIMIT: '2', SOCKET_TIME_LIMIT_MS: String(AGE_LIMIT) })
  }, 60_000)
  afterAll(() => address?.stop())

  it('are limited in number', async () => {
    const tenant = await createTenant(address)
    const [first] = await Promise.all([1, 2].map(() => openResponseSocket(address, tenant.key)))
    const authorization = `Bearer ${tenant.key}`
    const refused = await refusedUpgrade(address, { authorization })
    expect(refused.status).toBe(429)
    expect(Number(refused.headers['retry-after'])).toBeGreaterThanOrEqual(1)
    const entry = await auditEntryOf(address, tenant, refused.headers['x-request-id'])
    expect(entry).toMatchObject({ action: 'GET /v1/responses', status: 429 })
    const other = await addKey(address, tenant.base, await addMember(address, tenant.base))
    const theirs = await openResponseSocket(address, other.key)
    theirs.close()
    first?.close()
    await first?.closed
    const next = await openResponseSocket(address, tenant.key)
    next.close()
  })

  it('end at their age limit, also while a response is created', async () => {
    const tenant = await createTenant(address)
    const script = await registerScript(address, [{ waitForSignal: marker() }, { end: true }])
    for (const message of [null, { type: 'response.create', model: MODEL, input: script }]) {
      const socket = await openResponseSocket(address, tenant.key)
      if (message) socket.send(message)
      let event = await socket.next()
      while (event.type !== 'error') event = await socket.next()
      expect(event).toMatchObject({ status: 400, error: { code: 'websocket_connection_limit_reached' } })
      // The runtime keeps the TCP connection of an idle socket for another ten seconds.
      if (message) expect((await socket.closed).code).toBe(1001)
    }
  })
})
