import { beforeAll, describe, expect, it } from 'vitest'
import { createApiKey } from '../../src/identity/api-key.ts'
import { gateway } from '../harness/gateway.ts'
import { auditEntries, auditEntryOf } from '../harness/records.ts'
import type { Answer } from '../harness/send.ts'
import { administrator, createTenant, type Tenant } from '../harness/tenant.ts'
import { ask } from './support/response-calls.ts'

/** A whole key that somebody pastes into the wrong place. */
const { key: PASTED } = createApiKey()
const SECRET = PASTED.slice(-49)

let tenant: Tenant
beforeAll(async () => {
  tenant = await createTenant(gateway())
})

const chat = { model: 'gpt-5.1', messages: [{ role: 'user', content: 'x' }] }
const post = (path: string, body: object | string): Promise<Answer> =>
  ask(tenant.key, 'POST', path, { body: typeof body === 'string' ? body : JSON.stringify(body) })
const respond = (more: object) => post('/v1/responses', { model: 'gpt-5.1', input: 'x', ...more })
const administer = (method: string, path: string, body?: unknown) =>
  administrator(gateway()).call(method, path, body)

const places: Array<[where: string, status: number, call: () => Promise<Answer>]> = [
  ['a member given twice', 400, () => post('/v1/chat/completions', `{"${PASTED}":1,"${PASTED}":2}`)],
  ['an unknown model', 400, () => post('/v1/chat/completions', { ...chat, model: PASTED })],
  [
    'an unknown model of messages',
    404,
    () => post('/v1/messages', { ...chat, max_tokens: 9, model: PASTED }),
  ],
  ['previous_response_id', 404, () => respond({ previous_response_id: PASTED })],
  ['conversation', 404, () => respond({ conversation: PASTED })],
  ['an item reference', 404, () => respond({ input: [{ type: 'item_reference', id: PASTED }] })],
  ['the type of an item', 400, () => respond({ input: [{ type: PASTED }] })],
  [
    'call_id',
    400,
    () => respond({ input: [{ type: 'function_call_output', call_id: PASTED, output: 'x' }] }),
  ],
  ['a path', 404, () => ask(tenant.key, 'GET', `/v1/responses/${PASTED}`)],
  ['an encoded path', 404, () => ask(tenant.key, 'GET', `/v1/${PASTED.replace('_', '%255F')}`)],
  ['a member of the management API', 400, () => administer('POST', '/organizations', { [PASTED]: 1 })],
  ['a model id of the management API', 404, () => administer('GET', `/models/${PASTED}`)],
  ['an organization of the management API', 404, () => administer('GET', `/organizations/${PASTED}`)],
]

describe('a whole key in the wrong place is not told back', () => {
  it.each(places)('%s', async (_, status, call) => {
    const answer = await call()
    expect(answer.text).not.toContain(SECRET)
    expect(answer.status, answer.text).toBe(status)
    expect(JSON.parse(answer.text)).toBeTypeOf('object')
  })
})

describe('the audit record of a path with a key in it', () => {
  it.each(['_', '%5F', '%255F', '%25255F', '%255f'])(
    'does not hold it, written with %s',
    async (underscore) => {
      const own = await createTenant(gateway())
      const answer = await ask(own.key, 'GET', `/v1/responses/${PASTED.replaceAll('_', underscore)}`)
      expect(answer.status).toBe(404)
      expect(answer.text).not.toContain(SECRET)
      const { action } = await auditEntryOf(gateway(), own, answer.headers['x-request-id'])
      expect(action).toBe('GET /v1/responses/hg_[redacted]')
      expect(JSON.stringify(await auditEntries(gateway(), own))).not.toContain(SECRET)
    },
  )
})
