import { beforeAll, describe, expect, it } from 'vitest'
import { base62Value, newResponseId, placeOf } from '../../src/responses/model/response-ids.ts'
import { gateway } from '../harness/gateway.ts'
import { newestOpenAi, openAiUrl } from '../harness/sdk-clients.ts'
import { addKey, addMember, createTenant, type Tenant } from '../harness/tenant.ts'

// Responses of one organization share objects; a response is found by its owner only, whatever its id says.

const MODEL = 'scripted-chat'
let tenant: Tenant
let stranger: Tenant
beforeAll(async () => {
  ;[tenant, stranger] = await Promise.all([createTenant(gateway()), createTenant(gateway())])
})

const clientOf = (key: string) => new newestOpenAi({ apiKey: key, baseURL: openAiUrl(), maxRetries: 0 })
const create = (key: string, more: object = {}) =>
  clientOf(key).responses.create({ model: MODEL, input: 'hello', ...more })

/** Answers of each request for an id. */
async function statuses(key: string, id: string): Promise<number[]> {
  const { responses } = clientOf(key)
  const statusOf = (work: Promise<unknown>) =>
    work.then(
      () => 200,
      (error: { status: number }) => error.status,
    )
  return [
    await statusOf(responses.retrieve(id)),
    await statusOf(responses.retrieve(id, { stream: true })),
    await statusOf(responses.inputItems.list(id)),
    await statusOf(responses.cancel(id)),
    await statusOf(responses.delete(id)),
  ]
}

const NOT_FOUND = [404, 404, 404, 404, 404]

describe('an id that says where its response is', () => {
  it('is that of each new response, and many of them name one object', async () => {
    const responses = await Promise.all(Array.from({ length: 10 }, () => create(tenant.key)))
    for (const { id, status } of responses) {
      expect(id).toMatch(/^resp_[0-9A-Za-z]{37}$/)
      expect(status).toBe('completed')
    }
    expect(new Set(responses.map(({ id }) => id)).size).toBe(10)
    const places = new Set(responses.map(({ id }) => JSON.stringify(placeOf(id))))
    // Two where the ten minutes of an object end meanwhile.
    expect(places.size).toBeLessThanOrEqual(2)
    for (const { id, output_text: text } of responses) {
      expect(await clientOf(tenant.key).responses.retrieve(id)).toMatchObject({ id, output_text: text })
    }
  })

  it.each([true, false])('is of no use to others (stored: %s)', async (store) => {
    const { id } = await create(tenant.key, { store })
    const colleague = await addKey(gateway(), tenant.base, await addMember(gateway(), tenant.base))
    expect(await statuses(stranger.key, id)).toEqual(NOT_FOUND)
    expect(await statuses(colleague.key, id)).toEqual(NOT_FOUND)
    expect(await clientOf(tenant.key).responses.retrieve(id)).toMatchObject({ id, status: 'completed' })
  })

  it('cannot be made up: another place has another MAC', async () => {
    const { id } = await create(tenant.key)
    for (const at of [5, 6, 7, 8, 9]) {
      const other = id[at] === 'a' ? 'b' : 'a'
      expect(await statuses(tenant.key, id.slice(0, at) + other + id.slice(at + 1))).toEqual(NOT_FOUND)
    }
    const withoutPlace = `resp_${id.slice(10)}`
    expect(await statuses(tenant.key, withoutPlace)).toEqual(NOT_FOUND)
    const foreign = newResponseId(new Map([['x', new Uint8Array(32)]]), placeOf(id))
    expect(await statuses(tenant.key, foreign)).toEqual(NOT_FOUND)
  })

  it('is that of a large request too, in an object that it shares with few', async () => {
    const body = `${JSON.stringify({ model: MODEL, input: 'hello' })}${' '.repeat(1_200_000)}`
    const headers = { authorization: `Bearer ${tenant.key}`, 'content-type': 'application/json' }
    const answer = await fetch(`${gateway().baseUrl}/v1/responses`, { method: 'POST', headers, body })
    const { id, status } = (await answer.json()) as { id: string; status: string }
    expect(status).toBe('completed')
    expect(base62Value(placeOf(id)?.number ?? '')).toBeGreaterThanOrEqual(1922)
    expect(await clientOf(tenant.key).responses.retrieve(id)).toMatchObject({ id, status: 'completed' })
  })
})
