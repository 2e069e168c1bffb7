import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { flush, settledCredits } from '../harness/records.ts'
import { type StartedGateway, startGateway } from '../harness/start-gateway.ts'
import { createTenant, type Tenant } from '../harness/tenant.ts'
import { codePolicy, governedTenant, someCode } from '../http/support/dlp.ts'
import { callTool, type Part, say, think } from '../http/support/dlp-answers.ts'
import { haystacks } from '../http/support/haystacks.ts'
import { ask, type Json } from '../http/support/response-calls.ts'
import { postResponse, RESPONSE_WAYS, turnsScript } from '../http/support/response-streams.ts'

/** A gateway of its own, of which everything that it keeps is looked through. */
let address: StartedGateway

beforeAll(async () => {
  address = await startGateway({ bundleDirectory: inject('bundleDirectory') })
}, 60_000)
afterAll(() => address?.stop())

const TOOLS = [
  { type: 'function', name: 'find', parameters: { type: 'object', properties: {} } },
  { type: 'custom', name: 'run' },
]
const answerOf = (code: string): Part[] => [
  think(`so ${code}`),
  say(`it is ${code}`),
  callTool('find', { code }),
  callTool('run', { input: code }),
]

/** Requests with a value in each place. */
const requestsOf = (code: string): Json[] => [
  { input: `of ${code}` },
  { input: 'x', instructions: `of ${code}` },
  { input: 'x', metadata: { code } },
  { input: 'x', tools: [{ type: 'function', name: 'f', description: `of ${code}` }] },
  { input: 'x', user: code, safety_identifier: code, prompt_cache_key: code },
  {
    input: [
      { role: 'assistant', content: `of ${code}` },
      { type: 'function_call', call_id: 'c', name: 'f', arguments: JSON.stringify({ code }) },
      { type: 'function_call_output', call_id: 'c', output: `of ${code}` },
      { type: 'reasoning', summary: [{ type: 'summary_text', text: `of ${code}` }] },
      { role: 'user', content: 'x' },
    ],
  },
  // Large items lie elsewhere.
  { input: `${randomBytes(600_000).toString('hex')} of ${code}` },
  // Errors around a value.
  { input: `script:error-500 ${code}` },
  { input: `script:mid-stream-cut ${code}` },
  { input: code, temperature: 'hot' },
  { input: [{ type: code }] },
  { input: 'x', [code]: code },
]

/** Calls a model in every way, with a value in each place of its requests and answers. @returns the values. */
async function sayEverywhere(asking: Tenant, answering: Tenant): Promise<string[]> {
  const codes: string[] = []
  const fresh = () => {
    const code = someCode()
    codes.push(code)
    return code
  }
  for (const [, { upstream, ...way }] of RESPONSE_WAYS) {
    for (const store of [true, false]) {
      for (const body of requestsOf(fresh()))
        await postResponse(asking.key, { ...way, store, ...body }, address)
      const include = ['reasoning.encrypted_content']
      const input = await turnsScript(upstream, [answerOf(fresh())], address)
      const body = { ...way, store, input, include, tools: TOOLS }
      const { text } = await postResponse(answering.key, body, address)
      const [id] = /resp_\w+/.exec(text) ?? []
      await ask(answering.key, 'GET', `/v1/responses/${id}?stream=true`, address)
      // An answer over several turns, in which the model gets the results of its calls.
      const turns = [[say('a'), callTool('find', { code: fresh() })], [say(`b ${fresh()}`)]]
      const again = await turnsScript(upstream, turns, address)
      await postResponse(answering.key, { ...body, input: again, tool_choice: 'none' }, address)
    }
  }
  for (const tenant of [asking, answering]) {
    await settledCredits(address, tenant)
    await flush(address, tenant)
  }
  return codes
}

/** Stored data of a gateway in which values occur, except the upstream's, which sends and receives them. */
async function placesOf(codes: string[]): Promise<string[]> {
  const places = [...(await haystacks(address))].filter(([name]) => !/upstream/i.test(name))
  for (const kind of ['Postgres', 'Durable Objects', 'logs', 'content store']) {
    expect(
      places.some(([name]) => name.startsWith(kind)),
      kind,
    ).toBe(true)
  }
  return places.flatMap(([place, contents]) =>
    codes.filter((code) => contents.includes(code)).map((code) => `${code} in ${place}`),
  )
}

describe('no value is stored or sent anywhere', () => {
  it.each(['redact', 'mask', 'block'])(
    'that a policy does not let be (%s)',
    async (action) => {
      const answers = ['response', 'tool_arguments', 'tool_result']
      const asking = await governedTenant(codePolicy(action), address)
      const answering = await governedTenant(codePolicy(action, { directions: answers }), address)
      expect(await placesOf(await sayEverywhere(asking, answering))).toEqual([])
    },
    60_000,
  )

  it('and the search finds what no policy is about', async () => {
    const tenant = await createTenant(address)
    const codes = await sayEverywhere(tenant, tenant)
    const found = await placesOf(codes)
    for (const kind of ['Postgres', 'Durable Objects', 'content store']) {
      expect(
        found.some((place) => place.includes(`in ${kind}`)),
        kind,
      ).toBe(true)
    }
    expect(found.filter((place) => place.includes('in logs'))).toEqual([])
  }, 60_000)
})
