import { beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { checkResponseStream } from '../harness/conformance.ts'
import { gateway, upstreamControl } from '../harness/gateway.ts'
import { readResponseStream } from '../harness/response-stream-text.ts'
import { CHAT_MODEL, MESSAGES_MODEL } from '../harness/sdk-clients.ts'
import { administrator, bearer, createTenant, type Tenant, uniqueName } from '../harness/tenant.ts'
import { registerScript, seenRequest } from '../harness/upstream.ts'
import { addPolicy, codePolicy, someCode } from './support/dlp.ts'
import { ask, createResponse, expectJson, type Json, type ToldResponse } from './support/response-calls.ts'

let tenant: Tenant
let code: string
let response: ToldResponse

/** A new organization, and a response of its own that holds a new value. */
async function begin(): Promise<void> {
  tenant = await createTenant(gateway())
  code = someCode()
  // The local model repeats what it was told.
  response = await createResponse(tenant.key, {
    input: `The code is ${code}.`,
    instructions: `Keep ${code}.`,
  })
  expect(response.output_text).toContain(code)
}

const read = (path: string) => ask(tenant.key, 'GET', path)

/** Every way to read a response again. */
const READINGS: Array<[name: string, path: () => string]> = [
  ['the response', () => `/v1/responses/${response.id}`],
  ['its stream', () => `/v1/responses/${response.id}?stream=true`],
  ['the rest of its stream', () => `/v1/responses/${response.id}?stream=true&starting_after=4`],
  ['its input items', () => `/v1/responses/${response.id}/input_items`],
  ['the items of its conversation', () => `/v1/conversations/${response.conversation?.id}/items`],
  [
    'an item of its conversation',
    () => `/v1/conversations/${response.conversation?.id}/items/${response.output[0]?.id}`,
  ],
]

/** The rest of a stream may begin after the value. */
const expectReadable = async () => {
  for (const [name, path] of READINGS.filter(([name]) => name !== 'the rest of its stream'))
    expect((await read(path())).text, name).toContain(code)
}

describe.each(['redact', 'mask', 'block'])('under a policy made later (%s)', (action) => {
  beforeAll(async () => {
    await begin()
    await expectReadable()
    await addPolicy(tenant, codePolicy(action))
  })

  it.each(READINGS)('%s is read', async (_, path) => {
    const answer = await read(path())
    expect(answer.status).toBe(200)
    expect(answer.text).not.toContain(code)
    expect(answer.text).not.toContain(code.slice(3))
  })
})

describe('under the policies of the model that made it', () => {
  beforeAll(async () => {
    await begin()
    await addPolicy(tenant, codePolicy('redact', { scope: { model_ids: [MESSAGES_MODEL] } }))
    await expectReadable()
    await addPolicy(tenant, codePolicy('redact', { scope: { model_ids: [CHAT_MODEL] } }))
  })

  it.each(READINGS)('%s is read', async (_, path) => {
    expect((await read(path())).text).not.toContain(code)
  })
})

describe('a response that holds a value', () => {
  beforeEach(begin)

  it('a stream whose policies have changed is built anew, without its deltas', async () => {
    await addPolicy(tenant, codePolicy('redact'))
    const { text } = await read(`/v1/responses/${response.id}?stream=true&starting_after=4`)
    const events = readResponseStream(text)
    expect(checkResponseStream(events, { after: 4, condensed: true })).toEqual([])
    const told = expectJson<Json>(await read(`/v1/responses/${response.id}`))
    expect(events.at(-1)?.data.response).toEqual(told)
  })

  it('an unchanged policy leaves the stream as it was', async () => {
    await addPolicy(tenant, codePolicy('redact'))
    const made = await createResponse(tenant.key, { input: 'Hello' })
    const { text } = await read(`/v1/responses/${made.id}?stream=true`)
    const events = readResponseStream(text)
    expect(checkResponseStream(events)).toEqual([])
    expect(events.some(({ event }) => event === 'response.output_text.delta')).toBe(true)
  })

  describe('policies that change while a response runs', () => {
    let signal: string
    let script: string

    const chunk = (delta: Json, finish: string | null = null) =>
      `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`
    const release = () => upstreamControl(gateway()).release(signal)
    const revokeKey = () => administrator(gateway()).ask('DELETE', `${tenant.base}/keys/${tenant.keyId}`)

    beforeEach(async () => {
      signal = uniqueName('signal')
      script = await registerScript(gateway(), [
        { sse: [chunk({ role: 'assistant', content: `It is ${code}. ` })] },
        { waitForSignal: signal },
        { sse: [chunk({ content: `Again: ${code}.` }), chunk({}, 'stop'), 'data: [DONE]\n\n'] },
      ])
    })

    it('apply to later readers of its events, who get them when it has ended', async () => {
      const begun = await createResponse(tenant.key, { input: script, background: true })
      const path = `/v1/responses/${begun.id}`
      await vi.waitFor(async () => expect((await read(path)).text).toContain(code), 10_000)
      await addPolicy(tenant, codePolicy('redact'))
      const stream = await fetch(`${gateway().baseUrl}${path}?stream=true&starting_after=2`, {
        headers: bearer(tenant.key),
      })
      expect(stream.headers.get('content-type')).toBe('text/event-stream')
      expect((await read(path)).text).not.toContain(code)
      await release()
      const text = await stream.text()
      expect(text).not.toContain(code)
      const events = readResponseStream(text)
      expect(checkResponseStream(events, { after: 2, condensed: true })).toEqual([])
      expect(events.at(-1)?.data.response).toEqual(expectJson<Json>(await read(path)))
    })

    it.each([false, true])(
      'hold for the answer to its creator (whose key is revoked: %s)',
      async (revoked) => {
        const made = createResponse(tenant.key, { input: script })
        await seenRequest(gateway(), script)
        await addPolicy(tenant, codePolicy('redact'))
        if (revoked) await revokeKey()
        await release()
        const told = await made
        expect(told.status).toBe('completed')
        expect(JSON.stringify(told)).not.toContain(code)
      },
    )
  })
})
