import { randomInt } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import { scriptedAccount } from '../../scripts/local/model-upstream/vendors/vertex/scripted-account.ts'
import { gateway } from '../harness/gateway.ts'
import { PRICES } from '../harness/routed-model.ts'
import { failureOf, newestAnthropic, SCRIPTED_TEXT, textOf } from '../harness/sdk-clients.ts'
import { jsonOf } from '../harness/send.ts'
import { administrator, createTenant, type Tenant, uniqueName } from '../harness/tenant.ts'
import { seenRequests } from '../harness/upstream.ts'
import { recordOf } from './support/dlp.ts'
import { assembled, postTo, requestOf, SURFACES, type Surface } from './support/vendor-calls.ts'
import { createModel } from './support/vendor-kinds.ts'

// Tokens that calls share inside the runtime, where no call may wait for the I/O of another.

let tenant: Tenant
beforeAll(async () => {
  tenant = await createTenant(gateway())
})

/** A model on Vertex whose credential no other test has. @returns its id, and its exchanges so far. */
async function vertexModel(more: object = {}) {
  const { ask } = administrator(gateway())
  const id = uniqueName('vertex')
  const account = scriptedAccount(gateway().standIns.modelUpstream)
  // The same key in another text is another credential.
  const private_key = account.private_key.replaceAll('\n', '\\n') + '\\n'.repeat(randomInt(1, 3_000))
  const provider = await ask('POST', '/providers', {
    name: id,
    kind: 'vertex',
    base_url: `${gateway().standIns.modelUpstream}/vendors/vertex`,
    credential: { ...account, private_key, private_key_id: id, ...more },
  })
  await ask('PUT', `/models/${id}`, {
    owned_by: 'google',
    context_window: 100_000,
    max_output_tokens: 1_000,
    prices: PRICES,
    routes: [{ provider_id: provider.id, upstream_model: 'claude-scripted@20250929' }],
  })
  // An assertion begins with its header, which names the key.
  const header = Buffer.from(JSON.stringify({ alg: 'RS256', kid: id })).toString('base64url')
  return {
    id,
    provider: String(provider.id),
    exchanges: async () => (await seenRequests(gateway(), header)).length,
  }
}

const call = (model: string) =>
  new newestAnthropic({ apiKey: tenant.key, baseURL: gateway().baseUrl, maxRetries: 0 }).messages.create({
    model,
    max_tokens: 100,
    messages: [{ role: 'user', content: 'script:canned' }],
  })

describe.concurrent('a token', () => {
  it('is exchanged once for calls that begin together, and kept for later ones', async () => {
    const { id, exchanges } = await vertexModel()
    for (let round = 0; round < 3; round++) {
      const answers = await Promise.all(Array.from({ length: 12 }, () => call(id)))
      expect(answers.map(textOf)).toEqual(answers.map(() => SCRIPTED_TEXT))
      expect(await exchanges()).toBe(1)
    }
  })

  it('that is refused fails every call that waits for it, without an exchange of its own', async () => {
    const { id, exchanges } = await vertexModel({
      client_email: 'another@scripted-project.iam.gserviceaccount.com',
    })
    const errors = await Promise.all(Array.from({ length: 12 }, () => failureOf(call(id))))
    for (const error of errors) {
      expect([error.status, error.type]).toEqual([500, 'api_error'])
      expect(String(error.message)).toContain('refused the gateway')
    }
    expect(await exchanges()).toBeLessThanOrEqual(2)
  })

  it('that is refused is a fault of the gateway on every surface, and moves to the next route', async () => {
    const refused = await vertexModel({ client_email: 'another@scripted-project.iam.gserviceaccount.com' })
    const owner = await createTenant(gateway())
    const post = (surface: Surface, model: string, stream: boolean) =>
      postTo(surface, owner, requestOf(surface, model, 'script:canned', { stream }))
    for (const stream of [false, true]) {
      const chat = await post('chat', refused.id, stream)
      expect([chat.status, jsonOf(chat)]).toMatchObject([
        500,
        { error: { type: 'server_error', code: 'internal_error' } },
      ])
      expect(chat.headers['x-headgate-error-source']).toBeUndefined()
      const messages = await post('messages', refused.id, stream)
      expect([messages.status, jsonOf(messages)]).toMatchObject([500, { error: { type: 'api_error' } }])
      for (const { text } of [chat, messages]) expect(text).toContain('refused the gateway')
    }
    const { record } = await recordOf(owner, await post('chat', refused.id, false))
    expect(record).toMatchObject({ status: 500, errorCode: 'internal_error', cost: 0 })
    expect(record.attempts).toMatchObject([{ provider: refused.id, status: 401 }])
    const { ask } = administrator(gateway())
    expect(await ask('GET', `/providers/${refused.provider}`)).toMatchObject({
      health: 'refuses_gateway',
      refused_status: 401,
    })
    const working = await vertexModel()
    const model = await createModel([
      { provider_id: refused.provider, upstream_model: 'claude-scripted@20250929' },
      { provider_id: working.provider, upstream_model: 'claude-scripted@20250929' },
    ])
    for (const surface of SURFACES) {
      const answer = await post(surface, model, false)
      expect([surface, answer.status, assembled(surface, false, answer).text]).toEqual([
        surface,
        200,
        SCRIPTED_TEXT,
      ])
    }
  })
})
