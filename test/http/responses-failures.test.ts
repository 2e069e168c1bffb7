import { beforeAll, describe, expect, it, vi } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { auditEntryOf, settledCredits } from '../harness/records.ts'
import { createTenant, type Tenant } from '../harness/tenant.ts'
import { ask, expectJson, type Json, listItems, type ToldResponse } from './support/response-calls.ts'
import { CORNER_WAYS, postResponse, RESPONSE_WAYS, respond } from './support/response-streams.ts'

let tenant: Tenant

beforeAll(async () => {
  tenant = await createTenant(gateway())
})

/** Behaviour of the upstream, the error on chat and on messages, and whether text was sent before. */
const REFUSED: Array<[script: string, code: string, message: RegExp]> = [
  ['error-400', 'unsupported_value|invalid_prompt', /temperature/],
  ['error-401-echo', 'provider_refused_gateway', /Your API key is not the cause/],
  ['error-429', 'rate_limit_exceeded', /./],
  ['error-500', 'server_error', /./],
  ['error-529', 'server_error', /./],
  ['error-html-502', 'server_error', /502/],
]
const CUT: Array<[script: string, text: boolean]> = [
  ['empty-stream', false],
  ['empty-body', false],
  ['not-json', false],
  ['first-event-error', false],
  ['mid-stream-error', true],
  ['mid-stream-cut', true],
  ['mid-stream-end', true],
]
const SOME = new Set(['error-500', 'empty-stream', 'mid-stream-cut'])

describe.each(RESPONSE_WAYS)('an upstream that fails (%s)', (name, { model, stream }) => {
  // A failure is read by protocol and rendered by form: two ways have every failure, the others one of each kind.
  const isCorner = CORNER_WAYS.some(([corner]) => corner === name)
  const some = <Case extends [string, ...unknown[]]>(cases: Case[]) =>
    isCorner ? cases : cases.filter(([script]) => SOME.has(script))
  const call = (body: Json) => respond(tenant.key, { model, stream, ...body })
  const inBackground = async (input: string) => {
    const told = await call({ input, background: true })
    if (stream) return told
    const path = `/v1/responses/${told.response.id}`
    const response = await vi.waitFor(async () => {
      const current = expectJson<ToldResponse>(await ask(tenant.key, 'GET', path))
      expect(current.status).not.toBe('in_progress')
      return current
    })
    return { ...told, response }
  }

  it.each(some(REFUSED))('%s fails a response in the background', async (script, code, message) => {
    const { response, events, answer } = await inBackground(`script:${script}`)
    expect(response).toMatchObject({
      status: 'failed',
      error: { code: expect.stringMatching(`^(${code})$`), message: expect.stringMatching(message) },
      output: [],
      incomplete_details: null,
    })
    expect(answer.text).not.toContain('scripted-upstream')
    if (stream) {
      const [error, last] = events.slice(-2)
      const { message: told } = response.error as { message: string }
      const fixed = { type: 'server_error', code: 'stream_error' }
      expect(error?.data).toMatchObject({ error: { message: told, ...fixed } })
      expect(last?.event).toBe('response.failed')
    }
    expect(expectJson(await ask(tenant.key, 'GET', `/v1/responses/${response.id}`))).toEqual(response)
  })

  it.each(some(CUT))('%s fails the response, which keeps what was said', async (script, text) => {
    const input = `script:${script}`
    const { response, events } = text ? await call({ input }) : await inBackground(input)
    expect(response).toMatchObject({ status: 'failed', error: { code: expect.any(String) } })
    expect(response.error).toHaveProperty('message', expect.stringMatching(/\S/))
    expect(response.output.map(({ status }) => status)).toEqual(text ? ['incomplete'] : [])
    expect(response.output_text === '').toBe(!text)
    if (stream) expect(events.at(-2)?.event).toBe('error')
    expect(expectJson(await ask(tenant.key, 'GET', `/v1/responses/${response.id}`))).toEqual(response)
  })

  it.runIf(isCorner)('leaves the conversation as it was', async () => {
    const { response: first } = await call({ input: 'Hello' })
    const path = `/v1/conversations/${first.conversation?.id}/items`
    const before = await listItems(tenant.key, path)
    for (const more of [
      { input: 'script:error-500', background: stream },
      { input: 'script:mid-stream-cut' },
    ]) {
      const conversation = first.conversation?.id
      if (more.background === false) {
        const refused = await postResponse(tenant.key, { model, stream, conversation, ...more })
        expect(refused.status).toBe(500)
        expect(await listItems(tenant.key, path)).toEqual(before)
        continue
      }
      const { response } = await call({ conversation, ...more })
      expect(response).toMatchObject({ status: 'failed', conversation: first.conversation })
      expect(await listItems(tenant.key, path)).toEqual(before)
    }
    const { response: next } = await call({ input: 'Again.', conversation: first.conversation?.id })
    expect(next.status).toBe('completed')
    expect((await listItems(tenant.key, path)).data).toHaveLength(4)
  })

  it.runIf(isCorner)('costs what was used, and is recorded as what happened', async () => {
    const owner = await createTenant(gateway())
    const refused = await postResponse(owner.key, { model, stream, input: 'script:error-500' })
    const { answer: cut } = await respond(owner.key, { model, stream, input: 'script:mid-stream-cut' })
    const [first, second] = await Promise.all(
      [refused, cut].map(({ headers }) => auditEntryOf(gateway(), owner, headers['x-request-id'])),
    )
    expect(first).toMatchObject({ surface: 'responses', status: 500, credits_settled: 0, model })
    expect(second).toMatchObject({ surface: 'responses', model })
    expect(second?.record.errorCode ?? second?.record.failure).toBeTruthy()
    expect(second?.credits_settled).toBeGreaterThan(0)
    const { balance } = await settledCredits(gateway(), owner)
    expect(balance).toBe(1_000_000_000 - (second?.credits_settled ?? 0))
  })
})

it('an answer that ends without a word is completed and empty', async () => {
  for (const stream of [true, false]) {
    const told = await respond(tenant.key, { input: 'script:no-done', stream })
    expect((told.response as ToldResponse).status).toBe('completed')
  }
})
