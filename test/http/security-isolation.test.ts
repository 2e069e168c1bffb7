import { beforeAll, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { callEntries } from '../harness/records.ts'
import { jsonOf } from '../harness/send.ts'
import { addKey, addMember, administrator, createTenant, type Tenant } from '../harness/tenant.ts'
import { ask, createResponse, listItems, type ToldResponse } from './support/response-calls.ts'

let tenant: Tenant
let response: ToldResponse
let input: string
let output: string
/** Everybody who must not see what the tenant's user made, by name. */
let strangers: Record<string, string>

beforeAll(async () => {
  tenant = await createTenant(gateway())
  response = await createResponse(tenant.key, { store: true })
  input = (await listItems(tenant.key, `/v1/responses/${response.id}/input_items`)).data[0]?.id ?? ''
  output = response.output[0]?.id ?? ''
  const colleague = await addMember(gateway(), tenant.base, { role: 'owner' })
  const other = await createTenant(gateway())
  strangers = {
    'an owner of the same organization': (await addKey(gateway(), tenant.base, colleague)).key,
    'another organization': other.key,
  }
})

/** Each place of an API path or body that takes an id, as method, path and body. */
function asked(): Array<[method: string, path: string, body?: object]> {
  const { id } = response
  const conversation = response.conversation?.id
  const create = (body: object): [string, string, object] => [
    'POST',
    '/v1/responses',
    { model: response.model, ...body },
  ]
  return [
    ['GET', `/v1/responses/${id}`],
    ['GET', `/v1/responses/${id}?stream=true`],
    ['GET', `/v1/responses/${id}?stream=true&starting_after=2`],
    ['GET', `/v1/responses/${id}/input_items?after=${input}`],
    ['POST', `/v1/responses/${id}/cancel`],
    ['GET', `/v1/conversations/${conversation}/items`],
    ['GET', `/v1/conversations/${conversation}/items?after=${input}`],
    ['GET', `/v1/conversations/${conversation}/items/${output}`],
    create({ input: 'x', previous_response_id: id }),
    create({ input: 'x', conversation }),
    create({ input: 'x', conversation: { id: conversation } }),
    create({ input: [{ type: 'item_reference', id: output }] }),
    create({ input: [{ id: input }, { role: 'user', content: 'x' }] }),
    ['DELETE', `/v1/responses/${id}`],
  ]
}

describe('what a user made', () => {
  it.each(['an owner of the same organization', 'another organization'])(
    'does not exist for %s',
    async (who) => {
      for (const [method, path, body] of asked()) {
        const answer = await ask(strangers[who] ?? '', method, path, { body: JSON.stringify(body) })
        expect(answer.status, `${method} ${path} ${JSON.stringify(body)}`).toBe(404)
        expect(jsonOf(answer)).toMatchObject({ error: { code: 'not_found' } })
      }
    },
  )

  it('is there for itself, at every place that was tried', async () => {
    for (const [method, path, body] of asked()) {
      const answer = await ask(tenant.key, method, path, { body: JSON.stringify(body) })
      expect(answer.status, `${method} ${path} ${answer.text.slice(0, 200)}`).toBe(200)
    }
  })
})

describe('a key that was revoked', () => {
  it('opens nothing any more, whatever it made before', async () => {
    const mine = await createTenant(gateway())
    const made = await createResponse(mine.key, { store: true })
    expect((await ask(mine.key, 'GET', `/v1/responses/${made.id}?stream=true`)).status).toBe(200)
    await administrator(gateway()).ask('DELETE', `${mine.base}/keys/${mine.keyId}`)
    const paths = [`${made.id}`, `${made.id}?stream=true`, `${made.id}/input_items`]
    const places: Array<[string, string]> = [
      ...paths.map((path): [string, string] => ['GET', `/v1/responses/${path}`]),
      ['POST', `/v1/responses/${made.id}/cancel`],
      ['DELETE', `/v1/responses/${made.id}`],
      ['GET', `/v1/conversations/${made.conversation?.id}/items`],
      ['GET', '/v1/models'],
      ['POST', '/v1/chat/completions'],
      ['POST', '/v1/completions'],
      ['POST', '/v1/messages'],
      ['POST', '/v1/messages/count_tokens'],
      ['POST', '/v1/responses'],
    ]
    for (const [method, path] of places) {
      const body = method === 'POST' ? '{}' : ''
      expect((await ask(mine.key, method, path, { body })).status, `${method} ${path}`).toBe(401)
    }
  })
})

describe('texts that Postgres cannot hold', () => {
  it('keep no record from being written, wherever a caller puts them', async () => {
    const mine = await createTenant(gateway())
    const paths = ['/v1/responses/%00', '/v1/conversations/%00/items/%ED%A0%80', '/v1/responses/a%0D%0Ab']
    for (const path of paths) expect((await ask(mine.key, 'GET', path)).status, path).toBe(404)
    for (const model of ['a\\u0000b', '\\ud800', `${'m'.repeat(5_000)}\\udfff`]) {
      const body = `{"model":"${model}","messages":[{"role":"user","content":"x"}],"input":"x"}`
      expect((await ask(mine.key, 'POST', '/v1/chat/completions', { body })).status).toBe(400)
      expect((await ask(mine.key, 'POST', '/v1/responses', { body })).status).toBe(400)
    }
    await callEntries(gateway(), mine, 9)
    const verified = await administrator(gateway()).ask('GET', `${mine.base}/audit/verify`)
    expect(verified.ok).toBe(true)
  })
})
